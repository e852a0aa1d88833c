//! What can be seen of a turn while it runs.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_models::{Part, Usage};
use openclaw_tools::{Failure, Progress};

/// Something that happened in a turn.
#[derive(Debug, Clone)]
pub enum Event {
    /// A piece of the answer.
    Text(String),
    /// A piece of what the model thinks to itself.
    Reasoning(String),
    /// A picture or a sound of the answer.
    Part(Part),
    /// A tool is called.
    CallStarted(CallStarted),
    /// A call has got further.
    CallProgress(CallProgress),
    /// A call is over.
    CallEnded(CallEnded),
    /// What a request to the model cost.
    Usage(Usage),
    /// Something that people should know: a tool was left out, history was compacted. Our own words.
    Notice(String),
}

/// A tool is called.
#[derive(Debug, Clone)]
pub struct CallStarted {
    /// The model's name for the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
}

/// A call has got further: the latest that its server reports, a few times a second at most.
#[derive(Debug, Clone)]
pub struct CallProgress {
    /// The model's name for the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// How far it has got.
    pub progress: Progress,
}

/// A call is over.
#[derive(Debug, Clone)]
pub struct CallEnded {
    /// The model's name for the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What came back.
    pub text: String,
    /// Whether something from outside is in it.
    pub untrusted: bool,
    /// How long it took.
    pub duration: Duration,
    /// Why there is no result of the tool's own, if there is none.
    pub failure: Option<Failure>,
    /// What is suspicious in it.
    pub findings: Vec<String>,
    /// The file that holds the whole, if only its beginning is shown.
    pub kept_in: Option<PathBuf>,
}

/// Somebody who watches a turn. What it does with an event must not take long.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn see(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> Observer for F {
    fn see(&self, event: Event) {
        self(event);
    }
}
