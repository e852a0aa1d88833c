//! What a server answers becomes an outcome that a model may read (B5, B6, B7, U1).
//!
//! All text of an answer is joined and stands inside one boundary; pictures and sounds are passed on
//! within bounds; what a model cannot take is described in words, inside the boundary as well, because
//! the words hold names from outside. Our own words (that something was cut off, that there was
//! nothing) stand outside.
//!
//! An answer is never made into a tree: texts are decoded from the raw JSON once, and not even copied
//! if they hold no escapes.

mod failure;
mod gather;
mod media;
mod parts;
mod present;
mod structured;
mod text;

pub use failure::{Problem, call_failure, failure, rpc_failure};

use std::borrow::Cow;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_tools::{Details, ToolOutcome};
use serde_json::value::RawValue;

use crate::spill::Spill;
use gather::{Answer, Gathered};
use present::present;

/// Which tool of which server an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The tool's own name there.
    pub tool: &'a str,
}

impl<'a> Origin<'a> {
    fn source(self) -> Source<'a> {
        Source::McpTool { server: self.server, tool: self.tool }
    }
}

/// How much of an answer a model gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// Characters of text; the rest is kept in a file.
    pub max_chars: usize,
    /// Parts; the rest is counted.
    pub max_parts: usize,
    /// Pictures and sounds; the rest is described.
    pub max_media: usize,
    /// Bytes of a picture.
    pub max_image_bytes: usize,
    /// Bytes of a sound.
    pub max_audio_bytes: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self {
            max_chars: 100_000,
            max_parts: 1_000,
            max_media: 20,
            max_image_bytes: 5 * 1024 * 1024,
            max_audio_bytes: 10 * 1024 * 1024,
        }
    }
}

/// The outcome of a `tools/call`.
///
/// A text that is cut is written to the spill folder here and now: a disk is waited for.
pub fn outcome(
    raw: Box<RawValue>,
    origin: Origin<'_>,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let place = Place {
        source: origin.source(),
        server: origin.server,
        item: origin.tool,
        tool: Some(origin.tool),
        spill,
        duration,
    };
    read(raw, &place, &limits, |raw, limits| Gathered::of_call(raw, limits))
}

/// The outcome of a `resources/read`.
pub fn resource_outcome(
    raw: Box<RawValue>,
    server: &str,
    uri: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Source::McpResource { server, uri };
    let place = Place { source, server, item: "resource", tool: None, spill, duration };
    read(raw, &place, &limits, |raw, limits| Gathered::of_resource(raw, limits))
}

/// The outcome of a `prompts/get`: its messages, each with its role in words.
pub fn prompt_outcome(
    raw: Box<RawValue>,
    server: &str,
    prompt: &str,
    limits: ResultLimits,
    spill: Option<&Spill>,
    duration: Duration,
) -> ToolOutcome {
    let source = Source::McpPrompt { server, prompt };
    let place = Place { source, server, item: prompt, tool: None, spill, duration };
    read(raw, &place, &limits, |raw, limits| Gathered::of_prompt(raw, limits))
}

/// Where an answer comes from, and where what is too long goes.
struct Place<'a> {
    source: Source<'a>,
    server: &'a str,
    /// What a file is named after.
    item: &'a str,
    tool: Option<&'a str>,
    spill: Option<&'a Spill>,
    duration: Duration,
}

impl Place<'_> {
    /// Details of an outcome with content from outside.
    fn details(&self) -> Details {
        Details {
            untrusted: true,
            source: Some("mcp_server"),
            server: Some(self.server.to_owned()),
            tool: self.tool.map(str::to_owned),
            wrapped: true,
            duration: self.duration,
            ..Details::default()
        }
    }
}

type Read = for<'r> fn(&'r RawValue, &ResultLimits) -> Option<Gathered<'r>>;

fn read(raw: Box<RawValue>, place: &Place<'_>, limits: &ResultLimits, gather: Read) -> ToolOutcome {
    let Some(gathered) = gather(&raw, limits) else {
        return failure::of(&Problem::InvalidResponse, place);
    };
    let Answer { text, rest } = gathered.into_answer();
    match text {
        Cow::Borrowed(text) => present(text, rest, place, limits),
        Cow::Owned(text) => {
            // It has been decoded: a large answer need not be held twice.
            drop(raw);
            present(&text, rest, place, limits)
        }
    }
}

#[cfg(test)]
mod tests;
