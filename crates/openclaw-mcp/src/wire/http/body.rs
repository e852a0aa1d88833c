//! Bodies of answers, read within bounds.

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use openclaw_secrets::Redactor;

use super::client::{Body, HttpError};
use crate::wire::call_error::{CallError, Unfit};

/// How much of a failure is read: enough for a JSON-RPC error.
pub(super) const MAX_FAILURE: usize = 64 * 1024;
/// How much of it is shown.
const SHOWN: usize = 200;

/// The form of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Events,
    /// Something else, or nothing that is said.
    Other(String),
}

/// The form that an answer claims to have.
pub(super) fn form(response: &Response<Body>) -> Form {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Form::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        Form::Events
    } else {
        Form::Other(printable(kind.as_bytes()))
    }
}

/// Nobody asked for compression, so nobody unpacks: a few bytes could become gigabytes.
pub(super) fn refuse_compressed(response: &Response<Body>) -> Result<(), CallError> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            let encoding = printable(encoding.as_bytes());
            Err(Unfit::Compressed { encoding }.into())
        }
        _ => Ok(()),
    }
}

/// All of a body; what is longer than the bound is an error.
pub(super) async fn whole(
    response: Response<Body>,
    bound: usize,
    broken: impl Fn(&HttpError) -> CallError,
) -> Result<Bytes, CallError> {
    let mut response = response.into_body();
    let mut body = Bytes::new();
    let mut pieces = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(|error| broken(&error))? {
        if body.len() + pieces.len() + piece.len() > bound {
            return Err(Unfit::TooLarge { mib: bound / 1024 / 1024 }.into());
        }
        // Most bodies are one piece, which need not be copied.
        if body.is_empty() && pieces.is_empty() {
            body = piece;
            continue;
        }
        pieces.extend_from_slice(&std::mem::take(&mut body));
        pieces.extend_from_slice(&piece);
    }
    Ok(if pieces.is_empty() { body } else { pieces.freeze() })
}

/// The beginning of a body; less if it breaks.
pub(super) async fn beginning(response: Response<Body>, bound: usize) -> Bytes {
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

/// The beginning of what somebody sent, as it may be shown. Secrets go first: one that is cut in half
/// would not be found any more.
pub(super) fn shown(bytes: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_FAILURE)]);
    printable(redactor.redact(&text).as_bytes())
}

/// The beginning of a few words that somebody sent.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN).collect()
}
