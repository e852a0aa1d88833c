//! The tools that a session lends to the gateway: those of its MCP servers and those of the editor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openclaw_tools::ToolEffect;
use serde_json::{Map, Value, json};

/// A tool that a session lends to the gateway.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditorLentTool {
    /// The name that the model sees.
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) description: String,
    pub(crate) schema: Arc<Map<String, Value>>,
    pub(crate) effect: ToolEffect,
    pub(crate) owner: LentToolOwner,
}

/// What executes a lent tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LentToolOwner {
    /// The session's MCP servers, under this name.
    Servers(String),
    /// The editor.
    Editor,
}

/// The outcome of a call of a lent tool.
#[derive(Debug, Default)]
pub(crate) struct LentToolOutcome {
    /// What the model sees: blocks as in MCP.
    pub(crate) content: Vec<Value>,
    /// What the user sees, if it is not the same.
    pub(crate) for_user: Option<Vec<Value>>,
    pub(crate) is_error: bool,
}

impl LentToolOutcome {
    /// An error without a result.
    pub(crate) fn failed(message: &str) -> Self {
        Self { is_error: true, ..Self::done(message) }
    }

    pub(crate) fn done(text: &str) -> Self {
        Self { content: vec![text_block(text)], ..Self::default() }
    }
}

/// A block of text, as in MCP.
pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The tools that a session has lent.
#[derive(Debug, Default)]
pub(crate) struct EditorLentTools(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// `None` before the first time.
    lent: Option<Vec<EditorLentTool>>,
    /// The revision of the servers' lists that they were taken from.
    revision: Option<u64>,
    /// Those that the user always allows, as they were then.
    allowed: Vec<EditorLentTool>,
}

impl EditorLentTools {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, name: &str) -> Option<EditorLentTool> {
        self.lock().lent.iter().flatten().find(|tool| tool.name == name).cloned()
    }

    /// Returns whether those that are lent were taken from this revision.
    pub(crate) fn has_revision(&self, revision: Option<u64>) -> bool {
        let state = self.lock();
        state.lent.is_some() && state.revision == revision
    }

    /// Records the revision of these tools. Returns whether they are lent already.
    pub(crate) fn set_revision(&self, revision: Option<u64>, tools: &[EditorLentTool]) -> bool {
        let mut state = self.lock();
        state.revision = revision;
        state.lent.as_deref() == Some(tools)
    }

    /// Records the tools that are lent; `None` if they have to be lent again.
    pub(crate) fn set(&self, tools: Option<Vec<EditorLentTool>>) {
        self.lock().lent = tools;
    }

    /// Allows a tool, as long as it stays as it is.
    pub(crate) fn allow(&self, tool: EditorLentTool) {
        self.lock().allowed.push(tool);
    }

    pub(crate) fn is_allowed(&self, tool: &EditorLentTool) -> bool {
        self.lock().allowed.contains(tool)
    }
}
