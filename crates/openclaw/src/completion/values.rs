//! Which arguments take which names.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::inventory::Inventory;

use super::known::Known;

/// The maximum length of a description.
const HELP_CHARS: usize = 80;

/// The kinds of names.
#[derive(Debug, Clone, Copy)]
enum Names {
    Agents,
    Sessions,
    Servers,
    /// A server, or `SERVER.TOOL`.
    Callable,
    /// The tools of the server before it, and then the arguments of the tool.
    ToolAndArguments,
    Tools,
    Prompts,
    Resources,
}

/// Adds the names that are known to the arguments that take them.
pub(super) fn with_names(command: Command, known: &Known) -> Command {
    in_command(command, "", known)
}

fn in_command(command: Command, path: &str, known: &Known) -> Command {
    let command = command.mut_args(|arg| match names_of(path, &arg) {
        Some(names) => arg.add(completer(names, path, known)),
        None => arg,
    });
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        in_command(inner, path.trim_start(), known)
    })
}

/// Returns the names that an argument takes, by its command and id.
fn names_of(path: &str, arg: &Arg) -> Option<Names> {
    let of_server = path.strip_prefix("mcp ");
    Some(match (of_server, arg.get_id().as_str()) {
        (_, "agent") if !arg.is_positional() => Names::Agents,
        (_, "session") | (None, "resume") => Names::Sessions,
        (None, "key") if path.starts_with("sessions ") => Names::Sessions,
        (Some("call"), "target") => Names::Callable,
        (Some("call"), "rest") => Names::ToolAndArguments,
        (Some("tools"), "tool") => Names::Tools,
        (Some("prompt"), "name") | (Some("complete"), "of") => Names::Prompts,
        (Some("read"), "uri") => Names::Resources,
        (Some("add" | "add-json" | "connect" | "import"), _) => return None,
        (Some(_), "server" | "name") if arg.is_positional() => Names::Servers,
        _ => return None,
    })
}

fn completer(names: Names, path: &str, known: &Known) -> ArgValueCompleter {
    let known = known.clone();
    let subcommand = path.rsplit(' ').next().unwrap_or_default().to_owned();
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let found = found(names, &subcommand, &current, &known);
        let begins = |(value, _): &(String, String)| value.starts_with(&*current);
        let candidates = found.into_iter().filter(begins).map(|(value, help)| {
            let help = (!help.is_empty()).then(|| clean_line(Untrusted::new(&help), HELP_CHARS));
            CompletionCandidate::new(value).help(help.map(Into::into))
        });
        candidates.collect::<Vec<_>>()
    })
}

/// Returns the names, each with a description. Names that a shell could not insert are left out.
fn found(names: Names, subcommand: &str, current: &str, known: &Known) -> Vec<(String, String)> {
    let before = known.words_after(subcommand);
    let found = match names {
        Names::Agents => known.agents().into_iter().map(|id| (id, String::new())).collect(),
        Names::Sessions => known.sessions(),
        Names::Servers => known.servers(),
        Names::Callable => callable(current, known),
        Names::ToolAndArguments => tool_or_argument(before, known),
        Names::Tools => listed(before, known).map(|(_, it)| tools(&it)).unwrap_or_default(),
        Names::Prompts => listed(before, known).map(|(_, it)| prompts(&it)).unwrap_or_default(),
        Names::Resources => listed(before, known).map(|(_, it)| resources(&it)).unwrap_or_default(),
    };
    let is_plain = |(value, _): &(String, String)| {
        !value.is_empty() && !value.contains(|c: char| c.is_control() || c.is_whitespace())
    };
    found.into_iter().filter(is_plain).collect()
}

/// Returns the first word that is a server, and what the server listed.
fn listed<'w>(words: &'w [String], known: &Known) -> Option<(&'w String, Inventory)> {
    words.iter().find_map(|word| Some((word, known.listed(word)?)))
}

fn callable(current: &str, known: &Known) -> Vec<(String, String)> {
    let servers = known.servers();
    let dotted = servers.iter().filter(|(name, _)| {
        current.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
    });
    let dotted: Vec<(String, String)> = dotted
        .flat_map(|(server, _)| {
            let tools = known.listed(server).map(|it| tools(&it)).unwrap_or_default();
            let full = |(tool, help)| (format!("{server}.{tool}"), help);
            tools.into_iter().map(full).collect::<Vec<_>>()
        })
        .collect();
    servers.into_iter().chain(dotted).collect()
}

/// Completes what follows a server, or a `SERVER.TOOL`.
fn tool_or_argument(words: &[String], known: &Known) -> Vec<(String, String)> {
    if let Some((server, inventory)) = listed(words, known) {
        let mut after = words.iter().skip_while(|word| *word != server).skip(1);
        return match after.find(|word| inventory.tools.iter().any(|tool| tool.name == **word)) {
            Some(tool) => arguments(&inventory, tool, words),
            None => tools(&inventory),
        };
    }
    let servers = known.servers();
    for word in words {
        for (server, _) in &servers {
            let tool = word.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix('.'));
            if let Some((tool, inventory)) = tool.zip(known.listed(server)) {
                return arguments(&inventory, tool, words);
            }
        }
    }
    Vec::new()
}

/// Returns the arguments of a tool that are not given yet, as `key=`.
fn arguments(inventory: &Inventory, tool: &str, given: &[String]) -> Vec<(String, String)> {
    let tool = inventory.tools.iter().find(|known| known.name == tool);
    let properties = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
    let is_given = |key: &str| {
        given.iter().any(|word| word.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))
    };
    let help = |schema: &serde_json::Value| {
        schema.get("description").and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    };
    let properties = properties.into_iter().flatten().filter(|(key, _)| !is_given(key));
    properties.map(|(key, schema)| (format!("{key}="), help(schema))).collect()
}

fn tools(inventory: &Inventory) -> Vec<(String, String)> {
    let tools = inventory.tools.iter();
    tools.map(|it| (it.name.clone(), it.description.clone().unwrap_or_default())).collect()
}

fn prompts(inventory: &Inventory) -> Vec<(String, String)> {
    let prompts = inventory.prompts.iter();
    prompts.map(|it| (it.name.clone(), it.description.clone().unwrap_or_default())).collect()
}

fn resources(inventory: &Inventory) -> Vec<(String, String)> {
    inventory.resources.iter().map(|it| (it.uri.clone(), it.name.clone())).collect()
}
