//! Tools, as each provider wants them written.

use std::sync::Arc;

use genai::chat::Tool;
use serde_json::{Value, json};

use crate::model::ToolOffer;
use crate::settings::ApiKind;

/// The value of the request's `tools`; none where there are none, or `genai` is to write them.
pub(super) fn native(kind: ApiKind, tools: &[Arc<ToolOffer>]) -> Option<Value> {
    if tools.is_empty() {
        return None;
    }
    let each = |write: fn(&ToolOffer) -> Value| -> Value {
        tools.iter().map(|tool| write(tool)).collect()
    };
    match kind {
        ApiKind::Anthropic => Some(each(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": *tool.schema,
            })
        })),
        ApiKind::OpenAi => Some(each(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": *tool.schema,
                },
            })
        })),
        ApiKind::OpenAiResponses => Some(each(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": *tool.schema,
                // Left out, it would mean yes, and most schemas are not strict.
                "strict": false,
            })
        })),
        ApiKind::Gemini => {
            let declarations = each(|tool| {
                let mut declaration = json!({ "name": tool.name, "description": tool.description });
                // It refuses an object without properties.
                let has_properties = tool.schema.get("properties").and_then(Value::as_object);
                if has_properties.is_some_and(|properties| !properties.is_empty()) {
                    declaration["parameters"] = (*tool.schema).clone();
                }
                declaration
            });
            Some(json!([{ "functionDeclarations": declarations }]))
        }
        ApiKind::Ollama => None,
    }
}

/// Tools for those to whom `genai` writes them as they are.
pub(super) fn plain(tools: &[Arc<ToolOffer>]) -> Vec<Tool> {
    let plain = |tool: &Arc<ToolOffer>| {
        Tool::new(tool.name.as_str())
            .with_description(&tool.description)
            .with_schema((*tool.schema).clone())
    };
    tools.iter().map(plain).collect()
}
