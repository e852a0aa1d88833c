//! Events of a running turn.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_models::{Part, Usage};
use openclaw_tools::{Progress, RefusedBy, ToolFailure};

/// An event of a turn.
#[derive(Debug, Clone)]
pub enum LoopEvent {
    /// A piece of the answer.
    Text(String),
    /// A piece of the model's reasoning.
    Reasoning(String),
    /// An image or audio part of the answer.
    Part(Part),
    /// A tool call started.
    CallStarted(CallStarted),
    /// A tool call reported progress.
    CallProgress(CallProgress),
    /// A tool call ended.
    CallEnded(CallEnded),
    /// Token usage of a request to the model.
    Usage {
        /// The usage.
        usage: Usage,
        /// The context window of the model, in tokens.
        window: u64,
    },
    /// A notice for the user: a tool was omitted, history was compacted. Written by us, not by a
    /// model or server.
    Notice(String),
}

/// A tool call started.
#[derive(Debug, Clone)]
pub struct CallStarted {
    /// The model's id for the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Display name of the tool.
    pub label: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
}

/// A tool call reported progress. Holds the latest value, at most a few times a second.
#[derive(Debug, Clone)]
pub struct CallProgress {
    /// The model's id for the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The progress.
    pub progress: Progress,
}

/// A tool call ended.
#[derive(Debug, Clone)]
pub struct CallEnded {
    /// The model's id for the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// The result as text.
    pub text: String,
    /// Whether it contains content from outside.
    pub untrusted: bool,
    /// How long the call took.
    pub duration: Duration,
    /// Why the tool returned no result of its own, if so.
    pub failure: Option<ToolFailure>,
    /// The check that refused the call, if one did.
    pub refused: Option<RefusedBy>,
    /// Names of suspicious patterns found in it.
    pub findings: Vec<String>,
    /// The file with the full result, if the result was truncated.
    pub kept_in: Option<PathBuf>,
}

/// Receives the events of a turn. Must not block.
pub trait Observer: Send + Sync {
    /// Handles an event.
    fn see(&self, event: LoopEvent);
}

impl<F: Fn(LoopEvent) + Send + Sync> Observer for F {
    fn see(&self, event: LoopEvent) {
        self(event);
    }
}
