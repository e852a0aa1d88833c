//! The lists: tools in pages, resources, prompts.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::defaults::{default_tools, odd_tool};
use crate::script::{CatalogueScript, Cursor, Script, Tool};

/// The serialized lists of the server.
pub(crate) struct Catalogue {
    tools: Listing,
    changed: Listing,
}

/// A list of tools.
struct Listing {
    entries: Vec<String>,
    names: HashSet<String>,
    results: HashMap<String, String>,
    page_size: usize,
    cursor: Cursor,
}

/// How a tool that is not built in is answered.
pub(crate) enum Known<'a> {
    Result(&'a str),
    Listed,
    Unknown,
}

impl Catalogue {
    pub(crate) fn new(script: &Script) -> Self {
        let catalogue = &script.catalogue;
        let tools = catalogue.tools.clone().unwrap_or_else(default_tools);
        let changed = catalogue.changed_tools.clone().unwrap_or_else(|| {
            let mut changed = tools.clone();
            changed.push(Tool::new("added"));
            changed
        });
        Self { tools: Listing::new(tools, catalogue), changed: Listing::new(changed, catalogue) }
    }

    fn listing(&self, changed: bool) -> &Listing {
        if changed { &self.changed } else { &self.tools }
    }

    /// Returns the members of a `tools/list` result; `None` if the cursor is invalid.
    pub(crate) fn tools(&self, changed: bool, cursor: Option<&str>) -> Option<Vec<u8>> {
        self.listing(changed).page(cursor)
    }

    pub(crate) fn find(&self, changed: bool, name: &str) -> Known<'_> {
        let listing = self.listing(changed);
        if let Some(result) = listing.results.get(name) {
            return Known::Result(result);
        }
        // Tools of endless pages are not in the table, but can be called.
        if listing.names.contains(name) || name.starts_with("endless_") {
            Known::Listed
        } else {
            Known::Unknown
        }
    }

    /// Whether a built-in tool may have a result from the script.
    pub(crate) fn has_results(&self) -> bool {
        !self.tools.results.is_empty() || !self.changed.results.is_empty()
    }
}

impl Listing {
    fn new(mut tools: Vec<Tool>, script: &CatalogueScript) -> Self {
        tools.extend((0..script.extra_tools).map(|number| numbered(&format!("tool_{number}"))));
        tools.extend(script.odd_tools.iter().flat_map(|&odd| odd_tool(odd)));
        let name = |tool: &Tool| Some(tool.definition.get("name")?.as_str()?.to_owned());
        Self {
            entries: tools.iter().map(|tool| tool.definition.to_string()).collect(),
            names: tools.iter().filter_map(name).collect(),
            results: tools
                .iter()
                .filter_map(|tool| Some((name(tool)?, tool.result.clone()?)))
                .collect(),
            page_size: script.page_size,
            cursor: script.cursor,
        }
    }

    fn page(&self, cursor: Option<&str>) -> Option<Vec<u8>> {
        match self.cursor {
            Cursor::Normal => {
                let start = match cursor {
                    Some(cursor) => cursor.strip_prefix("from-")?.parse().ok()?,
                    None => 0,
                };
                let size = if self.page_size == 0 { self.entries.len() } else { self.page_size };
                let end = (start + size).min(self.entries.len());
                let next = (end < self.entries.len()).then(|| format!("from-{end}"));
                Some(page(self.entries.get(start..end)?, next.as_deref()))
            }
            Cursor::Endless => {
                let number: u64 = match cursor {
                    Some(cursor) => cursor.strip_prefix("page-")?.parse().ok()?,
                    None => 0,
                };
                let next = format!("page-{}", number + 1);
                if number == 0 {
                    return Some(page(&self.entries, Some(&next)));
                }
                let more: Vec<_> = (0..self.page_size.max(1))
                    .map(|tool| numbered(&format!("endless_{number}_{tool}")).definition)
                    .map(|definition| definition.to_string())
                    .collect();
                Some(page(&more, Some(&next)))
            }
            Cursor::Repeating => Some(page(&self.entries, Some("again"))),
        }
    }
}

fn numbered(name: &str) -> Tool {
    Tool::new(name).description(format!("The tool {name}.")).schema(json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "Any text."}},
        "required": ["text"]
    }))
}

fn page(entries: &[String], next: Option<&str>) -> Vec<u8> {
    let mut members = br#""tools":["#.to_vec();
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            members.push(b',');
        }
        members.extend_from_slice(entry.as_bytes());
    }
    members.push(b']');
    if let Some(next) = next {
        members.extend_from_slice(format!(r#","nextCursor":"{next}""#).as_bytes());
    }
    members
}

/// Returns the members of the results of the other lists and of their entries; `None` if not found.
pub(crate) fn others(method: &str, name: &str, arguments: &Value) -> Option<Vec<u8>> {
    let result = match (method, name) {
        ("resources/list", _) => json!({"resources": [
            {"uri": "test://greeting", "name": "greeting", "mimeType": "text/plain"},
            {"uri": "test://pixel", "name": "pixel", "mimeType": "image/png"}
        ]}),
        ("resources/templates/list", _) => json!({"resourceTemplates": [
            {"uriTemplate": "test://echo/{text}", "name": "echo", "mimeType": "text/plain"}
        ]}),
        ("resources/read", "test://greeting") => {
            json!({"contents": [{"uri": name, "mimeType": "text/plain", "text": "hello"}]})
        }
        ("resources/read", "test://pixel") => {
            json!({"contents": [{"uri": name, "mimeType": "image/png", "blob": super::PIXEL}]})
        }
        ("resources/read", uri) => {
            let text = uri.strip_prefix("test://echo/")?;
            json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})
        }
        ("prompts/list", _) => json!({"prompts": [{
            "name": "greet",
            "description": "Greets somebody.",
            "arguments": [{"name": "name", "description": "Whom to greet.", "required": true}]
        }]}),
        ("prompts/get", "greet") => {
            let who = arguments.get("name")?.as_str()?;
            json!({"description": "A greeting.", "messages": [
                {"role": "user", "content": {"type": "text", "text": format!("Say hello to {who}.")}}
            ]})
        }
        _ => return None,
    };
    let text = result.to_string();
    Some(text.as_bytes()[1..text.len() - 1].to_vec())
}
