//! The queue of messages for `rmcp`: bounded in number and in bytes. When it is full, reading stops.

use std::sync::Arc;

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::model::{GetExtensions as _, JsonRpcMessage, JsonRpcRequest, RequestId};
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::async_rw::JsonRpcMessageCodec;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::codec::Decoder as _;

use super::fast_lane::WorkId;
use super::redacted;
use super::skipped::SkippedLines;

/// Maximum number of queued messages.
const MESSAGES: usize = 256;
/// Maximum size of all queued messages together, in bytes.
const BYTES: usize = 16 * 1024 * 1024;
/// Maximum size of a message for `rmcp`, in bytes. Lower than that of other messages: these are
/// parsed in full, which can take up thirty times as much memory.
pub(crate) const MAX_PARSED: usize = 8 * 1024 * 1024;
/// A request with a longer id is skipped.
const MAX_ID: usize = 1024;
/// The method that replaces that of a request which is too large, so that it is answered.
pub(crate) const TOO_LARGE: &str = "openclaw/too-large";

/// The method that replaces that of a request with a credential where it cannot be redacted, such as the
/// name of a field: nobody is asked, and the server gets an error.
pub(crate) const GIVES_AWAY: &str = "openclaw/gives-away";

/// A message for `rmcp`.
pub(super) type ClientRoleMessage = RxJsonRpcMessage<RoleClient>;

/// The receiving side of `rmcp` was dropped.
#[derive(Debug)]
pub(super) struct ReceiverDropped;

/// What to do with a message that does not fit into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// Wait for room.
    Wait,
    /// Drop it: before `rmcp` receives, the response that it needs first may be behind it.
    Drop,
}

/// A queued message with its size.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) message: ClientRoleMessage,
    pub(super) bytes: usize,
    _room: OwnedSemaphorePermit,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct ToRmcp {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

/// Creates the queue of a connection.
pub(super) fn channel() -> (ToRmcp, mpsc::Receiver<Queued>) {
    let (queue, receiver) = mpsc::channel(MESSAGES);
    (ToRmcp { queue, room: Arc::new(Semaphore::new(BYTES)) }, receiver)
}

impl ToRmcp {
    /// Parses a message, redacts its secrets and queues it, with the call that it belongs to as an
    /// extension, if that is known. One that cannot be parsed is skipped; of one that is too large,
    /// only the id is used.
    pub(super) async fn send(
        &self,
        line: &[u8],
        work: Option<WorkId>,
        when_full: WhenFull,
        skipped: &SkippedLines,
    ) -> Result<(), ReceiverDropped> {
        if line.len() > MAX_PARSED {
            return match stub(line, TOO_LARGE) {
                Some(stub) => Box::pin(self.send(stub.as_bytes(), work, when_full, skipped)).await,
                None => {
                    skipped.note(line);
                    Ok(())
                }
            };
        }
        let Ok(text) = std::str::from_utf8(line) else {
            skipped.note(line);
            return Ok(());
        };
        let Some((room, place)) = self.room_for(line.len(), when_full).await? else {
            skipped.note(line);
            return Ok(());
        };
        let text = redacted::message(text, skipped.redactor());
        match parse(text.as_bytes()) {
            Ok(Some(message)) if !has_usable_id(&message) => skipped.note(line),
            Ok(Some(JsonRpcMessage::Request(_)))
                if redacted::gives_away(&text, skipped.redactor()) =>
            {
                let stub = stub(text.as_bytes(), GIVES_AWAY);
                match stub.and_then(|stub| parse(stub.as_bytes()).ok().flatten()) {
                    Some(message) => place.send(Queued { message, bytes: line.len(), _room: room }),
                    None => skipped.note(line),
                }
            }
            Ok(Some(mut message)) => {
                if let Some(work) = work {
                    belongs_to(&mut message, work);
                }
                place.send(Queued { message, bytes: line.len(), _room: room });
            }
            // An unknown notification.
            Ok(None) => {}
            Err(_) => skipped.note(line),
        }
        Ok(())
    }

    /// Reserves room; `None` if there is none and the message is to be dropped.
    async fn room_for(
        &self,
        bytes: usize,
        when_full: WhenFull,
    ) -> Result<Option<(OwnedSemaphorePermit, mpsc::Permit<'_, Queued>)>, ReceiverDropped> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        if when_full == WhenFull::Drop {
            let Ok(room) = room.try_acquire_many_owned(bytes) else { return Ok(None) };
            return match self.queue.try_reserve() {
                Ok(place) => Ok(Some((room, place))),
                Err(mpsc::error::TrySendError::Full(())) => Ok(None),
                Err(mpsc::error::TrySendError::Closed(())) => Err(ReceiverDropped),
            };
        }
        // If the receiver is dropped, so are the queued messages, which makes room.
        let room = room.acquire_many_owned(bytes).await.map_err(|_| ReceiverDropped)?;
        let place = self.queue.reserve().await.map_err(|_| ReceiverDropped)?;
        Ok(Some((room, place)))
    }
}

fn parse(line: &[u8]) -> Result<Option<ClientRoleMessage>, impl std::error::Error + use<>> {
    let mut bytes = BytesMut::with_capacity(line.len() + 1);
    // The codec would end the message at a line break; in JSON a space is equivalent.
    bytes.extend(line.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
    bytes.extend_from_slice(b"\n");
    JsonRpcMessageCodec::<ClientRoleMessage>::default().decode(&mut bytes)
}

/// Marks a request or a notification as belonging to a call.
fn belongs_to(message: &mut ClientRoleMessage, work: WorkId) {
    match message {
        JsonRpcMessage::Request(message) => {
            message.request.extensions_mut().insert(work);
        }
        JsonRpcMessage::Notification(message) => {
            message.notification.extensions_mut().insert(work);
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
    }
}

/// Returns whether a message that is a request has an id that can be repeated in logs and errors.
fn has_usable_id(message: &ClientRoleMessage) -> bool {
    match message {
        JsonRpcMessage::Request(JsonRpcRequest { id: RequestId::String(id), .. }) => {
            id.len() <= MAX_ID
        }
        _ => true,
    }
}

/// Returns the error that replaces a response which is too large.
pub(super) fn too_large_response(id: &str) -> String {
    let message = format!("the response is larger than {} MiB", MAX_PARSED / 1024 / 1024);
    let error = json!({ "code": -32000, "message": message });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// Returns what replaces a message that is too large, or a request for another reason; `None` for one
/// without an id.
fn stub(line: &[u8], instead: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
        #[serde(default)]
        method: Option<IgnoredAny>,
    }
    let Head { id, method } = serde_json::from_slice(line).ok()?;
    let id = id.get();
    if id.len() > MAX_ID || id == "null" {
        return None;
    }
    Some(match method {
        Some(_) => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{instead}"}}"#),
        None => too_large_response(id),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use futures_util::FutureExt as _;
    use openclaw_secrets::Redactor;
    use tokio::task::unconstrained;

    use super::*;

    fn log(bytes: usize) -> Vec<u8> {
        let data = json!({ "level": "info", "data": "x".repeat(bytes) });
        let method = "notifications/message";
        json!({ "jsonrpc": "2.0", "method": method, "params": data }).to_string().into()
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes_and_in_messages() {
        let skipped = SkippedLines::from("x", &Redactor::new());
        for (size, most) in [(1, MESSAGES), (MAX_PARSED / 2, 3)] {
            let (to_rmcp, mut from_server) = channel();
            let line = log(size);
            let fits = |when_full| {
                // Without the budget of the test's own task.
                let sending = unconstrained(to_rmcp.send(&line, None, when_full, &skipped));
                sending.now_or_never().is_some()
            };
            let sent = std::iter::repeat_with(|| fits(WhenFull::Wait)).take_while(|fits| *fits);
            assert_eq!(sent.count(), most, "{size} bytes each");
            assert!(fits(WhenFull::Drop), "does not wait");
            drop(from_server.recv().await);
            assert!(fits(WhenFull::Wait), "there is room again");
        }
    }

    #[tokio::test]
    async fn a_request_with_a_credential_in_a_name_is_answered_but_not_passed_on() {
        let redactor = Redactor::new();
        redactor.add_credentials([&"hunter22-and-more".into()]);
        let skipped = SkippedLines::from("x", &redactor);
        let (to_rmcp, mut from_server) = channel();
        for (schema, is_passed_on) in [
            (json!({ "properties": { "a": { "title": "hunter22-and-more" } } }), true),
            (json!({ "properties": { "hunter22-and-more": {} } }), false),
            (json!({ "properties": { "a": { "enum": ["hunter22-and-more"] } } }), false),
        ] {
            let params = json!({ "message": "a", "requestedSchema": schema });
            let method = "elicitation/create";
            let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
            let line = line.to_string();
            to_rmcp.send(line.as_bytes(), None, WhenFull::Wait, &skipped).await.unwrap();
            let received = from_server.recv().await.unwrap().message;
            let received = serde_json::to_string(&received).unwrap();
            assert!(!received.contains("hunter22"), "{received}");
            assert_eq!(!received.contains(GIVES_AWAY), is_passed_on, "{received}");
        }
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_is_answered_but_not_parsed() {
        let skipped = SkippedLines::from("x", &Redactor::new());
        let (to_rmcp, mut from_server) = channel();
        let padding = "x".repeat(MAX_PARSED);
        for line in [
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": padding }),
            json!({ "jsonrpc": "2.0", "id": "a", "method": "ping", "params": padding }),
            json!({ "jsonrpc": "2.0", "id": 7, "result": { "a": padding } }),
        ] {
            to_rmcp
                .send(line.to_string().as_bytes(), None, WhenFull::Wait, &skipped)
                .await
                .unwrap();
        }
        let long_id = json!({ "jsonrpc": "2.0", "id": "x".repeat(MAX_ID + 1), "method": "ping" });
        to_rmcp.send(long_id.to_string().as_bytes(), None, WhenFull::Wait, &skipped).await.unwrap();
        let request = from_server.recv().await.unwrap().message;
        assert!(serde_json::to_string(&request).unwrap().contains(TOO_LARGE), "{request:?}");
        let response = from_server.recv().await.unwrap().message;
        assert!(matches!(&response, JsonRpcMessage::Error(_)), "{response:?}");
        assert!(from_server.recv().now_or_never().is_none(), "the others are skipped");
    }
}
