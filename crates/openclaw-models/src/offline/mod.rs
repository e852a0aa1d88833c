//! The model that needs no network: not a language model, but a program that understands simple
//! commands. It is deterministic and calls tools for real, so that a first run, a demo and a test
//! exercise the whole program.

mod parse;
mod pick;
mod replies;
mod resources;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use openclaw_content::{Source, Text};
use openclaw_tools::schema::SchemaDialect;

use crate::error::ModelError;
use crate::message::{Message, Part, ToolResult, ToolUse};
use crate::model::{Chunk, Model, ModelRequest, StopReason, Usage};

/// The approximate number of characters per token.
const CHARS_PER_TOKEN: usize = 4;

/// The model that needs no network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl Offline {
    /// Its name.
    pub const NAME: &'static str = "offline";
}

impl Model for Offline {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn dialect(&self) -> SchemaDialect {
        SchemaDialect::Plain
    }

    fn context_tokens(&self) -> u64 {
        100_000
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        stream::iter(answer(&request).into_iter().map(Ok)).boxed()
    }
}

/// A call before it has an id.
#[derive(Debug, PartialEq)]
struct PlannedCall {
    tool: String,
    arguments: String,
}

fn answer(request: &ModelRequest) -> Vec<Chunk> {
    let (asked, since) = last_question(&request.messages);
    let results: Vec<&ToolResult> = since.iter().flat_map(|message| results(message)).collect();
    let (words, wanted) = if let (Some(asked), true) = (sampled(request), results.is_empty()) {
        answer_server(asked, request)
    } else if results.is_empty() {
        let (wanted, not_understood) = parse::read(&asked, &request.tools);
        if wanted.is_empty() {
            (replies::about_itself(&request.tools), wanted)
        } else {
            (replies::not_understood(&not_understood), wanted)
        }
    } else if let Some(wanted) = resources::follow_up(&asked, &results, &request.tools) {
        (String::new(), vec![wanted])
    } else {
        (replies::results(&last_round(since)), Vec::new())
    };
    let (words, is_cut) = within(words, request.max_output_tokens);
    let mut chunks: Vec<Chunk> =
        words.split_inclusive(' ').map(|word| Chunk::Text(word.to_owned())).collect();
    let written = words.len() + wanted.iter().map(|wanted| wanted.arguments.len()).sum::<usize>();
    let reason = match (wanted.is_empty(), is_cut) {
        (true, true) => StopReason::Length,
        (true, false) => StopReason::Done,
        (false, _) => StopReason::ToolUse,
    };
    let numbers = first_free_number(&request.messages)..;
    chunks.extend(numbers.zip(wanted).map(|(number, PlannedCall { tool, arguments })| {
        Chunk::ToolUse(ToolUse { id: format!("offline-{number}"), name: tool, arguments })
    }));
    chunks.push(Chunk::Usage(Usage {
        input_tokens: tokens(read_length(request)),
        output_tokens: tokens(written),
        cached_tokens: 0,
        cost_usd: None,
    }));
    chunks.push(Chunk::End(reason));
    chunks
}

/// Returns the text of a sampling request, if the last message is one from an MCP server.
fn sampled(request: &ModelRequest) -> Option<&str> {
    let last = request.messages.iter().rev().find_map(|message| match &**message {
        Message::User { parts } => Some(parts.as_slice()),
        _ => None,
    });
    let mut texts = last?.iter().rev().filter_map(Part::as_text);
    let is_sampling = |text: &&Text| matches!(text.source(), Some(Source::McpSampling { .. }));
    texts.find(is_sampling).map(|text| text.expose().trim())
}

/// Answers a sampling request: with a call of one of its tools, or with text.
fn answer_server(asked: &str, request: &ModelRequest) -> (String, Vec<PlannedCall>) {
    let mut wanted = parse::read(asked, &request.tools).0;
    if let (true, true, Some(first)) =
        (request.must_use_tool, wanted.is_empty(), request.tools.first())
    {
        wanted.push(PlannedCall { tool: first.name.clone(), arguments: "{}".to_owned() });
    }
    match wanted.is_empty() {
        true => (replies::to_server(asked), wanted),
        false => (String::new(), wanted),
    }
}

/// Truncates a text to the given number of tokens; returns whether it was truncated.
fn within(mut words: String, max_tokens: Option<u32>) -> (String, bool) {
    let max = max_tokens.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN)
    });
    let is_cut = words.len() > max;
    if is_cut {
        words.truncate(words.floor_char_boundary(max));
    }
    (words, is_cut)
}

/// Returns the last message of the user, and all messages after it.
fn last_question(messages: &[Arc<Message>]) -> (String, &[Arc<Message>]) {
    let asked = messages.iter().enumerate().rev().find_map(|(at, message)| match &**message {
        // External text is data, not a command.
        Message::User { parts } => Some((at, text(parts, |text| !text.is_outside()))),
        _ => None,
    });
    match asked {
        Some((at, asked)) => (asked, messages.get(at + 1..).unwrap_or_default()),
        None => (String::new(), messages),
    }
}

/// Returns the results of the latest round of calls.
fn last_round(since: &[Arc<Message>]) -> Vec<&ToolResult> {
    let is_call = |message: &Arc<Message>| matches!(**message, Message::Assistant { .. });
    let begin = since.iter().rposition(is_call).map_or(0, |at| at + 1);
    since.iter().skip(begin).flat_map(|message| results(message)).collect()
}

fn results(message: &Message) -> &[ToolResult] {
    match message {
        Message::Tool { results } => results,
        _ => &[],
    }
}

fn text(parts: &[Part], is_wanted: impl Fn(&Text) -> bool) -> String {
    let texts = parts.iter().filter_map(Part::as_text).filter(|text| is_wanted(text));
    texts.map(Text::expose).collect::<Vec<_>>().join("\n")
}

/// Returns the number for the next call id: ids are numbered through the conversation.
fn first_free_number(messages: &[Arc<Message>]) -> usize {
    let numbers = messages.iter().flat_map(|message| match &**message {
        Message::Assistant { tool_uses, .. } => tool_uses.as_slice(),
        _ => &[],
    });
    let numbers =
        numbers.filter_map(|call| call.id.strip_prefix("offline-")?.parse::<usize>().ok());
    numbers.max().map_or(1, |last| last.saturating_add(1))
}

fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// Returns the size of the input for a real model, in characters.
fn read_length(request: &ModelRequest) -> usize {
    let part = |part: &Part| match part {
        Part::Text(text) => text.rendered_len(),
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => 1_000,
    };
    let parts = |parts: &[Part]| parts.iter().map(part).sum::<usize>();
    let messages = request.messages.iter().map(|message| match &**message {
        Message::User { parts: said } => parts(said),
        Message::Assistant { text, tool_uses, parts: shown, .. } => {
            let calls = tool_uses.iter().map(|call| call.name.len() + call.arguments.len());
            text.len() + calls.sum::<usize>() + parts(shown)
        }
        Message::Tool { results } => results.iter().map(|result| parts(&result.parts)).sum(),
    });
    let tools = request.tools.iter().map(|tool| tool.name.len() + tool.description.len());
    let system = request.system.iter().map(Text::rendered_len).sum::<usize>();
    system + messages.sum::<usize>() + tools.sum::<usize>()
}
