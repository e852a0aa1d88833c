//! The host side for the suite's servers: a user who accepts everything, and a model with a fixed
//! answer.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_mcp_client::host::{
    ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor, Sampler, SamplingRequest,
};
use serde_json::{Map, Value, json};

/// Accepts every elicitation, and fills forms with their defaults; a field without one gets a valid
/// value.
pub(crate) struct Defaults;

impl Elicitor for Defaults {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        let answer = match question.wanted {
            ElicitationKind::Form(schema) => ElicitationAnswer::Accept(Some(filled(&schema))),
            ElicitationKind::Visit(_) => ElicitationAnswer::Accept(None),
        };
        async { answer }.boxed()
    }
}

fn filled(schema: &Value) -> Value {
    let nothing = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    let values = properties.iter().map(|(name, property)| (name.clone(), value(property)));
    Value::Object(values.collect())
}

fn value(property: &Value) -> Value {
    if let Some(default) = property.get("default") {
        return default.clone();
    }
    if let Some(first) = property.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => json!(true),
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or(json!(1)),
        Some("array") => json!([]),
        _ => json!("yes"),
    }
}

/// Answers every sampling request with the same text.
pub(crate) struct Echo;

impl Sampler for Echo {
    fn create_message(&self, _request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>> {
        let message = json!({
            "role": "assistant",
            "content": { "type": "text", "text": "Test response." },
            "model": "none",
            "stopReason": "endTurn",
        });
        async { Ok(message) }.boxed()
    }
}
