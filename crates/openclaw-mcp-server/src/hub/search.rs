//! Two tools instead of hundreds, for clients with small contexts: one finds tools, the other calls
//! one of them.

use std::sync::Arc;

use openclaw_content::{Source, Text, Untrusted, render};
use openclaw_tools::Tool;
use openclaw_tools::search::best;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::view::HubView;
use crate::front::incoming::CallRequest;
use crate::front::reply::{BUSY, HubReply, ReplyTo};

/// The names of the two tools.
const SEARCH: &str = "search_tools";
const CALL: &str = "call_tool";
/// The usual and the maximum number of results.
const USUAL: usize = 8;
const MOST: usize = 25;

/// What is asked for.
pub(super) enum Asked {
    /// Tools that match keywords.
    Search(Query),
    /// A call of a tool.
    Call {
        /// The name of the tool.
        name: String,
        /// Its arguments.
        arguments: Box<RawValue>,
    },
}

/// The arguments of the search tool.
#[derive(Debug, Deserialize)]
pub(super) struct Query {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct CallArguments {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// The entries of the two tools in `tools/list`.
pub(super) fn entries() -> [Value; 2] {
    let search = json!({
        "name": SEARCH,
        "description": "Finds tools of the connected MCP servers by keyword, with their descriptions \
                        and schemas. Call a tool that was found with `call_tool`.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Keywords for what the tool does" },
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST },
            },
            "required": ["query"],
        },
        "annotations": { "readOnlyHint": true },
    });
    let call = json!({
        "name": CALL,
        "description": "Calls a tool that `search_tools` has found.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The name of the tool" },
                "arguments": { "type": "object", "description": "Its arguments" },
            },
            "required": ["name"],
        },
    });
    [search, call]
}

/// Returns what a call of one of the two tools asks for.
///
/// # Errors
/// If it is neither, or its arguments are invalid.
pub(super) fn tool_of(request: &CallRequest) -> Result<Asked, String> {
    let arguments = request.arguments.get();
    match request.name.as_str() {
        SEARCH => {
            let query: Query = serde_json::from_str(arguments).map_err(|_| {
                "invalid arguments: `query` must be a string, and `limit` a whole number".to_owned()
            })?;
            match query.limit {
                None | Some(1..=MOST) => Ok(Asked::Search(query)),
                Some(_) => Err(format!("invalid `limit`: it must be 1 to {MOST}")),
            }
        }
        CALL => {
            let call: CallArguments = serde_json::from_str(arguments)
                .map_err(|_| "invalid arguments: `name` must be a string".to_owned())?;
            let nothing = || RawValue::from_string("{}".to_owned()).unwrap_or_default();
            let arguments = call.arguments.unwrap_or_else(nothing);
            if !arguments.get().starts_with('{') {
                return Err("`arguments` must be an object".to_owned());
            }
            Ok(Asked::Call { name: call.name, arguments })
        }
        _ => Err(format!("unknown tool; there are `{SEARCH}` and `{CALL}`")),
    }
}

/// Returns the tools that match, the best one first.
pub(super) fn find(view: &HubView, shows_pages: bool, query: &Query, to: ReplyTo<'_>) -> HubReply {
    let all: Vec<Arc<dyn Tool>> =
        view.tools_for(shows_pages).map(|(_, tool)| Arc::clone(tool) as Arc<dyn Tool>).collect();
    let best = best(&all, &query.query, query.limit.unwrap_or(USUAL));
    let named = best
        .iter()
        .filter_map(|found| view.tools().find(|(_, tool)| tool.spec().name == found.spec().name));
    let found: Vec<Value> = named.map(|(name, tool)| view.entry(name, tool)).collect();
    if found.is_empty() {
        return HubReply::text("No tool matches these keywords. Try others.", false, to);
    }
    let text = serde_json::to_string_pretty(&found).unwrap_or_default();
    if !view.wraps() {
        return HubReply::text(&text, false, to);
    }
    // Descriptions are written by the servers.
    match Text::outside(Untrusted::new(text), Source::other("tool descriptions")) {
        Ok(text) => HubReply::text(&render([&text]).join("\n"), false, to),
        Err(error) => HubReply::error(BUSY, &error.to_string()),
    }
}
