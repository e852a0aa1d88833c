//! Reads and writes messages; only the fields that are needed are parsed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::script::RpcError;

/// Text that is borrowed from the line unless it contains escapes.
#[derive(Deserialize, Clone)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The envelope of a JSON-RPC message.
#[derive(Deserialize)]
pub(crate) struct Incoming<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

/// The parameters of all methods that the server knows.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uri: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) cursor: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) argument: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) task: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) protocol_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) request_state: Option<Text<'a>>,
    #[serde(borrow, rename = "_meta", default)]
    pub(crate) meta: Meta<'a>,
}

/// The `_meta` fields that 2026-07-28 requires in every request, and the progress token of all
/// versions.
#[derive(Deserialize, Default)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<Text<'a>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<&'a RawValue>,
}

/// A request with parsed parameters.
pub(crate) struct Request<'a> {
    pub(crate) id: &'a RawValue,
    pub(crate) params: Params<'a>,
    /// Whether it is a request of 2026-07-28.
    pub(crate) modern: bool,
}

impl Request<'_> {
    pub(crate) fn name(&self) -> &str {
        self.params.name.as_ref().map_or("", |name| &name.0)
    }
}

/// Parses parameters; absent ones are equivalent to empty ones.
pub(crate) fn params(raw: Option<&RawValue>) -> Result<Params<'_>, RpcError> {
    raw.map_or_else(
        || Ok(Params::default()),
        |raw| {
            serde_json::from_str(raw.get())
                .map_err(|error| RpcError::new(-32602, format!("Invalid params: {error}")))
        },
    )
}

/// A response with these members of the result (`"content":[…]`, without braces).
pub(crate) fn response(id: &str, members: &[u8], modern: bool) -> Vec<u8> {
    let mut line = Vec::with_capacity(members.len() + 96);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    line.extend_from_slice(id.as_bytes());
    line.extend_from_slice(br#","result":{"#);
    line.extend_from_slice(members);
    // Every result of 2026-07-28 has a type.
    if modern && !members.starts_with(br#""resultType""#) {
        if !members.is_empty() {
            line.push(b',');
        }
        line.extend_from_slice(br#""resultType":"complete""#);
    }
    line.extend_from_slice(b"}}");
    line
}

/// An error response; `id` is JSON, `null` if the request had no readable id.
pub(crate) fn error(id: &str, error: &RpcError) -> Vec<u8> {
    let error = serde_json::to_string(error).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}

/// A notification.
pub(crate) fn notification(method: &str, params: &serde_json::Value) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).into_bytes()
}

/// Appends `text` as a JSON string.
pub(crate) fn push_string(line: &mut Vec<u8>, text: &str) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(line, text);
}

/// The members of a result that is one text.
pub(crate) fn text_members(text: &str) -> Vec<u8> {
    let mut members = Vec::with_capacity(text.len() + 48);
    members.extend_from_slice(br#""content":[{"type":"text","text":"#);
    push_string(&mut members, text);
    members.extend_from_slice(b"}]");
    members
}
