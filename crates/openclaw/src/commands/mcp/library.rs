//! `openclaw mcp resources | read | prompts | prompt`: what servers have besides tools (B14, B15).

use std::path::Path;
use std::time::Duration;

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::{self, Gathered};
use openclaw_protocol::Method;
use openclaw_protocol::mcp::{
    ListParams, PromptParams, PromptsResult, ReadParams, ResourcesResult,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

use super::beside::{beside, tell};
use super::call::{WHO, ready_in_time};
use super::host::{Need, Session, with_servers, with_session};
use super::tools::tell_missing;
use super::{answer, arguments};
use crate::cli::{PromptArgs, PromptsArgs, ReadArgs, ResourcesArgs};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Column, Output, cut, cut_middle, fit, printable};

/// The server, what it has, and what that is.
const COLUMNS: [Column; 3] = [
    Column { widths: [16, 10], cut },
    Column { widths: [40, 24], cut: cut_middle },
    Column { widths: [20, 10], cut },
];
/// How much of a description is shown.
const DESCRIPTION_CHARS: usize = 400;

/// A resource, a family of them, or a prompt, as far as it is shown.
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Argument {
    name: String,
    required: bool,
}

/// What servers list; what cannot be read is left out.
fn entries<T: DeserializeOwned>(raw: &[Box<RawValue>]) -> Vec<T> {
    raw.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
}

pub(super) fn resources(
    args: &ResourcesArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let (agent_id, server) = (args.whose.agent.clone(), args.server.clone());
        let params = ListParams { agent_id, server, ..ListParams::default() };
        let result = gateway.ask(Method::McpResources, &params, output).await?;
        Ok(show_resources(&result, output))
    });
    exit.unwrap_or_else(|| {
        let show = |gathered: &Gathered, _: &Session, output: &mut Output| {
            show_resources(&mcp::resources(gathered), output)
        };
        with_servers(&args.whose, args.server.as_deref(), flag, edge, output, show)
    })
}

fn show_resources(result: &ResourcesResult, output: &mut Output) -> Exit {
    tell_missing(&result.missing, output);
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
    // What belongs to one server stands together.
    rows.sort_by(|one, other| one[0].cmp(&other[0]));
    show_rows(&rows, "resources", output)
}

pub(super) fn prompts(
    args: &PromptsArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let (agent_id, server) = (args.whose.agent.clone(), args.server.clone());
        let params = ListParams { agent_id, server, ..ListParams::default() };
        let result = gateway.ask(Method::McpPrompts, &params, output).await?;
        Ok(show_prompts(&result, output))
    });
    exit.unwrap_or_else(|| {
        let show = |gathered: &Gathered, _: &Session, output: &mut Output| {
            show_prompts(&mcp::prompts(gathered), output)
        };
        with_servers(&args.whose, args.server.as_deref(), flag, edge, output, show)
    })
}

fn show_prompts(result: &PromptsResult, output: &mut Output) -> Exit {
    tell_missing(&result.missing, output);
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

/// `summarise [language]`: what is in brackets may be left out.
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
        output.line(format_args!("There are no {what}."));
        return Exit::Ok;
    }
    let clean = |text: &str| clean_line(Untrusted::new(text), DESCRIPTION_CHARS);
    let rows = rows.iter().map(|[server, it, about]| vec![server.clone(), clean(it), clean(about)]);
    let rows = fit(&rows.collect::<Vec<_>>(), &COLUMNS, output.width());
    output.table(rows.into_iter().map(|row| {
        let mut cells: Vec<Cell> = row.iter().map(|text| Cell::new(printable(text))).collect();
        let server = cells.remove(0);
        cells.insert(0, server.add_attribute(Attribute::Dim));
        cells
    }));
    Exit::Ok
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn read(args: &ReadArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    let params = ReadParams {
        agent_id: args.whose.agent.clone(),
        server: args.server.clone(),
        uri: args.uri.clone(),
        raw: Some(args.show.raw),
        timeout_ms: args.time.in_ms(),
    };
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let outcome = gateway.ask(Method::McpRead, &params, output).await?;
        Ok(answer::show(&outcome, &args.uri, &args.show, output))
    });
    exit.unwrap_or_else(|| {
        let timeout = args.time.all();
        let need = Need { answers: true, timeout, ..Need::of(&args.whose) };
        with_session(need, flag, edge, output, async |session, output| {
            let left = match ready_in_time(&args.server, &args.time, session, output).await {
                Ok(left) => left,
                Err(exit) => return exit,
            };
            let params = ReadParams { timeout_ms: left.map(in_ms), ..params };
            match mcp::read(&session.tools, &params, WHO).await {
                Ok(outcome) => answer::show(&outcome, &args.uri, &args.show, output),
                Err(problem) => tell(&problem, output),
            }
        })
    })
}

pub(super) fn prompt(
    args: &PromptArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let arguments = match arguments::texts(&args.arguments) {
        Ok(arguments) => arguments,
        Err(problem) => {
            output.problem(&problem, None);
            return Exit::Usage;
        }
    };
    let params = PromptParams {
        agent_id: args.whose.agent.clone(),
        server: args.server.clone(),
        name: args.name.clone(),
        args: Some(arguments),
        raw: Some(args.show.raw),
        timeout_ms: args.time.in_ms(),
    };
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let outcome = gateway.ask(Method::McpPrompt, &params, output).await?;
        Ok(answer::show(&outcome, &args.name, &args.show, output))
    });
    exit.unwrap_or_else(|| {
        let timeout = args.time.all();
        let need = Need { answers: true, timeout, ..Need::of(&args.whose) };
        with_session(need, flag, edge, output, async |session, output| {
            let left = match ready_in_time(&args.server, &args.time, session, output).await {
                Ok(left) => left,
                Err(exit) => return exit,
            };
            let params = PromptParams { timeout_ms: left.map(in_ms), ..params };
            match mcp::prompt(&session.tools, &params, WHO).await {
                Ok(outcome) => answer::show(&outcome, &args.name, &args.show, output),
                Err(problem) => tell(&problem, output),
            }
        })
    })
}
