//! Replies to a client, as JSON text.

use openclaw_budget::BudgetSpent;
use openclaw_tools::{RawReply, RefusedBy, ToolOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::segments::Segments;
use crate::input::ClientQuestion;
use crate::input::parked::input_required;
use crate::input::state::{StateOrigin, StateSeal};

/// The JSON-RPC error codes.
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
pub(crate) const BUSY: i64 = -32000;
/// Since 2026-07-28.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The client of a request, as far as its replies differ by it.
#[derive(Clone, Copy)]
pub(crate) enum ReplyTo<'a> {
    /// One with a handshake.
    Legacy,
    /// One since 2026-07-28, with what seals the states of its requests, and this request.
    Modern(&'a StateSeal, StateOrigin<'a>),
}

/// A result with everything that the era of its client demands. There is no other way to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultJson(String);

impl ResultJson {
    /// Completes a result, which may be that of a server of another era. It is not parsed, unless it
    /// asks for input or is unusual.
    pub(crate) fn new(json: String, to: ReplyTo<'_>) -> Self {
        let ReplyTo::Modern(seal, origin) = to else { return Self(json) };
        match ResultType::find(&json) {
            ResultType::Complete => Self(json),
            ResultType::Missing => {
                let rest = json.trim_start().strip_prefix('{').unwrap_or_default().trim_start();
                let comma = if rest.starts_with('}') { "" } else { "," };
                Self(format!("{{\"resultType\":\"complete\"{comma}{rest}"))
            }
            ResultType::InputRequired => {
                let mut result = serde_json::from_str(&json).unwrap_or_default();
                seal.seal_result(&mut result, origin);
                Self(result.to_string())
            }
            ResultType::Invalid => {
                let mut result = serde_json::from_str::<Value>(&json).unwrap_or_default();
                result["resultType"] = json!("complete");
                Self(result.to_string())
            }
        }
    }
}

/// The `resultType` of a result.
enum ResultType {
    /// There is none, as before 2026-07-28.
    Missing,
    /// Complete, or another one that does not ask for input.
    Complete,
    /// It asks for input.
    InputRequired,
    /// It is not a string, or there are several.
    Invalid,
}

impl ResultType {
    fn find(json: &str) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed<'a> {
            #[serde(borrow, default)]
            result_type: Option<&'a RawValue>,
        }
        // The usual cases are recognized quickly. In a string, the quotes would be escaped; elsewhere,
        // it is a member of another object.
        if !json.contains("\"resultType\"") {
            return Self::Missing;
        }
        if json.ends_with(",\"resultType\":\"complete\"}")
            || json.starts_with("{\"resultType\":\"complete\",")
        {
            return Self::Complete;
        }
        match serde_json::from_str::<Typed<'_>>(json) {
            Ok(Typed { result_type: None }) => Self::Missing,
            Ok(Typed { result_type: Some(found) }) => match found.get() {
                "\"input_required\"" => Self::InputRequired,
                found if found.starts_with('"') => Self::Complete,
                _ => Self::Invalid,
            },
            Err(_) => Self::Invalid,
        }
    }
}

/// A reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HubReply {
    /// A result.
    Result(ResultJson),
    /// An error: an object with `code` and `message`.
    Error(String),
}

impl HubReply {
    /// A result.
    pub(crate) fn result(json: String, to: ReplyTo<'_>) -> Self {
        Self::Result(ResultJson::new(json, to))
    }

    /// An error in our own words.
    pub(crate) fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({ "code": code, "message": message }).to_string())
    }

    /// The error for what there is no memory for.
    pub(crate) fn busy(spent: BudgetSpent) -> Self {
        Self::error(BUSY, &spent.to_string())
    }

    /// The size of its JSON.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Result(ResultJson(json)) | Self::Error(json) => json.len(),
        }
    }

    /// The reply to a call that was cancelled, where there must be one.
    pub(crate) fn cancelled() -> Self {
        Self::error(BUSY, "cancelled")
    }

    /// The result that asks a client since 2026-07-28, with the sealed state of the call.
    pub(crate) fn asking(question: &ClientQuestion, state: &str) -> Self {
        Self::Result(ResultJson(input_required(question, state).to_string()))
    }

    /// Returns the reply for the outcome of a call. What we refuse is a result that is an error, so
    /// that a model can read why; what the client got wrong is an error of the protocol.
    pub(crate) fn of_call(mut outcome: ToolOutcome, wraps: bool, to: ReplyTo<'_>) -> Self {
        match outcome.details.raw.take() {
            Some(RawReply::Result(json)) => return Self::result(json, to),
            Some(RawReply::Error(json)) => return Self::Error(json),
            None => {}
        }
        if let Some(RefusedBy::UnknownTool | RefusedBy::UnaskedInput) = outcome.details.refused {
            return Self::error(INVALID_PARAMS, &outcome.text());
        }
        let text = if wraps { outcome.rendered() } else { outcome.text() };
        Self::text(&text, outcome.is_error, to)
    }

    /// Returns the reply for the outcome of another request.
    pub(crate) fn of_request(mut outcome: ToolOutcome, wraps: bool, to: ReplyTo<'_>) -> Self {
        match outcome.details.raw.take() {
            Some(RawReply::Result(json)) => Self::result(json, to),
            Some(RawReply::Error(json)) => Self::Error(json),
            None => {
                let text = if wraps { outcome.rendered() } else { outcome.text() };
                let is_unasked = outcome.details.refused == Some(RefusedBy::UnaskedInput);
                Self::error(if is_unasked { INVALID_PARAMS } else { BUSY }, &text)
            }
        }
    }

    /// The result of a call that consists of one text.
    pub(crate) fn text(text: &str, is_error: bool, to: ReplyTo<'_>) -> Self {
        let content = json!([{ "type": "text", "text": text }]);
        Self::result(json!({ "content": content, "isError": is_error }).to_string(), to)
    }

    /// Returns the code of an error.
    pub(crate) fn code(&self) -> Option<i64> {
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
    pub(crate) fn into_value(self) -> Result<Value, Value> {
        let parse = |json: String| serde_json::from_str(&json).unwrap_or_default();
        match self {
            Self::Result(ResultJson(json)) => Ok(parse(json)),
            Self::Error(json) => Err(parse(json)),
        }
    }

    /// Returns the message with this reply, on one line.
    pub(crate) fn into_message(self, id: &str) -> Vec<u8> {
        let (start, json) = match self {
            Self::Result(ResultJson(json)) => (",\"result\":", json),
            Self::Error(json) => (",\"error\":", json),
        };
        let json = on_one_line(json);
        [br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), start.as_bytes(), json.as_slice(), b"}"]
            .concat()
    }

    /// Appends the line with this reply.
    pub(crate) fn write_line(self, id: &str, out: &mut Segments) {
        let (member, json) = match self {
            Self::Result(ResultJson(json)) => (",\"result\":", json),
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
    use crate::input::state::Continues;

    const ORIGIN: StateOrigin<'_> =
        StateOrigin { client: 1, method: "tools/call", target: "a", arguments: "{}" };

    #[test]
    fn a_reply_is_one_line_whatever_the_servers_formatting() {
        let mut out = Segments::default();
        let reply = HubReply::result("{\n  \"a\": 1\r\n}".to_owned(), ReplyTo::Legacy);
        reply.write_line("\"x\"", &mut out);
        let line = String::from_utf8(out.front().to_vec()).unwrap();
        assert_eq!(line, r#"{"jsonrpc":"2.0","id":"x","result":{   "a": 1  }}"#.to_owned() + "\n");
        let message = HubReply::Error("{\n}".to_owned()).into_message("7");
        assert_eq!(message, br#"{"jsonrpc":"2.0","id":7,"error":{ }}"#);
    }

    #[test]
    fn every_result_has_a_type_of_its_own_since_2026_07_28() {
        let seal = StateSeal::default();
        let to = ReplyTo::Modern(&seal, ORIGIN);
        let completed = |json: &str| HubReply::result(json.to_owned(), to).into_value().unwrap();
        assert_eq!(completed("{}"), json!({ "resultType": "complete" }));
        for json in [
            // Of an older server: none, one within, one in a text, one that is no type.
            r#"{ "a":1}"#,
            r#"{"structuredContent":{"resultType":"complete"}}"#,
            r#"{"a":{"b":1,"resultType":"complete"}}"#,
            r#"{"content":[{"text":"{\"a\":1,\"resultType\":\"complete\"}"}]}"#,
            r#"{"resultType":7}"#,
            r#"{"resultType":"input_required","resultType":"complete"}"#,
            // Of a server of the same era.
            r#"{"a":1,"resultType":"complete"}"#,
            r#"{"resultType":"complete","a":1}"#,
        ] {
            let result = completed(json);
            assert_eq!(result["resultType"], "complete", "{json}");
            let members: Value = serde_json::from_str(json).unwrap();
            let others =
                members.as_object().unwrap().iter().filter(|(name, _)| *name != "resultType");
            for (name, value) in others {
                assert_eq!(result[name], *value, "{json}");
            }
        }
        let text = HubReply::text("x", false, to).into_value().unwrap();
        assert_eq!(text["resultType"], "complete");
        let task = json!({ "resultType": "task", "taskId": "1" });
        assert_eq!(completed(&task.to_string()), task);
    }

    #[test]
    fn earlier_clients_get_results_as_they_are() {
        for json in ["{}", r#"{"content":[],"isError":false}"#] {
            let reply = HubReply::result(json.to_owned(), ReplyTo::Legacy);
            assert_eq!(reply, HubReply::Result(ResultJson(json.to_owned())));
        }
    }

    #[test]
    fn the_state_of_a_server_is_sealed_for_the_request() {
        let seal = StateSeal::default();
        let json = json!({ "resultType": "input_required", "requestState": "theirs" }).to_string();
        let result = HubReply::result(json, ReplyTo::Modern(&seal, ORIGIN)).into_value().unwrap();
        let state = result["requestState"].as_str().unwrap();
        assert_eq!(seal.open(state, ORIGIN), Some(Continues::Server("theirs".to_owned())));
    }
}
