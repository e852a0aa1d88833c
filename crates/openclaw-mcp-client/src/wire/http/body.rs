//! Size-limited reading of response bodies.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit};
use openclaw_secrets::Redactor;

use super::http_client::{HttpError, PooledBody};
use crate::wire::call_error::{CallError, UnusableResponse};

/// Maximum size of an error body: enough for a JSON-RPC error.
pub(super) const MAX_FAILURE: usize = 64 * 1024;
/// Maximum number of characters that are shown.
const SHOWN: usize = 200;

/// The content type of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyType {
    Json,
    Events,
    /// Another content type; empty if there is none.
    Other(String),
}

/// Returns the content type of a response.
pub(super) fn form(response: &Response<PooledBody>) -> BodyType {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        BodyType::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        BodyType::Events
    } else {
        BodyType::Other(printable(kind.as_bytes()))
    }
}

/// Rejects a compressed response: it was not requested, and a few bytes could expand to gigabytes.
pub(super) fn refuse_compressed(response: &Response<PooledBody>) -> Result<(), CallError> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let encoding = printable(encoding.as_bytes());
            Err(UnusableResponse::Compressed { encoding }.into())
        }
        _ => Ok(()),
    }
}

/// Reads a whole body, with the memory that it takes; fails if it is larger than `bound`.
pub(super) async fn whole(
    response: Response<PooledBody>,
    bound: usize,
    budget: &Arc<ByteBudget>,
    broken: impl Fn(&HttpError) -> CallError,
) -> Result<(Bytes, BytePermit), CallError> {
    let mut memory = budget.permit();
    let mut response = response.into_body();
    let mut body = Bytes::new();
    let mut pieces = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(|error| broken(&error))? {
        if body.len() + pieces.len() + piece.len() > bound {
            return Err(UnusableResponse::TooLarge { mib: bound / 1024 / 1024 }.into());
        }
        memory.resize(body.len() + pieces.len() + piece.len()).map_err(too_many)?;
        // Most bodies are a single chunk, which is not copied.
        if body.is_empty() && pieces.is_empty() {
            body = piece;
            continue;
        }
        pieces.extend_from_slice(&std::mem::take(&mut body));
        pieces.extend_from_slice(&piece);
    }
    Ok((if pieces.is_empty() { body } else { pieces.freeze() }, memory))
}

/// The error for a response without memory for it.
pub(super) fn too_many(spent: BudgetSpent) -> UnusableResponse {
    let (BudgetSpent::Own(most) | BudgetSpent::Whole(most)) = spent;
    UnusableResponse::TooManyBytes { most }
}

/// Reads up to `bound` bytes of a body; fewer if the connection breaks.
pub(super) async fn beginning(response: Response<PooledBody>, bound: usize) -> Bytes {
    let mut response = response.into_body();
    let mut body = BytesMut::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece[..piece.len().min(bound - body.len())]);
        if body.len() == bound {
            break;
        }
    }
    body.freeze()
}

/// Returns the beginning of a body for display. Secrets are redacted before truncation: a truncated
/// secret would not be found.
pub(super) fn shown(bytes: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_FAILURE)]);
    printable(redactor.redact(&text).as_bytes())
}

/// Returns the beginning of a text on one line, without control characters.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN).collect()
}
