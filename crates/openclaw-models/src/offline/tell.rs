//! What the offline model says.

use std::sync::Arc;

use super::pick;
use crate::message::{Part, ToolResult};
use crate::model::ToolOffer;

/// How much of a result is told.
const MAX_TOLD: usize = 1_000;
/// More tools are only counted.
const MAX_TOOLS: usize = 12;

/// What came of the calls, in words.
pub(super) fn results(results: &[&ToolResult]) -> String {
    results.iter().map(|result| told(result)).collect::<Vec<_>>().join("\n")
}

fn told(result: &ToolResult) -> String {
    let ToolResult { name, parts, is_error, .. } = result;
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.expose().trim().to_owned(),
        Part::Image { mime_type, .. } => format!("(a picture, {mime_type})"),
        Part::Audio { mime_type, .. } => format!("(a recording, {mime_type})"),
    });
    let words = shortened(&texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"));
    let says = if *is_error { "failed" } else { "says" };
    match (words.as_str(), *is_error) {
        ("", true) => format!("The tool `{name}` failed, and did not say why."),
        ("", false) => format!("The tool `{name}` is done. It says nothing."),
        (words, _) if words.contains('\n') => format!("The tool `{name}` {says}:\n{words}"),
        (words, _) => format!("The tool `{name}` {says}: {words}"),
    }
}

fn shortened(words: &str) -> String {
    match words.char_indices().nth(MAX_TOLD) {
        None => words.to_owned(),
        Some((end, _)) => {
            let rest = words.chars().count() - MAX_TOLD;
            format!("{}… ({rest} more characters)", words.get(..end).unwrap_or(words))
        }
    }
}

/// What a server is told that asks for a completion.
pub(super) fn to_server(asked: &str) -> String {
    let asked = shortened(asked);
    format!("I am the offline stand-in of OpenClaw, and no language model. You asked: {asked}")
}

/// What was said beside wishes that were understood.
pub(super) fn not_understood(parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| format!("“{}”", shortened(part))).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("I do not understand {}; I do the rest.", parts.join(" and "))
    }
}

/// What this is, what it sees, and how to have something better.
pub(super) fn about_itself(tools: &[Arc<ToolOffer>]) -> String {
    let mut words =
        "Hello! I am the offline stand-in of OpenClaw: no language model, but I follow \
                     simple words and use tools, without a network.\n"
            .to_owned();
    if tools.is_empty() {
        words.push_str("I see no tools.\n");
    } else {
        let names: Vec<&str> =
            tools.iter().take(MAX_TOOLS).map(|tool| tool.name.as_str()).collect();
        let more = match tools.len().saturating_sub(MAX_TOOLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = tools.len();
        let noun = if count == 1 { "tool" } else { "tools" };
        words.push_str(&format!("I see {count} {noun}: {}{more}.\n", names.join(", ")));
        words.push_str(&format!("Try {}.\n", examples(tools).join(", ")));
    }
    words.push_str(
        "For a real model, set `agents.defaults.model` to one such as `anthropic/claude-sonnet-4-5`, and \
         its key in `models.providers.anthropic.apiKey` or $ANTHROPIC_API_KEY; a model of a local Ollama \
         needs no key.",
    );
    words
}

/// What would work with these tools.
fn examples(tools: &[Arc<ToolOffer>]) -> Vec<String> {
    let known: [(&[&str], &str); 4] = [
        (&["now", "time", "clock"], "“what time is it”"),
        (&["add", "sum", "plus"], "“add 2 and 3”"),
        (&["echo"], "“echo hello”"),
        (&["list", "ls"], "“list files”"),
    ];
    let fits = |(words, _): &(&[&str], &str)| pick::ending_in(tools, words).is_some();
    let mut examples: Vec<String> =
        known.into_iter().filter(fits).map(|(_, example)| example.to_owned()).collect();
    if tools.iter().any(|tool| tool.name == "mcp_resources") {
        examples.push("“read notes”".to_owned());
    }
    examples.push("`/call TOOL {\"name\": \"value\"}`".to_owned());
    examples
}
