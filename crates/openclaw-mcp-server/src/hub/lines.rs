//! A client that is reached by lines: stdio, or a connection of another process of this program.
//!
//! One task reads the client and writes the replies; all replies that are ready leave in one write. An
//! ordinary call is started when its line is read, and its reply is put into the outbox by the task
//! that reads its server: there is no future, task or channel for it. Calls that have to wait for
//! something before are futures, which this task runs.
//!
//! Bounds: the length of a line, the number of requests in progress, and the bytes that wait for a
//! client that does not read. Such a client is not read either, and results that arrive nevertheless
//! are dropped beyond a limit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use openclaw_budget::{BudgetSpent, BytePermit, FREE};
use openclaw_tools::{CallLane, ProgressWatcher, StartedCall};
use rmcp::ServiceExt as _;
use rmcp::model::JsonRpcMessage;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::answers::{Abilities, AskableClient as _};
use super::asks::CallScope;
use super::call::CallFor;
use super::client::{HubClient, Rights, notification};
use super::handler::Handler;
use super::incoming::{CallLine, CallRequest, IncomingMessage, PlainCall, classify};
use super::memory::{MAX_MESSAGE, MAX_NAME, MAX_SLOW_CALL, for_parsing, too_large};
use super::options::HubClientOptions;
use super::outbox::{BEHIND, FULL, Outbox, Taken};
use super::reply::{BUSY, HubReply, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
use super::replying::ReplyingTask;
use super::running::{RunningCall, progress_params};
use super::slow_lane::{HubSlowLane, ServerRoleMessage};
use super::state::BAD_STATE;
use super::{Hub, HubCaller, HubError, listen};
use crate::batch::{self, BatchError, BatchReplies};
use crate::era::EraServer;
use crate::server::invalid_params;
use crate::transport::{begins, is_bad_handshake};

/// Maximum number of requests in progress.
const MAX_REQUESTS: usize = 1_024;
/// Maximum number of requests in progress of a client that is behind with reading; further ones are not
/// read until it has caught up.
const MAX_WHILE_BEHIND: usize = 64;
/// Messages that wait for `rmcp`.
const MAX_WAITING: usize = 64;
/// Initial capacity of the read buffer.
const SMALL: usize = 16 * 1024;
/// A read buffer with more capacity than this is freed once it is empty.
const KEPT: usize = 256 * 1024;

/// How long a client that has closed its end can wait for replies; then its requests are cancelled. Most
/// clients close it to end this process, and send a signal after 2 s.
const LAST_REPLIES: Duration = Duration::from_secs(1);
/// How long a client may take to send a long line.
const SENDING: Duration = Duration::from_secs(5 * 60);

/// Why a client was served no longer, besides its own end.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// It cannot be served.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// It sent a line that is too long.
    #[error("the client sent a line longer than {} MiB", MAX_MESSAGE / 1024 / 1024)]
    LineTooLong,
    /// It took too long to send a line.
    #[error("the client took more than {} s to send a line", SENDING.as_secs())]
    LineTooSlow,
    /// There is no memory for its lines.
    #[error(transparent)]
    Memory(#[from] BudgetSpent),
    /// Its pipe broke.
    #[error("connection to the client lost")]
    Io(#[from] io::Error),
}

/// Serves a client until it closes its end.
///
/// # Errors
/// If it cannot be served, sends a line that is too long, too slowly or without memory for it, or the
/// connection breaks.
pub async fn serve(
    hub: &Arc<Hub>,
    caller: HubCaller,
    options: HubClientOptions,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), LinesError> {
    let client = hub.client(caller, options)?;
    let outbox = Arc::new(Outbox::new(&client.budget));
    client.writes_to(&outbox);
    hub.asks.listen(&client);
    let (to_rmcp, messages) = mpsc::channel(MAX_WAITING);
    let is_open = Arc::new(AtomicBool::new(false));
    let lane = HubSlowLane {
        messages,
        outbox: Arc::clone(&outbox),
        budget: Arc::clone(&client.budget),
        is_open: Arc::clone(&is_open),
    };
    let handler = Handler::of(Arc::clone(&client));
    // Both end with this future, also if it is dropped.
    let _watching = AbortOnDropHandle::new(tokio::spawn(listen::watch(Arc::downgrade(&client))));
    let rmcp = tokio::spawn(async move {
        match EraServer(handler).serve(lane).await {
            Ok(running) => drop(running.waiting().await),
            Err(error) => tracing::debug!(%error, "the handshake failed"),
        }
    });
    let _rmcp = AbortOnDropHandle::new(rmcp);
    let scope = client.scope();
    let (nobody, _) = ReplyingTask::new(Abilities::default(), None);
    let plain_scope = client.scope_of(nobody);
    let front = Front {
        calls: FuturesUnordered::new(),
        requests: HashMap::new(),
        buffer: Vec::with_capacity(SMALL),
        memory: client.budget.permit(),
        unfinished_since: None,
        searched: 0,
        out: Taken::default(),
        rights: None,
        unflushed: Vec::new(),
        held: None,
        has_begun: false,
        scope: Arc::new(scope),
        plain_scope,
        client,
        outbox,
        to_rmcp,
        is_open,
    };
    front.run(input, output).await
}

/// A finished call: the id of its request, and its reply unless it was cancelled.
type Finished = (Arc<str>, Result<HubReply, Aborted>);

/// A request in progress.
enum InProgress {
    /// A call whose reply the outbox gets.
    Started(StartedCall),
    /// A call that this task runs.
    Call(AbortHandle),
    /// A request that `rmcp` answers, with its memory.
    Slow { _memory: BytePermit },
}

struct Front {
    client: Arc<HubClient>,
    scope: Arc<CallScope>,
    /// That of calls since 2026-07-28 whose client is asked for nothing and told nothing.
    plain_scope: CallScope,
    outbox: Arc<Outbox>,
    to_rmcp: mpsc::Sender<ServerRoleMessage>,
    is_open: Arc<AtomicBool>,
    calls: FuturesUnordered<BoxFuture<'static, Finished>>,
    /// By id, as JSON.
    requests: HashMap<Arc<str>, InProgress>,
    buffer: Vec<u8>,
    /// The memory of the buffer.
    memory: BytePermit,
    /// When a long line began that has not arrived as a whole.
    unfinished_since: Option<Instant>,
    /// Up to here, the buffer contains no line break.
    searched: usize,
    /// What is written next.
    out: Taken,
    /// What the client may call, for all lines of one read.
    rights: Option<Rights>,
    /// The servers that calls were started on since the last flush.
    unflushed: Vec<Arc<dyn CallLane>>,
    /// A message for which `rmcp` has no room. Nothing is read meanwhile.
    held: Option<ServerRoleMessage>,
    /// Whether `rmcp` knows the client. Before that, it takes only requests: anything else would be
    /// its end.
    has_begun: bool,
}

impl Front {
    async fn run(
        mut self,
        mut input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> Result<(), LinesError> {
        let (outbox, to_rmcp) = (Arc::clone(&self.outbox), self.to_rmcp.clone());
        let mut has_ended = false;
        let mut last_replies = std::pin::pin!(sleep(Duration::MAX));
        loop {
            // Before lines are read: an id may be used again as soon as its request is answered.
            self.take_outbox();
            self.process()?;
            self.take_outbox();
            if has_ended && self.requests.is_empty() && self.out.lines.is_empty() {
                return Ok(());
            }
            let has_room = self.has_room();
            let late = self.unfinished_since.map(|since| since + SENDING);
            tokio::select! {
                biased;
                written = output.write(self.out.lines.front()), if !self.out.lines.is_empty() => {
                    let written = written?;
                    if written == 0 {
                        return Err(io::Error::from(io::ErrorKind::WriteZero).into());
                    }
                    self.out.lines.advance(written);
                    if self.out.lines.is_empty() {
                        output.flush().await?;
                    }
                }
                // Also without room: the outbox limits what it keeps, a call does not.
                Some(finished) = self.calls.next(), if !self.calls.is_empty() => {
                    self.finish(finished);
                    // Those that are ready, too, leave in the same write.
                    while let Some(Some(finished)) = self.calls.next().now_or_never() {
                        self.finish(finished);
                    }
                }
                () = &mut last_replies, if has_ended => return Ok(()),
                () = late_line(late), if late.is_some() => return Err(LinesError::LineTooSlow),
                () = outbox.filled(), if has_room => {}
                permit = to_rmcp.reserve(), if self.held.is_some() => {
                    if let (Ok(permit), Some(message)) = (permit, self.held.take()) {
                        permit.send(message);
                    }
                }
                read = input.read_buf(&mut self.buffer),
                    if self.may_read() && !has_ended =>
                {
                    // A client that closes its end still gets the replies to what it has sent.
                    has_ended = read? == 0;
                    if let Err(spent) = self.memory.resize(self.buffer.len()) {
                        self.refuse(None, BUSY, &spent.to_string());
                        let last = output.write_all(self.out.lines.front());
                        let _ = timeout(LAST_REPLIES, last).await;
                        return Err(spent.into());
                    }
                    if has_ended {
                        self.buffer.push(b'\n');
                        last_replies.as_mut().reset(Instant::now() + LAST_REPLIES);
                    }
                }
            }
        }
    }

    /// Whether there is room for further replies.
    fn has_room(&self) -> bool {
        self.out.lines.len() < FULL
    }

    /// Whether further lines are handled.
    fn may_read(&self) -> bool {
        let is_behind = self.out.lines.len() >= BEHIND;
        self.has_room()
            && self.held.is_none()
            && (!is_behind || self.requests.len() < MAX_WHILE_BEHIND)
    }

    /// Takes what waits in the outbox, if there is room: it limits what it keeps.
    fn take_outbox(&mut self) {
        if !self.has_room() {
            return;
        }
        self.outbox.take(&mut self.out);
        for id in self.out.answered.drain(..) {
            self.requests.remove(&id);
        }
    }

    /// Handles the complete lines of the buffer, as long as there is room for their replies.
    fn process(&mut self) -> Result<(), LinesError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while self.may_read()
            && let Some(at) = memchr::memchr(b'\n', &buffer[self.searched..])
        {
            let end = self.searched + at;
            self.line(buffer[start..end].trim_ascii());
            start = end + 1;
            self.searched = start;
        }
        self.rights = None;
        // The calls of all lines leave in one write.
        self.unflushed.drain(..).for_each(|lane| lane.flush());
        if start == buffer.len() {
            buffer.clear();
            if buffer.capacity() > KEPT {
                buffer = Vec::with_capacity(SMALL);
            }
        } else {
            buffer.drain(..start);
        }
        let is_searched = self.may_read();
        self.searched = if is_searched { buffer.len() } else { self.searched - start };
        self.buffer = buffer;
        // Not more than before.
        let _ = self.memory.resize(self.buffer.len());
        if self.buffer.len() <= FREE || !is_searched || start > 0 {
            self.unfinished_since = None;
        } else {
            self.unfinished_since.get_or_insert_with(Instant::now);
        }
        // What waits behind a full queue is longer than a line only if a line was.
        match self.buffer.len() > MAX_MESSAGE && is_searched {
            true => Err(LinesError::LineTooLong),
            false => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let message = classify(line);
        if let Some(problem) = too_large(&message, line) {
            // Not with an id that is too long.
            let id = match &message {
                IncomingMessage::Call(call) => Some(call.id),
                IncomingMessage::Request(id) | IncomingMessage::Handshake { id, .. } => Some(*id),
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
            IncomingMessage::Invalid => {
                self.refuse(None, INVALID_REQUEST, "not a JSON-RPC message");
            }
            IncomingMessage::Garbage => self.refuse(None, PARSE_ERROR, "not JSON"),
        }
    }

    /// Handles the messages of a batch. The replies are one line.
    fn batch(&mut self, line: &[u8]) -> Result<(), BatchError> {
        if !self.client.has_batches() {
            return Err(BatchError::Unsupported);
        }
        let all = batch::messages(line)?;
        let (mut ids, mut replies, mut valid) =
            (Vec::<Arc<str>>::new(), BatchReplies::default(), Vec::with_capacity(all.len()));
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
                IncomingMessage::Batch | IncomingMessage::Invalid | IncomingMessage::Garbage => {
                    let error = HubReply::error(INVALID_REQUEST, "not a JSON-RPC message");
                    replies.add(&error.into_message("null"), Vec::new);
                    continue;
                }
                _ => {}
            }
            valid.push(message);
        }
        self.outbox.open_batch(ids, replies);
        valid.into_iter().for_each(|message| self.line(message));
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
        if self.rights.is_none() {
            self.rights = self.client.rights();
        }
        let Some(rights) = &self.rights else { return false };
        let id = Arc::<str>::from(call.id);
        let Entry::Vacant(place) = self.requests.entry(Arc::clone(&id)) else { return false };
        let scope = if plain.is_modern() { &self.plain_scope } else { &*self.scope };
        let by = CallFor { session: scope.session(), answers: &*self.client, watcher: None };
        let done = || {
            let (id, outbox) = (Arc::clone(&id), Arc::clone(&self.outbox));
            move |reply| outbox.reply(id, reply)
        };
        let Some(started) = self.client.begin(rights, &plain, by, done) else { return false };
        if !self.unflushed.last().is_some_and(|last| Arc::ptr_eq(last, started.lane())) {
            self.unflushed.push(Arc::clone(started.lane()));
        }
        place.insert(InProgress::Started(started));
        true
    }

    /// Whether a plain call can be started: after the handshake, or without one since 2026-07-28. A
    /// client of 2026-07-28 that has performed a handshake nevertheless may be one that can be asked.
    fn is_open_for(&self, call: &PlainCall<'_>) -> bool {
        match call.is_modern() {
            true => self.client.abilities() == Abilities::default(),
            false => self.is_open.load(Ordering::Acquire),
        }
    }

    /// Returns a call for the fast lane: after the handshake, or without one since 2026-07-28.
    fn fast(&self, call: &CallLine<'_>) -> Option<CallRequest> {
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
        let memory = match self.client.budget.hold_exactly(request.bytes()) {
            Ok(memory) => memory,
            Err(spent) => return self.refuse(Some(id), BUSY, &spent.to_string()),
        };
        let (abort, registration) = AbortHandle::new_pair();
        let (id, client) = (Arc::<str>::from(id), Arc::clone(&self.client));
        self.requests.insert(Arc::clone(&id), InProgress::Call(abort));
        let call: BoxFuture<'static, Finished> = match request.modern.is_some() {
            true => {
                // The call counts it itself.
                drop(memory);
                let outbox = Arc::clone(&self.outbox);
                let call = async move {
                    let tell =
                        |method: &str, params: &_| outbox.offer(&notification(method, params));
                    match RunningCall::answered(&client, request) {
                        Ok(running) => running.until_asked(tell).await,
                        Err(reply) => reply,
                    }
                };
                let call = Abortable::new(call, registration);
                Box::pin(async move { (id, call.await) })
            }
            false => {
                let scope = Arc::clone(&self.scope);
                let call = async move {
                    let reply = call(client, scope, request).await;
                    drop(memory);
                    reply
                };
                let call = Abortable::new(call, registration);
                Box::pin(async move { (id, call.await) })
            }
        };
        self.calls.push(call);
    }

    /// Writes the reply of a call. A cancelled one has none.
    fn finish(&mut self, (id, reply): Finished) {
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
        match for_parsing(&self.client.budget, line) {
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
                tracing::debug!("ignored a message before the handshake");
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

    fn refuse(&mut self, id: Option<&str>, code: i64, message: &str) {
        if let Some(id) = id.map(Arc::from).filter(|id| self.outbox.is_in_batch(id)) {
            return self.outbox.reply(id, HubReply::error(code, message));
        }
        HubReply::error(code, message).write_line(id.unwrap_or("null"), &mut self.out.lines);
    }
}

impl Drop for Front {
    /// Nothing waits for the calls of a client that is gone.
    fn drop(&mut self) {
        for request in self.requests.values() {
            if let InProgress::Started(call) = request {
                call.cancel();
            }
        }
    }
}

/// Waits until a line is late.
async fn late_line(late: Option<Instant>) {
    match late {
        Some(late) => sleep_until(late).await,
        None => std::future::pending().await,
    }
}

/// A call of a client with a handshake, which is asked by requests of its own.
async fn call(client: Arc<HubClient>, scope: Arc<CallScope>, request: CallRequest) -> HubReply {
    let by = CallFor { session: scope.session(), answers: &*client, watcher: None };
    let Some(token) = &request.progress else { return client.call(&request, by).await };
    let (watcher, mut progress) = ProgressWatcher::channel();
    let mut call = std::pin::pin!(client.call(&request, CallFor { watcher: Some(&watcher), ..by }));
    loop {
        tokio::select! {
            biased;
            Ok(()) = progress.changed() => {
                if let Some(progress) = &*progress.borrow_and_update() {
                    client.notify("notifications/progress", progress_params(token, progress));
                }
            }
            reply = &mut call => return reply,
        }
    }
}
