//! The [`Model`] trait: a name, a dialect of tool schemas, a context window, and streamed answers.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use openclaw_content::Text;
use openclaw_tools::schema::SchemaDialect;
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
    /// The JSON Schema of its arguments, in the model's [`SchemaDialect`].
    pub schema: Arc<Value>,
}

/// A request to a model. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The sections of the system prompt; may be empty.
    pub system: Vec<Text>,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// The tools that it may use.
    pub tools: Vec<Arc<ToolOffer>>,
    /// The maximum length of the answer in tokens; the model's maximum if not set.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature; the provider's default if not set. Not every model supports it.
    pub temperature: Option<f64>,
    /// The answer ends before the first of these.
    pub stop_sequences: Vec<String>,
    /// Whether the model must use one of the tools. Ollama ignores this.
    pub must_use_tool: bool,
}

/// A chunk of an answer. The last one is [`Chunk::End`], or the stream ends with an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// More text.
    Text(String),
    /// More of the model's thinking, for display.
    Reasoning(String),
    /// A complete tool call.
    ToolUse(ToolUse),
    /// An image or an audio recording.
    Part(Part),
    /// Reasoning that the provider requires back: it belongs in [`Message::Assistant`].
    Echo(Reasoning),
    /// The tokens used so far. If there are several, the last one counts.
    Usage(Usage),
    /// Not part of the answer: the request failed and will be retried.
    Again {
        /// Why it failed.
        error: ModelError,
        /// The delay before the retry.
        wait: Duration,
    },
    /// The answer is complete.
    End(StopReason),
}

/// The number of tokens that an answer used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Output tokens, including thinking.
    pub output_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    pub cached_tokens: u64,
    /// What it cost in US dollars, if the provider reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(sum), Some(cost)) => Some(sum + cost),
            (sum, cost) => sum.or(cost),
        };
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    Done,
    /// The model requests tool calls.
    ToolUse,
    /// The answer reached its maximum length. Its last call may be incomplete.
    Length,
    /// The answer reached one of the request's stop sequences.
    StopSequence,
    /// The model or its provider refused to answer; the provider's reason.
    Refused(String),
    /// Any other reason, as named by the provider.
    Other(String),
}

/// A language model.
pub trait Model: Send + Sync + fmt::Debug {
    /// Returns its name, as in the configuration: `anthropic/claude-sonnet-4-5`, `offline`.
    fn name(&self) -> &str;

    /// Returns the dialect of tool schemas that it accepts.
    fn dialect(&self) -> SchemaDialect;

    /// Returns the size of its context window in tokens.
    fn context_tokens(&self) -> u64;

    /// Returns whether it supports tools: `false` once its provider has reported that it does not.
    fn takes_tools(&self) -> bool {
        true
    }

    /// Streams the answer to a request. Dropping the stream cancels the request.
    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>>;
}
