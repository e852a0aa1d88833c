//! Replies to a client, as JSON text.

use openclaw_budget::BudgetSpent;
use openclaw_tools::{RawReply, RefusedBy, ToolOutcome};
use serde_json::{Value, json};

use super::segments::Segments;

/// The JSON-RPC error codes.
pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const BUSY: i64 = -32000;
/// Since 2026-07-28.
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HubReply {
    /// A result.
    Result(String),
    /// An error: an object with `code` and `message`.
    Error(String),
}

impl HubReply {
    /// An error in our own words.
    pub(super) fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({ "code": code, "message": message }).to_string())
    }

    /// The error for what there is no memory for.
    pub(super) fn busy(spent: BudgetSpent) -> Self {
        Self::error(BUSY, &spent.to_string())
    }

    /// The size of its JSON.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Result(json) | Self::Error(json) => json.len(),
        }
    }

    /// The reply to a call that was cancelled, where there must be one.
    pub(super) fn cancelled() -> Self {
        Self::error(BUSY, "cancelled")
    }

    /// Returns the reply for the outcome of a call. What we refuse is a result that is an error, so
    /// that a model can read why; an unknown tool is an error of the protocol.
    pub(super) fn of_call(mut outcome: ToolOutcome, wraps: bool) -> Self {
        match outcome.details.raw.take() {
            Some(RawReply::Result(json)) => return Self::Result(json),
            Some(RawReply::Error(json)) => return Self::Error(json),
            None => {}
        }
        if outcome.details.refused == Some(RefusedBy::UnknownTool) {
            return Self::error(INVALID_PARAMS, &outcome.text());
        }
        let text = if wraps { outcome.rendered() } else { outcome.text() };
        Self::text(&text, outcome.is_error)
    }

    /// Returns the reply for the outcome of another request.
    pub(super) fn of_request(mut outcome: ToolOutcome, wraps: bool) -> Self {
        match outcome.details.raw.take() {
            Some(RawReply::Result(json)) => Self::Result(json),
            Some(RawReply::Error(json)) => Self::Error(json),
            None => {
                let text = if wraps { outcome.rendered() } else { outcome.text() };
                Self::error(BUSY, &text)
            }
        }
    }

    /// The result of a call that consists of one text.
    pub(super) fn text(text: &str, is_error: bool) -> Self {
        let content = json!([{ "type": "text", "text": text }]);
        Self::Result(json!({ "content": content, "isError": is_error }).to_string())
    }

    /// Adds the `resultType` that results have since 2026-07-28, for a result of an older server.
    pub(super) fn typed(self) -> Self {
        match self {
            Self::Result(json) if !json.contains("\"resultType\"") => {
                let rest = json.trim_start().strip_prefix('{').unwrap_or_default().trim_start();
                let comma = if rest.starts_with('}') { "" } else { "," };
                Self::Result(format!("{{\"resultType\":\"complete\"{comma}{rest}"))
            }
            other => other,
        }
    }

    /// Returns the code of an error.
    pub(super) fn code(&self) -> Option<i64> {
        #[derive(serde::Deserialize)]
        struct Code {
            code: i64,
        }
        match self {
            Self::Result(_) => None,
            Self::Error(json) => serde_json::from_str(json).ok().map(|Code { code }| code),
        }
    }

    /// Returns the value of a result.
    ///
    /// # Errors
    /// The error.
    pub(super) fn into_value(self) -> Result<Value, Value> {
        let parse = |json: String| serde_json::from_str(&json).unwrap_or_default();
        match self {
            Self::Result(json) => Ok(parse(json)),
            Self::Error(json) => Err(parse(json)),
        }
    }

    /// Returns the message with this reply, on one line.
    pub(super) fn into_message(self, id: &str) -> Vec<u8> {
        let (start, json) = match self {
            Self::Result(json) => (",\"result\":", json),
            Self::Error(json) => (",\"error\":", json),
        };
        let json = on_one_line(json);
        [br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), start.as_bytes(), json.as_slice(), b"}"]
            .concat()
    }

    /// Appends the line with this reply.
    pub(super) fn write_line(self, id: &str, out: &mut Segments) {
        let (member, json) = match self {
            Self::Result(json) => (",\"result\":", json),
            Self::Error(json) => (",\"error\":", json),
        };
        out.push_all(&[br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), member.as_bytes()]);
        out.push_owned(on_one_line(json));
        out.push(b"}\n");
    }
}

/// Line breaks occur only between the tokens of JSON, where a space is equivalent.
fn on_one_line(json: String) -> Vec<u8> {
    let mut json = json.into_bytes();
    if memchr::memchr2(b'\n', b'\r', &json).is_some() {
        for byte in &mut json {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_line_whatever_the_servers_formatting() {
        let mut out = Segments::default();
        HubReply::Result("{\n  \"a\": 1\r\n}".to_owned()).write_line("\"x\"", &mut out);
        let line = String::from_utf8(out.front().to_vec()).unwrap();
        assert_eq!(line, r#"{"jsonrpc":"2.0","id":"x","result":{   "a": 1  }}"#.to_owned() + "\n");
        let message = HubReply::Error("{\n}".to_owned()).into_message("7");
        assert_eq!(message, br#"{"jsonrpc":"2.0","id":7,"error":{ }}"#);
    }

    #[test]
    fn results_of_older_servers_get_a_type() {
        let typed = |json: &str| HubReply::Result(json.to_owned()).typed().into_value().unwrap();
        assert_eq!(typed("{}"), json!({ "resultType": "complete" }));
        assert_eq!(typed("{ \"a\":1}"), json!({ "resultType": "complete", "a": 1 }));
        let asks = json!({ "resultType": "input_required" });
        assert_eq!(typed(&asks.to_string()), asks);
    }
}
