//! Codex specifics: its file is TOML, and its keys have different names.

use serde_json::{Map, Value, json};

use super::convert::Conversion;

/// Parses TOML. An error names only the line: the parser's message may quote credentials.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("invalid TOML, line {line}")
    })
}

/// Converts a field that only Codex has. Returns whether it was one.
pub(super) fn field(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match key {
        "bearer_token_env_var" => {
            if let Some(variable) = value.as_str() {
                to.set("apiKey", json!(format!("secret://env/{variable}")));
            }
        }
        "http_headers" => to.table("headers", value),
        "env_http_headers" => {
            let headers = value.as_object().into_iter().flatten();
            let headers = headers.filter_map(|(header, variable)| {
                Some((header.clone(), json!(format!("secret://env/{}", variable.as_str()?))))
            });
            to.merge("headers", headers.collect());
        }
        "env_vars" => to.set("inheritEnv", variable_names(value)),
        "startup_timeout_sec" => to.set("timeout", milliseconds(value)),
        "startup_timeout_ms" => to.set("timeout", value.clone()),
        "tool_timeout_sec" => to.set("toolTimeout", milliseconds(value)),
        "enabled_tools" => to.tools("allow", value),
        "disabled_tools" => to.tools("deny", value),
        "scopes" => to.merge("auth", Map::from_iter([("scopes".to_owned(), value.clone())])),
        "required" => to.set("required", value.clone()),
        _ => return false,
    }
    true
}

/// Returns a list of names; some may be given as objects with a `name`.
fn variable_names(value: &Value) -> Value {
    let names = value.as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().or_else(|| name.get("name")?.as_str())).collect()
}

/// Converts seconds, which may be fractional.
pub(super) fn milliseconds(value: &Value) -> Value {
    match value.as_f64() {
        Some(seconds) => json!((seconds * 1000.0).round() as u64),
        None => value.clone(),
    }
}
