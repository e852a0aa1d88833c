//! What a client learns in the handshake beside the hub's own capabilities: the instructions of the
//! servers, and the extensions of the protocol that they support.
//!
//! From what is known of the servers: the handshake does not wait for those that are still starting.

use std::collections::BTreeMap;

use openclaw_content::{Source, Text, Untrusted, render};
use rmcp::model::{ExtensionCapabilities, TASKS_EXTENSION_ID};
use serde_json::{Map, Value};

use super::view::HubView;

/// Maximum length of the instructions of one server, and of all of them, in characters.
const MAX_EACH: usize = 4_000;
const MAX_ALL: usize = 32_000;
/// Maximum number of extensions, and size of their settings in bytes.
const MAX_EXTENSIONS: usize = 64;
const MAX_SETTINGS: usize = 64 * 1024;

/// The instructions of the servers, each with its name; `None` if there are none.
pub(super) fn instructions(view: &HubView) -> Option<String> {
    let mut all = String::new();
    let mut left_out = Vec::new();
    let mut room = MAX_ALL;
    for of in view.introductions() {
        let text = of.entry.instructions.as_deref().map(str::trim).unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        let length = text.chars().count();
        if length.min(MAX_EACH) > room {
            left_out.push(of.server);
            continue;
        }
        room -= length.min(MAX_EACH);
        let mut shown: String = text.chars().take(MAX_EACH).collect();
        if length > MAX_EACH {
            shown.push_str(&format!("\n[{} more characters were cut off]", length - MAX_EACH));
        }
        let Some(shown) = marked(view, &of.server, shown) else { continue };
        all.push_str(&format!("\n\n# MCP server {}\n\n{shown}", of.server));
    }
    if all.is_empty() {
        return None;
    }
    if !left_out.is_empty() {
        all.push_str(&format!("\n\nToo long to be shown: {}.", left_out.join(", ")));
    }
    let lead = "Instructions of the MCP servers behind this hub, in their own words, not in those of the hub \
                or its user:";
    Some(format!("{lead}{all}"))
}

/// The words of a server, between boundaries if the client wants them.
fn marked(view: &HubView, server: &str, text: String) -> Option<String> {
    if !view.wraps() {
        return Some(text);
    }
    let text = Text::outside(Untrusted::new(text), Source::mcp_server(server)).ok()?;
    render([&text]).pop()
}

/// The extensions that any of the servers supports. Of different settings of one, those that all have.
pub(super) fn extensions(view: &HubView) -> Option<ExtensionCapabilities> {
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut room = MAX_SETTINGS;
    for (name, settings) in view.introductions().into_iter().flat_map(|of| of.entry.extensions) {
        // Tasks of servers end here: their results are those of the call.
        if name == TASKS_EXTENSION_ID {
            continue;
        }
        if let Some(known) = all.get_mut(&name) {
            known.retain(|name, value| settings.get(name) == Some(value));
            continue;
        }
        let size = serde_json::to_string(&settings).map_or(usize::MAX, |json| json.len());
        if all.len() < MAX_EXTENSIONS && size <= room {
            room -= size;
            all.insert(name, settings);
        }
    }
    (!all.is_empty()).then(|| all.into_iter().collect())
}
