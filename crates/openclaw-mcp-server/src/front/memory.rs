//! Bounds in bytes on what clients send, and on what waits for them.

use std::sync::Arc;

use bytes::Bytes;
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE, tree_bytes};

use super::incoming::IncomingMessage;

/// Maximum size of a message: a tool call with files as arguments.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Maximum size of a response, such as a completion with images.
const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Maximum size of a call that `rmcp` handles, because its client did not say all that it must.
pub(crate) const MAX_SLOW_CALL: usize = MAX_REQUEST;
/// Maximum size of a message that is parsed as a whole.
pub(crate) const MAX_PARSED: usize = MAX_RESPONSE;
/// Maximum memory of what is parsed as a whole, once it is a tree of values.
const MAX_TREE: usize = 8 * 1024 * 1024;
/// That of the request that begins a connection, which is kept: several hundred values.
const MAX_KEPT_TREE: usize = 128 * 1024;
/// Maximum size of another request.
const MAX_REQUEST: usize = 1024 * 1024;
/// Maximum size of a notification, and of the request that begins a connection, which is kept.
pub(crate) const MAX_SMALL: usize = 64 * 1024;
/// Maximum length of a URI.
pub(crate) const MAX_URI: usize = 8 * 1024;
/// Maximum length of the name of a tool or prompt, and of the id of a request.
pub(crate) const MAX_NAME: usize = 1024;
/// How many trees of values `rmcp` makes of a message at the same time: what may be of several types is
/// buffered, and requests are copied.
const PARSED: usize = 3;
/// The memory of a client in the user's own process.
pub(crate) const LOCAL: usize = 256 * 1024 * 1024;

/// A message that takes memory until it is dropped.
struct CountedMessage {
    message: Vec<u8>,
    _memory: BytePermit,
}

impl AsRef<[u8]> for CountedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

/// Returns a message that counts until it was written.
///
/// # Errors
/// If there is not enough memory for it.
pub(crate) fn counted(budget: &Arc<ByteBudget>, message: Vec<u8>) -> Result<Bytes, BudgetSpent> {
    if message.len() <= FREE {
        return Ok(message.into());
    }
    let memory = budget.hold(message.capacity())?;
    Ok(Bytes::from_owner(CountedMessage { message, _memory: memory }))
}

/// Returns the memory for a message that is parsed as a whole by `rmcp`.
///
/// # Errors
/// If there is not enough.
pub(crate) fn for_parsing(
    budget: &Arc<ByteBudget>,
    message: &[u8],
) -> Result<BytePermit, BudgetSpent> {
    let tree = tree_bytes(message).saturating_add(message.len());
    budget.hold(tree.saturating_mul(PARSED))
}

/// Returns the memory for JSON that becomes one tree of values.
///
/// # Errors
/// If there is not enough.
pub(crate) fn for_tree(budget: &Arc<ByteBudget>, json: &[u8]) -> Result<BytePermit, BudgetSpent> {
    budget.hold(tree_bytes(json).saturating_add(json.len()))
}

/// Returns the memory for the request that begins a connection, which is kept as long as that.
///
/// # Errors
/// If there is not enough.
pub(crate) fn for_handshake(
    budget: &Arc<ByteBudget>,
    message: &[u8],
) -> Result<BytePermit, BudgetSpent> {
    budget.hold_exactly(tree_bytes(message).saturating_add(message.len()))
}

/// Returns what is too large about a message.
pub(crate) fn too_large(message: &IncomingMessage<'_>, text: &[u8]) -> Option<&'static str> {
    use IncomingMessage::{BadState, Call, Cancel, Handshake, Notification, Request, Response};
    let has_long_id = match message {
        Call(call) => call.id.len() > MAX_NAME,
        Request(id) | BadState(id) | Handshake { id, .. } | Cancel(id) | Response(id) => {
            id.len() > MAX_NAME
        }
        _ => false,
    };
    let (most, words) = match message {
        Call(call) if call.name().len() > MAX_NAME => (0, "the name of the tool exceeds 1 KiB"),
        Call(_) => (MAX_MESSAGE, "the message exceeds 64 MiB"),
        Response(_) => (MAX_RESPONSE, "the response exceeds 8 MiB"),
        // It is kept as long as the connection.
        Handshake { .. } => (MAX_SMALL, "the request exceeds 64 KiB"),
        Cancel(_) | Notification => (MAX_SMALL, "the notification exceeds 64 KiB"),
        _ => (MAX_REQUEST, "the request exceeds 1 MiB, and is not a tool call"),
    };
    if has_long_id {
        return Some("the id exceeds 1 KiB");
    }
    if text.len() > most {
        return Some(words);
    }
    let (tree, most) = match message {
        Call(call) => (call.tree_bytes(), MAX_TREE),
        Handshake { .. } => (tree_bytes(text), MAX_KEPT_TREE),
        _ => (tree_bytes(text), MAX_TREE),
    };
    (tree > most).then_some("the message has too many values")
}
