//! Converts a server's response into an outcome for a model (B5, B6, B7, U1).
//!
//! All text of a response is labelled with its server. Images and audio are passed on within
//! limits; other content is described in text, which is labelled as well because it contains
//! untrusted names. Notes about truncated or empty results are our own words.
//!
//! A response is never parsed into a tree: texts are decoded from the raw JSON once, and a single
//! text without escapes is not even copied.

mod failure;
mod gather;
mod input;
mod parts;
mod present;
mod relay;
mod repeats;
mod structured;
mod text;
mod unshown;
mod wrap;

pub(crate) use failure::named;
pub use failure::{call_failed, failure, failure_with};
pub(crate) use relay::{ReplyKind, raw_error, relayed};

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_tools::{OutcomeDetails, ToolFailure, ToolOutcome};
use serde_json::value::RawValue;

use crate::store::spill::Spill;
use gather::{GatheredContent, ReadAnswer};
use openclaw_mcp_client::wire::json::Json;
use present::{can_be_shown, present, present_text};
use text::RawString;

/// The tool, resource or prompt that a response comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseOrigin<'a> {
    /// The name of the server in the configuration.
    pub server: &'a str,
    /// The server's name for the tool or prompt, or the URI of the resource.
    pub tool: &'a str,
}

impl<'a> ResponseOrigin<'a> {
    pub(crate) fn of(source: &'a Source) -> Self {
        match source {
            Source::McpTool { server, tool } => Self { server, tool },
            Source::McpResource { server, uri } => Self { server, tool: uri },
            Source::McpPrompt { server, prompt } => Self { server, tool: prompt },
            _ => Self { server: "", tool: "" },
        }
    }
}

/// How much of a response is shown to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// The maximum number of characters; the full text is stored in a file.
    pub max_chars: usize,
    /// Whether to keep what a model does not see: the structured content unchanged, and binary data
    /// that is not shown.
    pub everything: bool,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { max_chars: 100_000, everything: false }
    }
}

/// The kind of source in the details of an outcome.
const SOURCE: &str = "mcp_server";

/// Converts the result of a `tools/call`.
///
/// Blocks on the disk if a text is truncated and written to the spill folder.
///
/// ```
/// use std::sync::Arc;
///
/// use openclaw_content::Source;
/// use openclaw_mcp::call::results::{ResultLimits, outcome};
/// use serde_json::value::RawValue;
///
/// let raw = RawValue::from_string(r#"{"content":[{"type":"text","text":"Warm."}]}"#.to_owned())?;
/// let source = Arc::new(Source::mcp_tool("weather", "today"));
/// let outcome = outcome(raw.into(), source, ResultLimits::default(), None, Default::default());
/// assert_eq!(outcome.text(), "Warm.");
/// assert!(outcome.details.untrusted);
/// assert!(outcome.rendered().starts_with("This is output from MCP server 'weather'."));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn outcome(
    raw: Json,
    source: Arc<Source>,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let place = ResponseContext { source, limits, spill, duration };
    match one_text(raw, &place) {
        Ok(outcome) => outcome,
        Err(raw) => read(raw, &place, |raw, everything| GatheredContent::of_call(raw, everything)),
    }
}

/// Converts the result of a `resources/read`.
pub fn resource_outcome(
    raw: Json,
    server: &str,
    uri: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Arc::new(Source::mcp_resource(server, uri));
    let place = ResponseContext { source, limits, spill, duration };
    read(raw, &place, |raw, everything| GatheredContent::of_resource(raw, everything))
}

/// Converts the result of a `prompts/get`: its messages, each with its role as text.
pub fn prompt_outcome(
    raw: Json,
    server: &str,
    prompt: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Arc::new(Source::mcp_prompt(server, prompt));
    let place = ResponseContext { source, limits, spill, duration };
    // Programs need the roles; for a model it is one text.
    let messages = if limits.everything { messages_of(&raw) } else { None };
    let mut outcome =
        read(raw, &place, |raw, everything| GatheredContent::of_prompt(raw, everything));
    if outcome.details.failure.is_none() {
        outcome.details.structured = messages;
    }
    outcome
}

fn messages_of(raw: &Json) -> Option<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct Messages {
        messages: Box<RawValue>,
    }
    serde_json::from_str::<Messages>(raw.get()).ok().map(|it| it.messages)
}

/// The origin of a response, its limits and the store for long texts.
struct ResponseContext<'a> {
    source: Arc<Source>,
    limits: ResultLimits,
    spill: Option<&'a Spill>,
    duration: Duration,
}

impl ResponseContext<'_> {
    fn origin(&self) -> ResponseOrigin<'_> {
        ResponseOrigin::of(&self.source)
    }

    /// The details that are known before the response is parsed.
    fn details(&self) -> Box<OutcomeDetails> {
        details(&self.source, self.duration)
    }

    /// The outcome for a response that cannot be shown.
    fn failure(&self, words: String) -> ToolOutcome {
        let mut outcome = failure(ToolFailure::InvalidResponse, words, Some(self.origin()));
        outcome.details.duration = self.duration;
        outcome
    }
}

/// The details of an outcome that are known before the response is parsed.
fn details(source: &Source, duration: Duration) -> Box<OutcomeDetails> {
    let (server, tool) = match source {
        Source::McpTool { server, tool } => (Some(server), Some(tool)),
        Source::McpResource { server, uri } => (Some(server), Some(uri)),
        Source::McpPrompt { server, prompt } => (Some(server), Some(prompt)),
        _ => (None, None),
    };
    Box::new(OutcomeDetails {
        source: Some(SOURCE),
        server: server.cloned(),
        tool: tool.cloned(),
        duration,
        ..OutcomeDetails::default()
    })
}

/// The fast path for a response with a single text; returns other responses unchanged.
fn one_text(raw: Json, place: &ResponseContext<'_>) -> Result<ToolOutcome, Json> {
    let Some((text, is_error)) = raw.one_text() else { return Err(raw) };
    let text = RawString::bare(text).decode();
    if !can_be_shown(&text, place) {
        return Err(raw);
    }
    let text = match text {
        Cow::Owned(text) => text,
        Cow::Borrowed(text) => match most_of(raw.get(), text) {
            Some(part) => kept_part(raw, part),
            None => text.to_owned(),
        },
    };
    Ok(present_text(text, is_error, place))
}

/// The range of a part within the raw JSON, if it is at least half of it.
fn most_of(json: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
    let range = start..start + part.len();
    (range.end <= json.len() && part.len() >= json.len() / 2).then_some(range)
}

fn read(
    raw: Json,
    place: &ResponseContext<'_>,
    gather: for<'r> fn(&'r Json, bool) -> Option<GatheredContent<'r>>,
) -> ToolOutcome {
    let Some(gathered) = gather(&raw, place.limits.everything) else {
        let server = failure::named(place.origin().server);
        return place.failure(format!("{server} sent an invalid response: not a result."));
    };
    let answer = gathered.into_answer();
    if let Some(part) = answer.only_part_of(raw.get()) {
        let ReadAnswer { stretches, rest } = answer;
        drop(stretches);
        return present(ReadAnswer::of_text(kept_part(raw, part), rest), place);
    }
    match answer.detached() {
        Ok(answer) => {
            // Everything was decoded: release the raw response before a second copy is made.
            drop(raw);
            present(answer, place)
        }
        Err(answer) => present(answer, place),
    }
}

/// Returns a part of the raw JSON, reusing its buffer: a large text is not copied.
fn kept_part(raw: Json, part: Range<usize>) -> String {
    let mut text = String::from(raw);
    text.truncate(part.end);
    text.drain(..part.start);
    text
}

#[cfg(test)]
mod tests;
