//! Reads a resource: lists all of them first, then reads the one that is meant.

use std::sync::Arc;

use serde_json::json;

use super::{PlannedCall, text};
use crate::message::ToolResult;
use crate::model::ToolOffer;

/// The tool that lists and reads resources.
const TOOL: &str = "mcp_resources";

/// Whether these words, in lower case, are about resources.
pub(super) fn is_wanted(words: &str) -> bool {
    let has = |any: &[&str]| words.split_whitespace().any(|word| any.contains(&word));
    has(&["note", "notes", "resource", "resources"]) && has(&["read", "list", "show"])
}

/// Returns the call that lists resources.
pub(super) fn list(tools: &[Arc<ToolOffer>]) -> Option<PlannedCall> {
    let tool = tools.iter().find(|tool| tool.name == TOOL)?;
    Some(PlannedCall { tool: tool.name.clone(), arguments: "{}".to_owned() })
}

/// Returns the call that reads the resource that is meant, after the listing.
pub(super) fn follow_up(
    asked: &str,
    results: &[&ToolResult],
    tools: &[Arc<ToolOffer>],
) -> Option<PlannedCall> {
    let [listed] = results else { return None };
    let asked = asked.to_ascii_lowercase();
    let words: Vec<&str> = asked.split_whitespace().collect();
    if listed.name != TOOL || listed.is_error || !words.contains(&"read") {
        return None;
    }
    list(tools)?;
    let shown = text(&listed.parts, |_| true);
    let lines: Vec<(&str, &str, &str)> = shown.lines().filter_map(entry).collect();
    let is_meant = |(_, uri, name): &&(&str, &str, &str)| {
        let entry = format!("{uri} {name}").to_ascii_lowercase();
        // Short words match nearly everything.
        words.iter().any(|word| word.len() > 3 && *word != "read" && entry.contains(word))
    };
    let only = if lines.len() == 1 { lines.first() } else { None };
    let (server, uri, _) = lines.iter().find(is_meant).or(only)?;
    let arguments = json!({ "server": server, "uri": uri }).to_string();
    Some(PlannedCall { tool: TOOL.to_owned(), arguments })
}

/// Parses a line of the listing: the server, the URI, and the name.
fn entry(line: &str) -> Option<(&str, &str, &str)> {
    let (server, rest) = line.split_once("  ")?;
    let (uri, name) = rest.split_once("  ")?;
    uri.contains(':').then_some((server, uri, name))
}
