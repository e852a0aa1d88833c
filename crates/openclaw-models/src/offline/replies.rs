//! The replies of the offline model.

use std::sync::Arc;

use super::pick;
use crate::message::{Part, ToolResult};
use crate::model::ToolOffer;

/// The maximum number of characters of a result that are repeated.
const MAX_TOLD: usize = 1_000;
/// The maximum number of tools that are named; further ones are only counted.
const MAX_TOOLS: usize = 12;

/// Describes the results of the calls.
pub(super) fn results(results: &[&ToolResult]) -> String {
    results.iter().map(|result| result_text(result)).collect::<Vec<_>>().join("\n")
}

fn result_text(result: &ToolResult) -> String {
    let ToolResult { name, parts, is_error, .. } = result;
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.expose().trim().to_owned(),
        Part::Image { mime_type, .. } => format!("(image, {mime_type})"),
        Part::Audio { mime_type, .. } => format!("(audio, {mime_type})"),
        Part::File { mime_type, .. } => format!("(file, {mime_type})"),
    });
    let words = shortened(&texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"));
    let verb = if *is_error { "failed" } else { "returned" };
    match (words.as_str(), *is_error) {
        ("", true) => format!("`{name}` failed without a message."),
        ("", false) => format!("`{name}` finished without output."),
        (words, _) if words.contains('\n') => format!("`{name}` {verb}:\n{words}"),
        (words, _) => format!("`{name}` {verb}: {words}"),
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

/// The reply to a sampling request of a server.
pub(super) fn to_server(asked: &str) -> String {
    let asked = shortened(asked);
    format!("I am the offline model of OpenClaw, not a language model. You asked: {asked}")
}

/// Names the parts of a message that were not understood.
pub(super) fn not_understood(parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| format!("“{}”", shortened(part))).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("I did not understand {}; doing the rest.", parts.join(" and "))
    }
}

/// Describes the offline model, its tools, and how to set up a language model.
pub(super) fn about_itself(tools: &[Arc<ToolOffer>]) -> String {
    let mut words =
        "Hello! I am the offline model of OpenClaw: not a language model, but I understand \
                     simple commands and call tools, without a network.\n"
            .to_owned();
    if tools.is_empty() {
        words.push_str("I have no tools.\n");
    } else {
        let names: Vec<&str> =
            tools.iter().take(MAX_TOOLS).map(|tool| tool.name.as_str()).collect();
        let more = match tools.len().saturating_sub(MAX_TOOLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let count = tools.len();
        let noun = if count == 1 { "tool" } else { "tools" };
        words.push_str(&format!("I have {count} {noun}: {}{more}.\n", names.join(", ")));
        words.push_str(&format!("Try {}.\n", examples(tools).join(", ")));
    }
    words.push_str(
        "To use a language model, set `agents.defaults.model`, for example to `anthropic/claude-sonnet-4-5`, \
         and its key in `models.providers.anthropic.apiKey` or $ANTHROPIC_API_KEY. Models of a local Ollama \
         need no key.",
    );
    words
}

/// Returns example commands that work with these tools.
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
