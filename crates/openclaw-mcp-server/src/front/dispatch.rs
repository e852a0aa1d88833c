//! What is done with a message that has arrived as a line.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::{AbortHandle, Abortable, Aborted, join, ready};
use openclaw_budget::FREE;
use rmcp::model::JsonRpcMessage;
use tokio::sync::mpsc;

use super::incoming::{CallLine, CallRequest, IncomingMessage, PlainCall, classify};
use super::lines::{Front, InProgress, LineCalls};
use super::memory::{MAX_NAME, MAX_SLOW_CALL, for_parsing, too_large};
use super::reply::{BUSY, HubReply, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
use super::rmcp_transport::ServerRoleMessage;
use crate::batch::{self, BatchError, BatchReplies, NO_HANDSHAKE};
use crate::era::{begins, invalid_params, is_bad_handshake};
use crate::input::state::BAD_STATE;
use crate::input::{Abilities, AskableClient as _};

/// Maximum number of requests in progress.
const MAX_REQUESTS: usize = 1_024;
/// What some programs write at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<C: LineCalls> Front<C> {
    /// Handles a message.
    pub(super) fn message(&mut self, line: &[u8]) {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.is_empty() {
            return;
        }
        let message = classify(line);
        if let Some(problem) = too_large(&message, line) {
            // Not with an id that is too long.
            let id = match &message {
                IncomingMessage::Call(call) => Some(call.id),
                IncomingMessage::Request(id)
                | IncomingMessage::BadState(id)
                | IncomingMessage::Handshake { id, .. } => Some(*id),
                _ => None,
            };
            return self.refuse(id.filter(|id| id.len() <= MAX_NAME), INVALID_REQUEST, problem);
        }
        match message {
            IncomingMessage::Call(call) => self.call(&call, line),
            IncomingMessage::Request(id) | IncomingMessage::Handshake { id, .. } => {
                self.request(id, line);
            }
            IncomingMessage::BadState(id) => self.refuse(Some(id), INVALID_PARAMS, BAD_STATE),
            IncomingMessage::Cancel(id) => match self.requests.get(id) {
                // If it is over already, the outbox has its reply.
                Some(InProgress::Started(call)) => {
                    if call.cancel()
                        && let Some((id, _)) = self.requests.remove_entry(id)
                    {
                        self.outbox.withdraw(&id);
                    }
                }
                Some(InProgress::Call(call)) => call.abort(),
                Some(InProgress::Slow { .. }) | None => {
                    self.outbox.withdraw(&id.into());
                    self.pass(line, None);
                }
            },
            IncomingMessage::Response(_) | IncomingMessage::Notification => self.pass(line, None),
            IncomingMessage::Batch => {
                if let Err(error) = self.batch(line) {
                    let is_json = error != BatchError::NotJson;
                    let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                    self.refuse(None, code, &error.to_string());
                }
            }
            IncomingMessage::Invalid(id) => {
                let id = id.filter(|id| id.len() <= MAX_NAME && !self.requests.contains_key(*id));
                self.refuse(id, INVALID_REQUEST, "not a JSON-RPC message");
            }
            IncomingMessage::Garbage => self.refuse(None, PARSE_ERROR, "not JSON"),
        }
    }

    /// Handles the messages of a batch. The replies are one line.
    fn batch(&mut self, line: &[u8]) -> Result<(), BatchError> {
        if !self.connection.has_batches() {
            return Err(BatchError::Unsupported);
        }
        let all = batch::messages(line)?;
        let mut ids = Vec::<Arc<str>>::new();
        let mut replies = BatchReplies::default();
        let mut valid = Vec::with_capacity(all.len());
        for message in all {
            let message = message.get().as_bytes();
            match classify(message) {
                IncomingMessage::Call(CallLine { id, .. })
                | IncomingMessage::Request(id)
                | IncomingMessage::BadState(id) => {
                    if self.requests.contains_key(id) || ids.iter().any(|other| **other == *id) {
                        return Err(BatchError::IdInUse);
                    }
                    ids.push(id.into());
                }
                IncomingMessage::Handshake { id, .. } => {
                    let error = HubReply::error(INVALID_REQUEST, NO_HANDSHAKE);
                    let id = if id.len() <= MAX_NAME { id } else { "null" };
                    replies.add(&error.into_message(id), Vec::new);
                    continue;
                }
                IncomingMessage::Batch | IncomingMessage::Invalid(_) | IncomingMessage::Garbage => {
                    let error = HubReply::error(INVALID_REQUEST, "not a JSON-RPC message");
                    replies.add(&error.into_message("null"), Vec::new);
                    continue;
                }
                _ => {}
            }
            valid.push(message);
        }
        self.outbox.open_batch(ids, replies);
        valid.into_iter().for_each(|message| self.message(message));
        Ok(())
    }

    fn call(&mut self, call: &CallLine<'_>, line: &[u8]) {
        if self.begin(call) {
            return;
        }
        match self.fast(call) {
            Some(request) => self.start(call.id, request),
            None => self.request(call.id, line),
        }
    }

    /// Starts an ordinary call. Returns whether it was.
    fn begin(&mut self, call: &CallLine<'_>) -> bool {
        let has_room = self.requests.len() < MAX_REQUESTS;
        let Some(plain) = call.plain().filter(|plain| has_room && self.is_open_for(plain)) else {
            return false;
        };
        let Some(calls) = &mut self.calls else { return false };
        let id = Arc::<str>::from(call.id);
        let Entry::Vacant(place) = self.requests.entry(Arc::clone(&id)) else { return false };
        let done = || {
            let id = Arc::clone(&id);
            let outbox = Arc::clone(&self.outbox);
            move |reply| outbox.reply(id, reply)
        };
        let Some(started) = calls.begin(&plain, done) else { return false };
        if !self.unflushed.last().is_some_and(|last| Arc::ptr_eq(last, started.lane())) {
            self.unflushed.push(Arc::clone(started.lane()));
        }
        place.insert(InProgress::Started(started));
        true
    }

    /// Whether a plain call can be started: after the handshake, or without one since 2026-07-28. A
    /// client of 2026-07-28 that has performed a handshake nevertheless may be one that can be asked.
    fn is_open_for(&self, call: &PlainCall<'_>) -> bool {
        if call.is_modern() {
            self.connection.abilities() == Abilities::default()
        } else {
            self.is_open.load(Ordering::Acquire)
        }
    }

    /// Returns a call for the fast lane: after the handshake, or without one since 2026-07-28.
    fn fast(&self, call: &CallLine<'_>) -> Option<CallRequest> {
        self.calls.as_ref()?;
        let request = call.to_request()?;
        let is_open = request.modern.is_some() || self.is_open.load(Ordering::Acquire);
        is_open.then_some(request)
    }

    /// Whether a new request can be taken; otherwise it is refused. The error for an id that is in
    /// use has none: it would be taken for the response to the first request.
    fn admits(&mut self, id: &str) -> bool {
        if self.requests.contains_key(id) {
            self.refuse(None, INVALID_REQUEST, "the id is in use by another request");
            return false;
        }
        if self.requests.len() >= MAX_REQUESTS {
            self.refuse(Some(id), BUSY, "too many requests in progress");
            return false;
        }
        true
    }

    fn start(&mut self, id: &str, request: CallRequest) {
        if !self.admits(id) {
            return;
        }
        let Some(calls) = &self.calls else { return };
        let (abort, registration) = AbortHandle::new_pair();
        let call = Abortable::new(calls.call(request), registration);
        let id = Arc::<str>::from(id);
        self.requests.insert(Arc::clone(&id), InProgress::Call(abort));
        self.answering.push(join(ready(id), call));
    }

    /// Writes the reply of a call. A cancelled one has none.
    pub(super) fn finish(&mut self, id: Arc<str>, reply: Result<HubReply, Aborted>) {
        let Ok(reply) = reply else {
            self.requests.remove(&id);
            self.outbox.withdraw(&id);
            return;
        };
        // Notifications of the call come before its reply.
        self.take_outbox();
        if self.has_room() && reply.len() <= FREE && !self.outbox.is_in_batch(&id) {
            self.requests.remove(&id);
            reply.write_line(&id, &mut self.out.lines);
        } else {
            self.outbox.reply(id, reply);
        }
    }

    /// Passes a request to `rmcp`.
    fn request(&mut self, id: &str, line: &[u8]) {
        if !self.admits(id) {
            return;
        }
        if line.len() > MAX_SLOW_CALL {
            let words = "a call of more than 1 MiB must have valid parameters";
            return self.refuse(Some(id), INVALID_REQUEST, words);
        }
        match for_parsing(&self.budget, line) {
            Ok(memory) => {
                self.requests.insert(id.into(), InProgress::Slow { _memory: memory });
                self.pass(line, Some(id));
            }
            Err(spent) => self.refuse(Some(id), BUSY, &spent.to_string()),
        }
    }

    /// Passes a message to `rmcp`.
    fn pass(&mut self, line: &[u8], id: Option<&str>) {
        let message = match serde_json::from_slice::<ServerRoleMessage>(line) {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "invalid message from a client");
                return self.reject(id, INVALID_REQUEST, "invalid request");
            }
        };
        match &message {
            JsonRpcMessage::Request(request) if is_bad_handshake(&request.request) => {
                return self.reject(id, INVALID_PARAMS, &invalid_params("initialize").message);
            }
            JsonRpcMessage::Request(request) => self.has_begun |= begins(&request.request),
            _ if self.has_begun => {}
            _ => {
                tracing::warn!("ignored a message before the handshake");
                return;
            }
        }
        match self.to_rmcp.try_send(message) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(message)) => self.held = Some(message),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.reject(id, INVALID_REQUEST, "the handshake failed");
            }
        }
    }

    /// Ends a request with an error. A notification gets no answer.
    fn reject(&mut self, id: Option<&str>, code: i64, message: &str) {
        if let Some(id) = id {
            self.requests.remove(id);
            self.refuse(Some(id), code, message);
        }
    }

    /// Answers a line that is too long, of the request with this id.
    pub(super) fn refuse_overlong(&mut self, id: Option<&str>) {
        let most = self.limits.line / 1024 / 1024;
        tracing::warn!("a client sent a message longer than {most} MiB");
        let id = id.filter(|id| !self.requests.contains_key(*id));
        self.refuse(id, INVALID_REQUEST, &format!("the message is longer than {most} MiB"));
    }

    pub(super) fn refuse(&mut self, id: Option<&str>, code: i64, message: &str) {
        if let Some(id) = id.map(Arc::from).filter(|id| self.outbox.is_in_batch(id)) {
            return self.outbox.reply(id, HubReply::error(code, message));
        }
        HubReply::error(code, message).write_line(id.unwrap_or("null"), &mut self.out.lines);
    }
}
