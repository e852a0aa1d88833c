//! A model that plays a script and records its requests, for tests of the crates that use models.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use openclaw_tools::schema::SchemaDialect;

use crate::error::ModelError;
use crate::message::ToolUse;
use crate::model::{Chunk, Model, ModelRequest, StopReason};

/// One answer of the script.
#[derive(Debug, Clone, Default)]
pub struct ScriptedTurn {
    /// Its chunks, in order.
    pub chunks: Vec<Result<Chunk, ModelError>>,
    /// Whether the stream stays open after them, without another chunk.
    pub hangs: bool,
}

impl ScriptedTurn {
    /// Answers with a text.
    pub fn says(text: &str) -> Self {
        Self::from(vec![Chunk::Text(text.to_owned()), Chunk::End(StopReason::Done)])
    }

    /// Requests calls: pairs of a tool's name and its arguments. The ids are `call-1`, `call-2`, …
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let numbered = (1..).zip(calls);
        let uses = numbered.map(|(number, (name, arguments))| {
            Chunk::ToolUse(ToolUse {
                id: format!("call-{number}"),
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
            })
        });
        let end = Chunk::End(StopReason::ToolUse);
        Self::from(uses.chain([end]).collect::<Vec<_>>())
    }

    /// Fails.
    pub fn fails(error: ModelError) -> Self {
        Self { chunks: vec![Err(error)], hangs: false }
    }

    /// Keeps the stream open after its chunks, without an end.
    #[must_use]
    pub fn then_hangs(mut self) -> Self {
        self.chunks.retain(|chunk| !matches!(chunk, Ok(Chunk::End(_))));
        self.hangs = true;
        self
    }
}

impl From<Vec<Chunk>> for ScriptedTurn {
    fn from(chunks: Vec<Chunk>) -> Self {
        Self { chunks: chunks.into_iter().map(Ok).collect(), hangs: false }
    }
}

/// A model that plays a script.
#[derive(Debug)]
pub struct Scripted {
    turns: Mutex<VecDeque<ScriptedTurn>>,
    requests: Mutex<Vec<ModelRequest>>,
    context_tokens: u64,
}

impl Scripted {
    /// Creates a model that gives these answers, one for each request, and then fails.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self {
            turns: Mutex::new(turns.into_iter().collect()),
            requests: Mutex::default(),
            context_tokens: 100_000,
        }
    }

    /// Sets the size of the context window.
    #[must_use]
    pub fn with_context_tokens(mut self, context_tokens: u64) -> Self {
        self.context_tokens = context_tokens;
        self
    }

    /// Adds an answer to the end of the script.
    pub fn push(&self, turn: ScriptedTurn) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn dialect(&self) -> SchemaDialect {
        SchemaDialect::Plain
    }

    fn context_tokens(&self) -> u64 {
        self.context_tokens
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let next = self.turns.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let turn = next.unwrap_or_else(|| {
            ScriptedTurn::fails(ModelError::invalid("the script has no answer to this request"))
        });
        let rest = if turn.hangs { stream::pending().boxed() } else { stream::empty().boxed() };
        stream::iter(turn.chunks).chain(rest).boxed()
    }
}
