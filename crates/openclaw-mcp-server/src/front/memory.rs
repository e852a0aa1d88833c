//! Bounds in bytes on what clients send, and on what waits for them.

use std::sync::Arc;

use bytes::Bytes;
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};

use super::incoming::IncomingMessage;

/// Maximum size of a message: a tool call with files as arguments.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// Maximum size of a response, such as a completion with images.
const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// Maximum size of a message that is parsed as a whole.
pub(crate) const MAX_PARSED: usize = 8 * 1024 * 1024;
/// Maximum size of another request.
const MAX_REQUEST: usize = 1024 * 1024;
/// Maximum size of a notification, and of the request that begins a connection, which is kept.
pub(crate) const MAX_SMALL: usize = 64 * 1024;
/// Maximum length of a URI.
pub(crate) const MAX_URI: usize = 8 * 1024;
/// Maximum length of the name of a tool or prompt, and of the id of a request.
pub(crate) const MAX_NAME: usize = 1024;
/// How many times as much memory as its text a message takes that is parsed as a whole.
const PARSED: usize = 8;
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

/// Returns the memory for a message that is parsed as a whole.
///
/// # Errors
/// If there is not enough.
pub(crate) fn for_parsing(
    budget: &Arc<ByteBudget>,
    bytes: usize,
) -> Result<BytePermit, BudgetSpent> {
    if bytes <= FREE { Ok(budget.permit()) } else { budget.hold(bytes.saturating_mul(PARSED)) }
}

/// Returns what is too large about a message of this size.
pub(crate) fn too_large(message: &IncomingMessage<'_>, size: usize) -> Option<&'static str> {
    use IncomingMessage::{Call, Cancel, Handshake, Notification, Request, Response};
    let has_long_id = match message {
        Call(call) => call.id.len() > MAX_NAME,
        Request(id) | Handshake { id, .. } | Cancel(id) | Response(id) => id.len() > MAX_NAME,
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
    if has_long_id { Some("the id exceeds 1 KiB") } else { (size > most).then_some(words) }
}
