//! Descriptions of tools for agents.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::name::ToolName;

/// The description of a tool for agents.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Model-facing name.
    pub name: ToolName,
    /// Label for users, such as `MCP: files/read`.
    pub label: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// Side effects.
    pub effect: ToolEffect,
}

impl ToolSpec {
    /// Converts a schema literal; anything but an object becomes an empty schema, which accepts all
    /// arguments.
    pub fn schema(schema: Value) -> Arc<Map<String, Value>> {
        match schema {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        }
    }
}

/// Declared side effects of a tool. The declaration comes from its source and may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolEffect {
    /// It changes nothing.
    ReadOnly,
    /// It may change something.
    #[default]
    Unknown,
    /// It may destroy something.
    Destructive,
}
