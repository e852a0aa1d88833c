//! MCP Apps (SEP-1865): the page that shows a tool's results, and who may call the tool.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The name of the extension in the capabilities of clients and servers.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The media type of pages.
pub const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// The scheme of the addresses of pages.
const SCHEME: &str = "ui://";
/// The maximum length of an address.
const MAX_URI: usize = 2 * 1024;
/// The member of `_meta` that older servers have instead of `ui.resourceUri`.
const FLAT: &str = "ui/resourceUri";
/// Who may see and call a tool that is not only for the page.
const MODEL: &str = "model";

/// What `_meta` of a tool says about its app. Untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolApp {
    /// The address of the page.
    pub page: Option<String>,
    /// Whether the tool is meant for models; otherwise, only the page calls it.
    pub is_for_model: bool,
}

impl Default for ToolApp {
    fn default() -> Self {
        Self { page: None, is_for_model: true }
    }
}

#[derive(Deserialize)]
struct ToolMeta {
    #[serde(default)]
    ui: Value,
    #[serde(default, rename = "ui/resourceUri")]
    flat: Value,
}

impl ToolApp {
    /// Reads it from the `_meta` of a tool. What is not as specified counts as missing, but a list of
    /// callers that does not contain the model excludes it, whatever its form.
    pub fn of(meta: Option<&RawValue>) -> Self {
        let meta = meta.and_then(|meta| serde_json::from_str::<ToolMeta>(meta.get()).ok());
        let Some(ToolMeta { ui, flat }) = meta else { return Self::default() };
        let page = [&ui["resourceUri"], &flat].into_iter().filter_map(Value::as_str).find(is_page);
        let is_for_model = match &ui["visibility"] {
            Value::Null => true,
            Value::Array(callers) => callers.iter().any(|caller| caller == MODEL),
            _ => false,
        };
        Self { page: page.map(ToOwned::to_owned), is_for_model }
    }
}

/// Removes what a client could not use from the `_meta` of a tool: a page whose address is not one.
pub fn clean_meta(meta: &mut Map<String, Value>) {
    let is_page = |address: &Value| address.as_str().as_ref().is_some_and(is_page);
    if meta.get(FLAT).is_some_and(|flat| !is_page(flat)) {
        meta.remove(FLAT);
    }
    match meta.get_mut("ui") {
        Some(Value::Object(ui)) if ui.get("resourceUri").is_some_and(|it| !is_page(it)) => {
            ui.remove("resourceUri");
        }
        Some(Value::Object(_)) | None => {}
        Some(_) => drop(meta.remove("ui")),
    }
}

/// Whether a media type is that of a page.
pub fn is_page_type(kind: &str) -> bool {
    let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
    parts.next().as_deref() == Some("text/html") && parts.any(|part| part == "profile=mcp-app")
}

/// Whether this is the address of a page.
pub fn is_page(address: &&str) -> bool {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    address.len() > SCHEME.len()
        && address.len() <= MAX_URI
        && address.starts_with(SCHEME)
        && address.chars().all(is_plain)
}

/// Whether a client declares in its capabilities that it shows pages.
pub fn is_declared(capabilities: &Value) -> bool {
    match &capabilities["extensions"][EXTENSION] {
        // Clients of early versions declare no types.
        Value::Object(settings) => match settings.get("mimeTypes") {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(is_page_type),
            Some(_) => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn app(meta: &Value) -> ToolApp {
        ToolApp::of(Some(&to_raw_value(meta).unwrap()))
    }

    #[test]
    fn a_tool_names_its_page_in_two_ways() {
        for meta in [
            json!({ "ui": { "resourceUri": "ui://a/b.html" } }),
            json!({ "ui/resourceUri": "ui://a/b.html" }),
            json!({ "ui": { "resourceUri": 7 }, "ui/resourceUri": "ui://a/b.html" }),
        ] {
            assert_eq!(app(&meta).page.as_deref(), Some("ui://a/b.html"), "{meta}");
        }
        let long = format!("ui://{}", "a".repeat(MAX_URI));
        for address in ["https://a/b.html", "ui://", "ui://a\nb", "ui://a b", "UI://a", &long] {
            let mut meta = json!({ "ui": { "resourceUri": address }, "ui/resourceUri": address });
            assert_eq!(app(&meta), ToolApp::default(), "{address}");
            clean_meta(meta.as_object_mut().unwrap());
            assert_eq!(meta, json!({ "ui": {} }), "{address}");
        }
    }

    #[test]
    fn a_tool_is_for_models_unless_its_visibility_lacks_them() {
        for (visibility, is_for_model) in [
            (json!(null), true),
            (json!(["model", "app"]), true),
            (json!(["model"]), true),
            (json!(["app"]), false),
            (json!([]), false),
            (json!("app"), false),
        ] {
            let meta = json!({ "ui": { "visibility": visibility } });
            assert_eq!(app(&meta).is_for_model, is_for_model, "{visibility}");
        }
        assert!(ToolApp::of(None).is_for_model && app(&json!([1])).is_for_model);
    }

    #[test]
    fn a_client_shows_pages_if_it_says_so() {
        for (settings, shows) in [
            (json!({ "mimeTypes": [PAGE_TYPE] }), true),
            (json!({ "mimeTypes": ["text/html; profile=mcp-app"] }), true),
            (json!({}), true),
            (json!({ "mimeTypes": ["text/html"] }), false),
            (json!({ "mimeTypes": "all" }), false),
            (json!(true), false),
        ] {
            let capabilities = json!({ "extensions": { EXTENSION: settings } });
            assert_eq!(is_declared(&capabilities), shows, "{capabilities}");
        }
        assert!(!is_declared(&json!({})) && !is_declared(&json!([])));
    }
}
