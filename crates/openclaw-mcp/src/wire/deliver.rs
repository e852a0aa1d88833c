//! Brings each message to whoever waits for it: a call of the fast lane, or `rmcp`.

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::async_rw::JsonRpcMessageCodec;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;

use super::calls::{CallId, CallReply, Calls, Fault};
use super::peek::{Line, peek};
use super::progress;
use super::skipped::Skipped;
use crate::wire::json::{Json, JsonRef};

/// A message for `rmcp`.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// Where the calls are kept that wait.
pub(super) trait Waiters: Sync {
    /// Does something with them. They are locked for that moment.
    fn with_calls<T>(&self, act: impl FnOnce(&mut Calls) -> T) -> T;

    /// Where it is noted what is no message.
    fn skipped(&self) -> &Skipped;

    /// Whether `rmcp` takes what is for it. Before it does, only so much is kept for it: the answer that
    /// it waits for may come behind the rest.
    fn is_rmcp_there(&self) -> bool;
}

/// `rmcp` does not listen any more.
#[derive(Debug)]
pub(super) struct Gone;

/// Brings a message to whoever waits for it. The answer that the caller itself waits for is given back
/// to it, by the number of its request; an error that does not say what it is about is taken for one.
pub(super) async fn deliver(
    line: &[u8],
    wanted: Option<u64>,
    waiters: &impl Waiters,
    to_rmcp: &mpsc::Sender<Message>,
) -> Result<Option<CallReply>, Gone> {
    match peek(line) {
        Line::Answer(id, answer) if Some(id.number()) == wanted => Ok(Some(owned(answer))),
        Line::ToRmcp(id, answer) if Some(id) == wanted => Ok(Some(owned(answer))),
        Line::Unreadable(id) if Some(id.number()) == wanted => Ok(Some(Err(Fault::Unreadable))),
        Line::Nameless(error) if wanted.is_some() => Ok(Some(Err(Fault::Error(error.to_owned())))),
        Line::Answer(id, answer) => {
            hand_to_waiter(id, || owned(answer), waiters);
            Ok(None)
        }
        Line::Unreadable(id) => {
            hand_to_waiter(id, || Err(Fault::Unreadable), waiters);
            Ok(None)
        }
        Line::Progress(id) => {
            if let Some(watcher) = waiters.with_calls(|calls| calls.progressed(id)) {
                progress::tell(&watcher, line);
            }
            Ok(None)
        }
        Line::ToRmcp(..) | Line::Nameless(_) | Line::Other
            if !waiters.is_rmcp_there() && to_rmcp.capacity() == 0 =>
        {
            waiters.skipped().note(line);
            Ok(None)
        }
        Line::ToRmcp(..) | Line::Nameless(_) | Line::Other => {
            hand_over(line, waiters.skipped(), to_rmcp).await.map(|()| None)
        }
        Line::Batch(messages) => {
            let mut found = None;
            for message in messages {
                // One level deep: a batch within a batch is garbage.
                let line = message.get().as_bytes();
                if matches!(peek(line), Line::Batch(_) | Line::Garbage) {
                    waiters.skipped().note(line);
                } else {
                    let answer = Box::pin(deliver(line, wanted, waiters, to_rmcp)).await?;
                    found = found.or(answer);
                }
            }
            Ok(found)
        }
        Line::Garbage => {
            waiters.skipped().note(line);
            Ok(None)
        }
    }
}

fn owned(answer: Result<JsonRef<'_>, &RawValue>) -> CallReply {
    answer.map(Json::from).map_err(|error| Fault::Error(error.to_owned()))
}

fn hand_to_waiter(id: CallId, answer: impl FnOnce() -> CallReply, waiters: &impl Waiters) {
    // Nobody may wait any more: the call timed out, or the server answers twice.
    if let Some(Some(waiter)) = waiters.with_calls(|calls| calls.close(id)) {
        let _ = waiter.send(answer());
    }
}

/// Parses a message and gives it to `rmcp`.
pub(super) async fn hand_over(
    line: &[u8],
    skipped: &Skipped,
    to_rmcp: &mpsc::Sender<Message>,
) -> Result<(), Gone> {
    let mut bytes = BytesMut::with_capacity(line.len() + 1);
    // A line break in between would be taken for the end; in JSON a blank does as well.
    bytes.extend(line.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
    bytes.extend_from_slice(b"\n");
    match JsonRpcMessageCodec::<Message>::default().decode(&mut bytes) {
        Ok(Some(message)) => to_rmcp.send(message).await.map_err(|_| Gone),
        // A notification that MCP does not know.
        Ok(None) => Ok(()),
        Err(_) => {
            skipped.note(line);
            Ok(())
        }
    }
}
