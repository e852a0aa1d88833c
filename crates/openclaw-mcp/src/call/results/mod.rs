//! What a server answers becomes an outcome that a model may read (B5, B6, B7, U1).
//!
//! All text of an answer is labelled as coming from its server; pictures and sounds are passed on within
//! bounds; what a model cannot take is described in words, labelled in the same way because the words hold
//! names from outside. That something was cut off, or that there was nothing, is said in our own words.
//!
//! An answer is never made into a tree: texts are decoded from the raw JSON once, and not even copied
//! if there is one without escapes.

mod failure;
mod gather;
mod parts;
mod present;
mod repeats;
mod structured;
mod text;
mod unshown;

pub use failure::{call_failed, failure, failure_with};

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_tools::{Details, Failure, ToolOutcome};
use serde_json::value::RawValue;

use crate::call::spill::Spill;
use crate::wire::json::Json;
use gather::{Gathered, ReadAnswer};
use present::{can_be_shown, present, present_text};
use text::Token;

/// Which tool, resource or prompt of which server an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The tool's own name there, or that of the resource or the prompt.
    pub tool: &'a str,
}

impl<'a> Origin<'a> {
    pub(crate) fn of(source: &'a Source) -> Self {
        match source {
            Source::McpTool { server, tool } => Self { server, tool },
            Source::McpResource { server, uri } => Self { server, tool: uri },
            Source::McpPrompt { server, prompt } => Self { server, tool: prompt },
            _ => Self { server: "", tool: "" },
        }
    }
}

/// How much of an answer a model gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// Characters of text; the rest is kept in a file.
    pub max_chars: usize,
    /// Whether what no model sees is kept beside it: the structured content as it is, and what is
    /// neither text nor fit for a model.
    pub everything: bool,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { max_chars: 100_000, everything: false }
    }
}

/// The kind of source in an outcome's details.
const SOURCE: &str = "mcp_server";

/// The outcome of a `tools/call`.
///
/// A text that is cut is written to the spill folder here and now: a disk is waited for.
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
    let place = Place { source, limits, spill, duration };
    match one_text(raw, &place) {
        Ok(outcome) => outcome,
        Err(raw) => read(raw, &place, |raw, everything| Gathered::of_call(raw, everything)),
    }
}

/// The outcome of a `resources/read`.
pub fn resource_outcome(
    raw: Json,
    server: &str,
    uri: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Arc::new(Source::mcp_resource(server, uri));
    let place = Place { source, limits, spill, duration };
    read(raw, &place, |raw, everything| Gathered::of_resource(raw, everything))
}

/// The outcome of a `prompts/get`: its messages, each with its role in words.
pub fn prompt_outcome(
    raw: Json,
    server: &str,
    prompt: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Arc::new(Source::mcp_prompt(server, prompt));
    let place = Place { source, limits, spill, duration };
    // Programs want to know who says what; for a model it is one text.
    let messages = if limits.everything { messages_of(&raw) } else { None };
    let mut outcome = read(raw, &place, |raw, everything| Gathered::of_prompt(raw, everything));
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

/// Where an answer comes from, and where what is too long goes.
struct Place<'a> {
    source: Arc<Source>,
    limits: ResultLimits,
    spill: Option<&'a Spill>,
    duration: Duration,
}

impl Place<'_> {
    fn origin(&self) -> Origin<'_> {
        Origin::of(&self.source)
    }

    /// What is known of an outcome before its answer is looked at.
    fn details(&self) -> Box<Details> {
        let (server, tool) = match &*self.source {
            Source::McpTool { server, tool } => (Some(server), Some(tool)),
            Source::McpResource { server, uri } => (Some(server), Some(uri)),
            Source::McpPrompt { server, prompt } => (Some(server), Some(prompt)),
            _ => (None, None),
        };
        Box::new(Details {
            source: Some(SOURCE),
            server: server.cloned(),
            tool: tool.cloned(),
            duration: self.duration,
            ..Details::default()
        })
    }

    /// The outcome of an answer that cannot be shown, in our words.
    fn failure(&self, words: String) -> ToolOutcome {
        let mut outcome = failure(Failure::InvalidResponse, words, Some(self.origin()));
        outcome.details.duration = self.duration;
        outcome
    }
}

/// The outcome of the usual answer; the answer itself if it is not the usual one.
fn one_text(raw: Json, place: &Place<'_>) -> Result<ToolOutcome, Json> {
    let Some((text, is_error)) = raw.one_text() else { return Err(raw) };
    let text = Token::bare(text).decode();
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

/// Where a part of the raw JSON is in it, if it makes up most of it.
fn most_of(json: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
    let range = start..start + part.len();
    (range.end <= json.len() && part.len() >= json.len() / 2).then_some(range)
}

fn read(
    raw: Json,
    place: &Place<'_>,
    gather: for<'r> fn(&'r Json, bool) -> Option<Gathered<'r>>,
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
            // It has been decoded: a large answer need not be held twice.
            drop(raw);
            present(answer, place)
        }
        Err(answer) => present(answer, place),
    }
}

/// A part of the raw JSON in the memory that it has already: a large text is not copied.
fn kept_part(raw: Json, part: Range<usize>) -> String {
    let mut text = String::from(raw);
    text.truncate(part.end);
    text.drain(..part.start);
    text
}

#[cfg(test)]
mod tests;
