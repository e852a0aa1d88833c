//! The built-in tools.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::catalogue::Known;
use super::message::{Request, Text, push_string, text_members};
use super::{Engine, PIXEL};
use crate::script::RpcError;

/// The arguments of all built-in tools.
#[derive(Deserialize, Default)]
pub(crate) struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    a: Option<f64>,
    b: Option<f64>,
    pub(crate) ms: Option<u64>,
    pub(crate) every: Option<u64>,
    bytes: Option<usize>,
    n: Option<usize>,
    code: Option<i32>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) method: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

/// Parses arguments; invalid ones are treated as absent, as most tools ignore them.
pub(crate) fn arguments<'a>(request: &Request<'a>) -> Arguments<'a> {
    request
        .params
        .arguments
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// Runs a tool and returns the members of its result.
pub(crate) fn run(engine: &Engine, request: &Request<'_>) -> Result<Vec<u8>, RpcError> {
    let name = request.name();
    if engine.catalogue.has_results()
        && let Known::Result(result) = engine.catalogue.find(engine.is_changed(), name)
    {
        return Ok(inside(result));
    }
    let arguments = arguments(request);
    Ok(match name {
        "echo" => echo(&arguments),
        "add" => add(&arguments)?,
        "sleep" => text_members(&format!("slept {} ms", arguments.ms.unwrap_or(0))),
        "big" => text_members(&"x".repeat(arguments.bytes.unwrap_or(0))),
        "fail" => {
            let mut members = match arguments.text {
                Some(_) => echo(&arguments),
                None => text_members("failed, as asked"),
            };
            members.extend_from_slice(br#","isError":true"#);
            members
        }
        "env" => env(&arguments),
        "cwd" => text_members(&std::env::current_dir().unwrap_or_default().display().to_string()),
        "image" => {
            let data = if engine.script.calls.bad_base64 { "!not base64!" } else { PIXEL };
            members(&json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}))
        }
        "mixed" => members(&mixed()),
        "parts" => {
            let part = |number| json!({"type": "text", "text": format!("part {number}")});
            let parts: Vec<_> = (0..arguments.n.unwrap_or(0)).map(part).collect();
            members(&json!({"content": parts}))
        }
        "count" => text_members(&engine.calls().to_string()),
        "pids" => text_members(
            &json!({"server": std::process::id(), "grandchild": engine.grandchild}).to_string(),
        ),
        "stderr" => {
            let text: String = arguments
                .text
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default();
            crate::process::say(&text);
            text_members("printed")
        }
        "crash" => std::process::exit(arguments.code.unwrap_or(1)),
        _ => match engine.catalogue.find(engine.is_changed(), name) {
            Known::Unknown => return Err(unknown(name)),
            _ => text_members(request.params.arguments.map_or("{}", RawValue::get)),
        },
    })
}

/// Returns the error for an unknown tool.
pub(crate) fn unknown(name: &str) -> RpcError {
    RpcError::new(-32602, format!("Unknown tool: {name}"))
}

/// Returns the text as it was sent, including its escapes.
fn echo(arguments: &Arguments<'_>) -> Vec<u8> {
    let text = arguments.text.map_or(r#""""#, RawValue::get);
    let mut members = Vec::with_capacity(text.len() + 48);
    members.extend_from_slice(br#""content":[{"type":"text","text":"#);
    if text.starts_with('"') {
        members.extend_from_slice(text.as_bytes());
    } else {
        push_string(&mut members, text);
    }
    members.extend_from_slice(b"}]");
    members
}

fn add(arguments: &Arguments<'_>) -> Result<Vec<u8>, RpcError> {
    let (Some(a), Some(b)) = (arguments.a, arguments.b) else {
        return Err(RpcError::new(-32602, "Invalid params: a and b must be numbers"));
    };
    // `Display` of a float writes whole numbers without a decimal point, as intended.
    let sum = (a + b).to_string();
    let mut members = text_members(&sum);
    members.extend_from_slice(format!(r#","structuredContent":{{"sum":{sum}}}"#).as_bytes());
    Ok(members)
}

fn env(arguments: &Arguments<'_>) -> Vec<u8> {
    if let Some(name) = &arguments.name {
        return text_members(&std::env::var(&*name.0).unwrap_or_default());
    }
    let mut names: Vec<_> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    text_members(&names.join("\n"))
}

fn mixed() -> Value {
    json!({"content": [
        {"type": "text", "text": "hello", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRgAAAABXQVZF", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "test://greeting", "name": "greeting"},
        {"type": "resource", "resource": {"uri": "test://greeting", "text": "hello"}},
        {"type": "future_kind", "something": 1}
    ]})
}

fn members(object: &Value) -> Vec<u8> {
    inside(&object.to_string())
}

/// Returns the text between the braces.
fn inside(object: &str) -> Vec<u8> {
    let object = object.trim();
    object
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(object)
        .as_bytes()
        .to_vec()
}
