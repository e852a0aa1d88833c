//! `openclaw mcp resources | read | prompts | prompt | complete` (B14, B15, T13).

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::mcp::{
    CompleteParams, CompleteResult, ListParams, Outcome, PromptParams, PromptsResult, ReadParams,
    ResourcesResult,
};
use openclaw_protocol::{Rpc, rpc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use super::shell::{in_time, servers_of, with_result, with_shell};
use super::tools::print_missing;
use super::{answer, arguments, save};
use crate::cli::{
    CompleteArgs, ContextArgs, PromptArgs, PromptsArgs, ReadArgs, RequestArgs, ResourcesArgs,
};
use crate::commands::link::Servers;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, cut, printable};
use openclaw_terminal::style::FAINT;

/// The minimum width of a description; with less room, it is omitted.
const LEAST_DESCRIPTION: usize = 12;
/// The width reserved for descriptions when the column of names is sized.
const DESCRIPTION_ROOM: usize = 30;
/// The maximum length of a URI or name. Users copy it, so it is not truncated to the terminal.
const NAME_CHARS: usize = 8 * 1024;
/// The maximum length of a description. On a terminal, the width is the limit.
const DESCRIPTION_CHARS: usize = 10_000;

/// The shown fields of a resource, a resource template or a prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    server: String,
    name: String,
    title: Option<String>,
    uri: String,
    uri_template: String,
    description: Option<String>,
    arguments: Vec<Argument>,
}

/// The shown fields of a skill.
#[derive(Debug, Deserialize)]
struct Skill {
    server: String,
    uri: String,
    frontmatter: FrontMatter,
}

#[derive(Debug, Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Argument {
    name: String,
    required: bool,
}

/// Parses listed entries; invalid ones are skipped.
fn entries<T: DeserializeOwned>(raw: &[Box<RawValue>]) -> Vec<T> {
    raw.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
}

/// The parameters of a list, of one server or all.
fn of_server((context, server): (&ContextArgs, Option<&str>)) -> ListParams {
    let (agent_id, server) = (context.agent.clone(), server.map(str::to_owned));
    ListParams { agent_id, server, ..ListParams::default() }
}

pub(super) fn resources(args: &ResourcesArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let about = (&args.context, args.server.as_deref());
    with_result::<rpc::McpResources>(about, of_server(about), edge, output, show_resources)
}

fn show_resources(result: &ResourcesResult, output: &mut Output) -> Exit {
    print_missing(&result.missing, output);
    if output.json {
        output.value(&json!(result));
        return Exit::Ok;
    }
    let mut rows = Vec::new();
    for it in entries::<Entry>(&result.resources) {
        let about = about(it.title.as_deref().unwrap_or(&it.name), it.description.as_deref());
        rows.push([it.server, it.uri, about]);
    }
    for it in entries::<Entry>(&result.templates) {
        let about = about(&it.name, it.description.as_deref());
        rows.push([it.server, it.uri_template, about]);
    }
    for it in entries::<Skill>(&result.skills) {
        let FrontMatter { name, description } = it.frontmatter;
        rows.push([it.server, it.uri, about(&format!("skill {name}"), Some(&description))]);
    }
    // Group by server.
    rows.sort_by(|one, other| one[0].cmp(&other[0]));
    show_rows(&rows, "resources", output)
}

pub(super) fn prompts(args: &PromptsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let about = (&args.context, args.server.as_deref());
    with_result::<rpc::McpPrompts>(about, of_server(about), edge, output, show_prompts)
}

fn show_prompts(result: &PromptsResult, output: &mut Output) -> Exit {
    print_missing(&result.missing, output);
    if output.json {
        output.value(&json!(result));
        return Exit::Ok;
    }
    let mut rows = Vec::new();
    for prompt in entries::<Entry>(&result.prompts) {
        let title = prompt.title.as_deref().unwrap_or_default();
        let about = about(title, prompt.description.as_deref());
        rows.push([prompt.server.clone(), signature(&prompt), about]);
    }
    show_rows(&rows, "prompts", output)
}

/// Formats a prompt: `summarise [language]`. Optional arguments are in brackets.
fn signature(prompt: &Entry) -> String {
    let arguments = prompt.arguments.iter().map(|argument| match argument.required {
        true => argument.name.clone(),
        false => format!("[{}]", argument.name),
    });
    let words: Vec<String> = std::iter::once(prompt.name.clone()).chain(arguments).collect();
    words.join(" ")
}

fn about(title: &str, description: Option<&str>) -> String {
    match description {
        Some(description) if title.is_empty() => description.to_owned(),
        Some(description) => format!("{title}: {description}"),
        None => title.to_owned(),
    }
}

fn show_rows(rows: &[[String; 3]], what: &str, output: &mut Output) -> Exit {
    if rows.is_empty() {
        output.line(format_args!("No {what}."));
        return Exit::Ok;
    }
    let clean = |text: &str, most| printable(&clean_line(Untrusted::new(text), most)).into_owned();
    let rows = rows.iter().map(|[server, it, about]| {
        [server.clone(), clean(it, NAME_CHARS), clean(about, DESCRIPTION_CHARS)]
    });
    for [server, rest] in aligned(&rows.collect::<Vec<_>>(), output.width().into()) {
        output.laid_out(&format!(" {FAINT}{server}{FAINT:#}{rest}"));
    }
    Exit::Ok
}

/// Aligns rows: the server, then the URI or name and the description, which is truncated or omitted
/// on a narrow terminal.
fn aligned(rows: &[[String; 3]], width: usize) -> Vec<[String; 2]> {
    let chars = |text: &str| text.chars().count();
    let servers = rows.iter().map(|[server, ..]| chars(server)).max().unwrap_or(0);
    let room = width.saturating_sub(servers + 3);
    // A very long one must not displace the descriptions of all others.
    let lengths = || rows.iter().map(|[_, it, _]| chars(it));
    let fitting = lengths().filter(|length| length + 2 + DESCRIPTION_ROOM <= room).max();
    let column = fitting.unwrap_or(0);
    let row = |[server, it, about]: &[String; 3]| {
        let gap = " ".repeat(servers - chars(server) + 2);
        let room = room.saturating_sub(chars(it).max(column) + 2);
        let rest = match room {
            ..LEAST_DESCRIPTION => it.clone(),
            room => format!("{it:column$}  {}", cut(about, room)),
        };
        [server.clone(), format!("{gap}{}", rest.trim_end())]
    };
    rows.iter().map(row).collect()
}

/// Sends a request to a server, and shows its outcome.
fn request<R: Rpc<Result = Outcome>>(
    (server, what): (&str, &str),
    params: R::Params,
    args: &RequestArgs,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let servers = Servers { calls: true, ..servers_of(&args.context, edge) };
    with_shell(servers, edge, output, async |shell, output| {
        let outcome = shell.try_ask::<R>(params, Some(server)).await;
        answer::show(&outcome.map_err(in_time)?, what, &args.show, output)
    })
}

pub(super) fn read(args: &ReadArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let ReadArgs { server, uri, request: args } = args;
    save::check(&args.show)?;
    let params = ReadParams {
        agent_id: args.context.agent.clone(),
        server: server.clone(),
        uri: uri.clone(),
        raw: Some(args.show.raw),
        timeout_ms: args.timeout_ms(),
    };
    request::<rpc::McpRead>((server, uri), params, args, edge, output)
}

pub(super) fn prompt(args: &PromptArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let PromptArgs { server, name, arguments, request: args } = args;
    save::check(&args.show)?;
    let arguments = arguments::texts(arguments).map_err(CommandError::usage)?;
    let params = PromptParams {
        agent_id: args.context.agent.clone(),
        server: server.clone(),
        name: name.clone(),
        args: Some(arguments),
        raw: Some(args.show.raw),
        timeout_ms: args.timeout_ms(),
    };
    request::<rpc::McpPrompt>((server, name), params, args, edge, output)
}

pub(super) fn complete(args: &CompleteArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let given = arguments::texts(&args.given).map_err(CommandError::usage)?;
    let params = CompleteParams {
        agent_id: args.context.agent.clone(),
        server: Some(args.server.clone()),
        of: args.of.clone(),
        argument: args.argument.clone(),
        value: Some(args.prefix.clone()),
        args: (!given.is_empty()).then_some(given),
    };
    let about = (&args.context, Some(args.server.as_str()));
    with_result::<rpc::McpComplete>(about, params, edge, output, show_completions)
}

fn show_completions(result: &CompleteResult, output: &mut Output) -> Exit {
    if output.json {
        output.value(&json!(result));
        return Exit::Ok;
    }
    result.values.iter().for_each(|value| output.outside(value));
    if result.has_more {
        output.note("there are more values; give a longer prefix");
    }
    Exit::Ok
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "demo://resource/static/document/architecture-of-everything.md";

    fn shown(width: usize) -> Vec<String> {
        let row =
            |it: &str| ["files", it, "What it is, in many words that go on"].map(str::to_owned);
        let rows = aligned(&[row("demo://notes"), row(LONG)], width);
        rows.into_iter().map(|row| row.concat()).collect()
    }

    #[test]
    fn a_uri_is_never_truncated_but_the_description_is() {
        for width in 20..160 {
            let rows = shown(width);
            assert!(rows[0].contains("demo://notes"), "{width}: {rows:?}");
            assert!(rows[1].contains(LONG), "{width}: {rows:?}");
            let is_longer = |row: &&String| row.chars().count() + 1 > width;
            let too_long: Vec<&String> = rows.iter().filter(is_longer).collect();
            assert!(too_long.iter().all(|row| row.ends_with("://notes") || row.ends_with(LONG)));
        }
        assert_eq!(shown(70)[1], format!("files  {LONG}"));
    }

    #[test]
    fn one_long_uri_does_not_displace_the_descriptions_of_others() {
        assert_eq!(shown(80)[0], "files  demo://notes  What it is, in many words that go on");
        let column = |row: &str| row.find("What");
        let rows = shown(140);
        assert_eq!(column(&rows[0]), column(&rows[1]), "{rows:?}");
    }
}
