//! Batches of clients of 2025-03-26: the replies to their requests are one JSON array. A call in a batch
//! reports nothing before its result, and its client is not asked for anything.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::sessions::HubSession;
use super::{HubBody, HubHttp, accepted, call, respond};
use crate::batch::{self, BatchError, BatchReplies, NO_HANDSHAKE, TOO_LARGE};
use crate::front::incoming::{IncomingMessage, classify};
use crate::front::reply::{BUSY, HubReply, INVALID_REQUEST, PARSE_ERROR};

impl HubHttp {
    /// Handles a batch, one message after the other: its replies are kept until the last one.
    pub(super) async fn batch(
        &self,
        session: &Arc<HubSession>,
        parts: &Parts,
        body: &[u8],
    ) -> Response<HubBody> {
        let messages = match batch::messages(body) {
            Ok(messages) => messages,
            Err(error) => {
                let is_json = error != BatchError::NotJson;
                let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
                let error = HubReply::error(code, &error.to_string());
                return call::json(StatusCode::BAD_REQUEST, "null", error);
            }
        };
        let mut replies = BatchReplies::default();
        for message in messages {
            let message = message.get().as_bytes();
            if let Some(reply) = Box::pin(self.in_batch(session, parts, message)).await {
                let too_large = || HubReply::error(BUSY, TOO_LARGE).into_message(&id_of(&reply));
                replies.add(&reply, too_large);
            }
        }
        match replies.array() {
            Some(array) => respond(StatusCode::OK, "application/json", array),
            None => accepted(),
        }
    }

    /// Handles a message of a batch. Returns its reply, if it has one.
    async fn in_batch(
        &self,
        session: &Arc<HubSession>,
        parts: &Parts,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let id = match classify(message) {
            IncomingMessage::Call(line) => {
                match call::in_batch(session, &line, &parts.headers).await {
                    Some(reply) => return reply,
                    None => Some(line.id),
                }
            }
            IncomingMessage::Request(id) => Some(id),
            IncomingMessage::Handshake { id, .. } => {
                let error = HubReply::error(INVALID_REQUEST, NO_HANDSHAKE);
                return Some(error.into_message(id));
            }
            IncomingMessage::Response(id) if session.answer(id, message) => return None,
            IncomingMessage::Cancel(id) if session.cancel(id) => return None,
            IncomingMessage::Response(_)
            | IncomingMessage::Cancel(_)
            | IncomingMessage::Notification => None,
            IncomingMessage::Batch | IncomingMessage::Invalid(_) | IncomingMessage::Garbage => {
                let error = HubReply::error(INVALID_REQUEST, "not a JSON-RPC message");
                return Some(error.into_message("null"));
            }
        };
        let body = Full::new(Bytes::copy_from_slice(message));
        let response = self.rmcp.handle(Request::from_parts(parts.clone(), body)).await;
        let body = response.into_body().collect().await.ok()?.to_bytes();
        let no_reply = |id| HubReply::error(BUSY, "no reply").into_message(id);
        id.map(|id| reply_in(&body).unwrap_or_else(|| no_reply(id)))
    }
}

/// The response in a body of `rmcp`: JSON, or the events of a stream.
fn reply_in(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let mut messages = lines.filter(|line| {
        let message = serde_json::from_str::<Value>(line);
        message.is_ok_and(|it| it.get("result").or_else(|| it.get("error")).is_some())
    });
    messages.next().map(|message| message.as_bytes().to_vec())
}

/// The id of a reply, as JSON.
fn id_of(reply: &[u8]) -> String {
    let reply = serde_json::from_slice::<Value>(reply).unwrap_or_default();
    reply["id"].to_string()
}
