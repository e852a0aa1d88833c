//! Settings that only one program has, or that mean something else there.

use serde_json::{Map, Value, json};

use super::App;
use super::codex::milliseconds;
use super::convert::Conversion;

/// Converts a field that only this program has. Returns whether it was one.
pub(super) fn field(app: App, key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match app {
        App::GeminiCli => gemini(key, value, to),
        App::Zed => zed(key, value, to),
        App::OpenCode => opencode(key, value, to),
        App::Goose => goose(key, value, to),
        App::Amp => amp(key, value, to),
        App::JetBrains => jetbrains(key, value, to),
        _ => false,
    }
}

fn gemini(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match key {
        "httpUrl" => set_text("url", value, to),
        "timeout" => to.set("toolTimeout", value.clone()),
        "trust" => {
            if value == &Value::Bool(true) {
                to.set("approval", json!("never"));
            }
        }
        "includeTools" => to.tools("allow", value),
        "excludeTools" => to.tools("deny", value),
        _ => return false,
    }
    true
}

fn zed(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match (key, value) {
        // The older form: `command: { path, args, env }`.
        ("command", Value::Object(command)) => {
            let members = command.iter().filter(|(_, value)| !value.is_null());
            for (key, value) in members {
                let key = if key == "path" { "command" } else { key };
                to.field(key, value);
            }
        }
        ("source", _) => {}
        _ => return false,
    }
    true
}

fn opencode(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match (key, value) {
        ("command", Value::Array(words)) => {
            if let [program, args @ ..] = &words[..] {
                set_text("command", program, to);
                to.field("args", &json!(args));
            }
        }
        ("environment", _) => to.table("env", value),
        ("timeout", _) => to.set("timeout", value.clone()),
        ("type", Value::String(kind)) => return matches!(kind.as_str(), "local" | "remote"),
        ("oauth", Value::Bool(_)) => {}
        _ => return false,
    }
    true
}

fn goose(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    match key {
        "cmd" => set_text("command", value, to),
        "uri" => set_text("url", value, to),
        "envs" => to.table("env", value),
        "env_keys" => {
            let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            let variables = names.map(|name| (name.to_owned(), json!(format!("${{{name}}}"))));
            let variables: Map<String, Value> = variables.collect();
            for name in variables.keys() {
                to.note(format!(
                    "`{name}` is in the keychain of goose: set the variable, or use a \
                     `secret://` reference"
                ));
            }
            if !variables.is_empty() {
                to.merge("env", variables);
            }
        }
        "timeout" => to.set("toolTimeout", milliseconds(value)),
        "available_tools" => {
            if value.as_array().is_some_and(|tools| !tools.is_empty()) {
                to.tools("allow", value);
            }
        }
        "name" | "display_name" | "bundled" => {}
        _ => return false,
    }
    true
}

fn amp(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    if key == "includeTools" {
        to.tools("allow", value);
    }
    key == "includeTools"
}

/// GitHub Copilot has the options of an HTTP request, of which only the headers have a meaning here.
fn jetbrains(key: &str, value: &Value, to: &mut Conversion<'_>) -> bool {
    if key != "requestInit" {
        return false;
    }
    for (option, value) in value.as_object().into_iter().flatten() {
        match option.as_str() {
            "headers" => to.table("headers", value),
            _ => to.note(format!("`requestInit.{option}` was skipped: it is not supported here")),
        }
    }
    true
}

fn set_text(key: &str, value: &Value, to: &mut Conversion<'_>) {
    let text = to.text(value);
    to.set(key, text);
}
