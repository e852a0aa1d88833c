//! The tools that a client lends to a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

/// Parameters of `sessions.setExtraTools` (ours): the tools that a client lends to a session. They
/// replace those lent before. Messages of a client that has lent tools, or an empty list of them,
/// use its tools only; messages of others use all. Calls arrive as `node.invoke.request` events and
/// are answered with `node.invoke.result`; the tools are removed when the connection closes.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetExtraToolsParams {
    /// Session key.
    pub session_key: String,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Tools; an empty list removes the earlier ones.
    pub tools: Vec<ExtraTool>,
}

/// A tool that a client lends.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtraTool {
    /// Name, as shown to the model.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Option<ExtraToolSchema>,
    /// Whether it changes nothing.
    pub read_only: Option<bool>,
    /// Timeout of a call, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// The JSON Schema of the arguments of a lent tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Box<RawValue>")]
pub enum ExtraToolSchema {
    /// As a client sent it.
    Json(Box<RawValue>),
    /// Of a client in the same process, which has made it fit for models. It is JSON if it is sent.
    Shared(Arc<Map<String, Value>>),
}

impl From<Box<RawValue>> for ExtraToolSchema {
    fn from(json: Box<RawValue>) -> Self {
        Self::Json(json)
    }
}

impl Serialize for ExtraToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(json) => json.serialize(serializer),
            Self::Shared(schema) => schema.serialize(serializer),
        }
    }
}

/// Result of `sessions.setExtraTools`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetExtraToolsResult {
    /// Always `true`.
    pub ok: bool,
    /// Model-facing names, in the order of the request.
    pub tools: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shared_schema_is_sent_as_json_and_never_received() {
        let Value::Object(schema) = json!({ "type": "object", "required": ["a"] }) else {
            panic!("not an object")
        };
        let parameters = Some(ExtraToolSchema::Shared(Arc::new(schema)));
        let tool = ExtraTool { name: "t".to_owned(), parameters, ..ExtraTool::default() };
        let sent = serde_json::to_string(&tool).unwrap();
        assert!(sent.contains(r#""parameters":{"type":"object","required":["a"]}"#), "{sent}");
        let received: ExtraTool = serde_json::from_str(&sent).unwrap();
        // What a client sends over a socket is checked by the gateway.
        let Some(ExtraToolSchema::Json(json)) = received.parameters else { panic!("not JSON") };
        assert_eq!(json.get(), r#"{"type":"object","required":["a"]}"#);
    }
}
