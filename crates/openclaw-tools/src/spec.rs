//! What an agent is told about a tool.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::name::ToolName;

/// What an agent is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: ToolName,
    /// What people call it: `MCP: files/read`.
    pub label: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// What it does to the world.
    pub effect: Effect,
}

impl ToolSpec {
    /// A schema as it is written down in a program: an object, or else nothing is asked of arguments.
    pub fn schema(schema: Value) -> Arc<Map<String, Value>> {
        match schema {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        }
    }
}

/// What a tool does to the world, as far as is known. Its source says so; that may be a lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// It only looks.
    ReadOnly,
    /// It may change something.
    #[default]
    Unknown,
    /// It may destroy something.
    Destructive,
}
