//! The entry of a new server, from the options of `mcp add` or from JSON. Errors do not contain
//! values: they may be credentials.

use std::path::Path;

use openclaw_config::split_command;
use serde_json::{Map, Value, json};

use crate::cli::{AddArgs, TransportArg};
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::Output;

/// Returns the entry that the options describe. A command in one word is split, with a note.
pub(super) fn of_options(
    args: &AddArgs,
    edge: &Edge,
    output: &mut Output,
) -> Result<Value, CommandError> {
    let mut command = args.command.clone();
    if let [whole] = &command[..]
        && !Path::new(whole).exists()
        && let Some(words) = split_command(whole)
    {
        output.note(&format!("split into a program and its arguments: `{}`", words.join("` `")));
        command = words;
    }
    fields(args, &command, edge).map_err(CommandError::usage)
}

fn fields(args: &AddArgs, command: &[String], edge: &Edge) -> Result<Value, &'static str> {
    let mut entry = Map::new();
    let mut set = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    if args.disabled {
        set("enabled", json!(false));
    }
    if let Some(text) = &args.description {
        set("description", json!(text));
    }
    if let Some(transport) = args.transport {
        set("transport", json!(transport_word(transport)));
    }
    if let Some(url) = args.url.as_ref().or(args.address.as_ref()) {
        set("url", json!(url));
    }
    if let [command, rest @ ..] = command {
        // A relative path is relative to the current folder of the user.
        let is_here = command.starts_with("./") || command.starts_with("../");
        set("command", json!(if is_here { edge.absolute(command) } else { command.clone() }));
        if !rest.is_empty() {
            set("args", json!(rest));
        }
    }
    if !args.env.is_empty() {
        set("env", pairs(&args.env, '=').ok_or("`--env` expects NAME=VALUE")?);
    }
    if !args.inherit_env.is_empty() {
        set("inheritEnv", json!(args.inherit_env));
    }
    if let Some(cwd) = &args.cwd {
        let is_named = cwd.starts_with(['~', '$']);
        set("cwd", json!(if is_named { cwd.clone() } else { edge.absolute(cwd) }));
    }
    if !args.header.is_empty() {
        set("headers", pairs(&args.header, ':').ok_or("`--header` expects 'NAME: VALUE'")?);
    }
    if let Some(variable) = &args.bearer_token_env_var {
        set("apiKey", json!(format!("secret://env/{variable}")));
    }
    let auth = object([
        ("clientId", args.client_id.as_ref().map(|id| json!(id))),
        ("redirectPort", args.callback_port.map(|port| json!(port))),
    ]);
    if let Some(auth) = auth {
        set("auth", auth);
    }
    if let Some(timeout) = args.timeout {
        set("timeout", json!(timeout));
    }
    if args.lazy {
        set("lazy", json!(true));
    }
    let list = |tools: &[String]| (!tools.is_empty()).then(|| json!(tools));
    let tools = object([("allow", list(&args.include_tools)), ("deny", list(&args.exclude_tools))]);
    if let Some(tools) = tools {
        set("tools", tools);
    }
    if args.trust {
        set("approval", json!("never"));
    }
    if let Some(prefix) = &args.tool_prefix {
        set("toolPrefix", json!(prefix));
    }
    Ok(Value::Object(entry))
}

/// Returns an object of the values that are given; `None` without any.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let given = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let given: Map<String, Value> = given.collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

fn pairs(written: &[String], separator: char) -> Option<Value> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(separator)?;
        // Spaces around a header's value are not part of it; those of a variable's value are.
        let value = if separator == ':' { value.trim() } else { value };
        Some((name.trim().to_owned(), json!(value)))
    };
    written.iter().map(pair).collect::<Option<Map<String, Value>>>().map(Value::Object)
}

fn transport_word(transport: TransportArg) -> &'static str {
    match transport {
        TransportArg::Stdio => "stdio",
        TransportArg::Http => "http",
        TransportArg::Sse => "sse",
    }
}

/// Returns the entry in a JSON text. It may be inside of `mcpServers`, or of an object with the
/// server's name.
pub(super) fn of_json(text: &str, name: &str) -> Result<Value, CommandError> {
    let example = "write it as '{\"command\": \"npx\", \"args\": [\"-y\", \"PACKAGE\"]}'";
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        CommandError::usage(format!("invalid JSON, line {line}, column {column}")).hint(example)
    })?;
    let Value::Object(mut entry) = value else {
        return Err(CommandError::usage("the entry is not a JSON object").hint(example));
    };
    for wrapper in ["mcpServers", "servers"] {
        if let Some(Value::Object(servers)) = entry.remove(wrapper) {
            entry = servers;
        }
    }
    let is_entry = |entry: &Map<String, Value>| {
        ["command", "url", "httpUrl", "serverUrl"].iter().any(|key| entry.contains_key(*key))
    };
    if !is_entry(&entry) {
        let only = (entry.len() == 1).then(|| entry.values().next().cloned()).flatten();
        match entry.get(name).cloned().or(only) {
            Some(Value::Object(inner)) if is_entry(&inner) => entry = inner,
            _ => {
                let message = "the entry has neither `command` nor `url`";
                return Err(CommandError::usage(message).hint(example));
            }
        }
    }
    Ok(Value::Object(openclaw_config::import::adapted(entry)))
}
