//! What a model is: a name, a form of tool schemas, a window, and answers in pieces.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use openclaw_content::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;
use crate::message::{Message, Part, Reasoning, ToolUse};

/// A tool that the model may use.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments, in the form that the model's [`Dialect`] asks for.
    pub schema: Arc<Value>,
}

/// What a model is asked. A copy is cheap.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What it is told before all else, section by section; may be empty.
    pub system: Vec<Text>,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// The tools that it may use.
    pub tools: Vec<Arc<ToolOffer>>,
    /// The longest answer wanted; as long as the model can, if not given.
    pub max_output_tokens: Option<u32>,
    /// How random the answer may be; the provider's default if not given. Not every model takes it.
    pub temperature: Option<f64>,
    /// The answer ends before the first of these.
    pub stop_sequences: Vec<String>,
    /// Whether one of the tools must be used. Ollama's models are free in that.
    pub must_use_tool: bool,
}

/// A piece of an answer. The last one is [`Chunk::End`], or the stream ends with an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// More words.
    Text(String),
    /// More of the model's thinking, for people to see.
    Reasoning(String),
    /// A call, complete.
    ToolUse(ToolUse),
    /// A picture or a recording.
    Part(Part),
    /// What the provider wants to see again: it belongs into [`Message::Assistant`].
    Echo(Reasoning),
    /// What it took. If there are several, the last one counts.
    Usage(Usage),
    /// Nothing of the answer: the provider could not answer now, and is asked again a little later.
    Again {
        /// Why it could not.
        error: ModelError,
        /// When it is asked again.
        wait: Duration,
    },
    /// The answer is complete.
    End(StopReason),
}

/// How many tokens an answer took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// What was read, in all.
    pub input_tokens: u64,
    /// What was written, thinking included.
    pub output_tokens: u64,
    /// How much of the input the provider still knew.
    pub cached_tokens: u64,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// Everything is said.
    Done,
    /// The calls are to be made.
    ToolUse,
    /// It got too long. Its last call may be incomplete.
    Length,
    /// One of the request's stop sequences would have come next.
    StopSequence,
    /// The model or its provider does not want to answer, in the provider's word for it.
    Refused(String),
    /// Something else, in the provider's word for it.
    Other(String),
}

/// Which tool schemas a provider takes. The same four as in `openclaw-tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Draft 2020-12; no alternatives at the root.
    Anthropic,
    /// No alternatives at the root; every array says what its items are.
    OpenAi,
    /// A small part of `OpenAPI` 3.0.
    Gemini,
    /// Draft 2020-12 without references.
    Plain,
}

/// A language model.
pub trait Model: Send + Sync + fmt::Debug {
    /// Its name, as in the configuration: `anthropic/claude-sonnet-4-5`, `offline`.
    fn name(&self) -> &str;

    /// Which tool schemas it takes.
    fn dialect(&self) -> Dialect;

    /// How many tokens a conversation may have.
    fn context_tokens(&self) -> u64;

    /// Whether it may be offered tools: false once its provider has said that it cannot use any.
    fn takes_tools(&self) -> bool {
        true
    }

    /// Answers. Dropping the stream ends the work.
    fn stream<'a>(&'a self, request: Request) -> BoxStream<'a, Result<Chunk, ModelError>>;
}
