//! `openclaw mcp resources | read | prompts | prompt`: what servers have besides tools (B14, B15).

use std::path::Path;
use std::sync::Arc;

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::bridge::Wishes;
use openclaw_mcp::listing::ListedPrompt;
use openclaw_mcp::server::Server;
use serde_json::{Value, json};

use super::call::WHO;
use super::host::{Need, Session, with_servers, with_session};
use super::{answer, arguments};
use crate::cli::{PromptArgs, PromptsArgs, ReadArgs, ResourcesArgs};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Column, Output, cut, cut_middle, fit, printable};

/// A person, or a program, may want what no model sees.
const EVERYTHING: Wishes<'_> =
    Wishes { watcher: None, within: None, everything: true, max_chars: None };
/// The server, what it has, and what that is.
const COLUMNS: [Column; 3] = [
    Column { widths: [16, 10], cut },
    Column { widths: [40, 24], cut: cut_middle },
    Column { widths: [20, 10], cut },
];
/// How much of a description is shown.
const DESCRIPTION_CHARS: usize = 400;

pub(super) fn resources(
    args: &ResourcesArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    with_servers(&args.whose, args.server.as_deref(), flag, edge, output, show_resources)
}

fn show_resources(servers: &[Arc<Server>], _: &Session, output: &mut Output) -> Exit {
    if output.json {
        let each = |of: fn(&Server) -> Vec<Value>| -> Vec<Value> {
            servers.iter().flat_map(|server| owned(server, of(server))).collect()
        };
        output.value(&json!({
            "resources": each(|server| listed(&server.shelf().inventory().resources)),
            "templates": each(|server| listed(&server.shelf().inventory().templates)),
        }));
        return Exit::Ok;
    }
    let mut rows = Vec::new();
    for server in servers {
        let inventory = server.shelf().inventory();
        for it in &inventory.resources {
            let about = about(it.title.as_deref().unwrap_or(&it.name), it.description.as_deref());
            rows.push([server.name().to_string(), it.uri.clone(), about]);
        }
        for it in &inventory.templates {
            let about = about(&it.name, it.description.as_deref());
            rows.push([server.name().to_string(), it.uri_template.clone(), about]);
        }
    }
    show_rows(&rows, "resources", output)
}

pub(super) fn prompts(
    args: &PromptsArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    with_servers(&args.whose, args.server.as_deref(), flag, edge, output, show_prompts)
}

fn show_prompts(servers: &[Arc<Server>], _: &Session, output: &mut Output) -> Exit {
    if output.json {
        let each = servers
            .iter()
            .flat_map(|server| owned(server, listed(&server.shelf().inventory().prompts)));
        output.value(&json!({ "prompts": each.collect::<Vec<_>>() }));
        return Exit::Ok;
    }
    let mut rows = Vec::new();
    for server in servers {
        for prompt in &server.shelf().inventory().prompts {
            let title = prompt.title.as_deref().unwrap_or_default();
            let about = about(title, prompt.description.as_deref());
            rows.push([server.name().to_string(), signature(prompt), about]);
        }
    }
    show_rows(&rows, "prompts", output)
}

/// `summarise [language]`: what is in brackets may be left out.
fn signature(prompt: &ListedPrompt) -> String {
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

/// What a server lists, each with the server's name.
fn owned(server: &Server, entries: Vec<Value>) -> impl Iterator<Item = Value> {
    let name = server.name().to_string();
    entries.into_iter().map(move |mut entry| {
        entry["server"] = json!(name);
        entry
    })
}

fn listed<T: serde::Serialize>(entries: &[T]) -> Vec<Value> {
    entries.iter().filter_map(|entry| serde_json::to_value(entry).ok()).collect()
}

pub(super) fn read(args: &ReadArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    let need = Need { answers: true, ..Need::of(&args.whose) };
    with_session(need, flag, edge, output, async |session, output| {
        if let Err(exit) = session.ready(&args.server, output).await {
            return exit;
        }
        let outcome = session.tools.read_with(&args.server, &args.uri, WHO, EVERYTHING).await;
        answer::show(&outcome, &args.uri, &args.show, output)
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
    let need = Need { answers: true, ..Need::of(&args.whose) };
    with_session(need, flag, edge, output, async |session, output| {
        let server = match session.ready(&args.server, output).await {
            Ok(server) => server,
            Err(exit) => return exit,
        };
        let inventory = server.shelf().inventory();
        if !inventory.prompts.iter().any(|prompt| prompt.name == args.name) {
            let known: Vec<&str> =
                inventory.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
            let hint = match openclaw_config::nearest(&args.name, &known) {
                Some(similar) => {
                    format!("did you mean `{}`?", clean_line(Untrusted::new(similar), 100))
                }
                None => format!("`openclaw mcp prompts {}` shows what it has", args.server),
            };
            let message = format!("`{}` has no prompt `{}`", args.server, args.name);
            output.problem(&message, Some(&hint));
            return Exit::Usage;
        }
        let tools = &session.tools;
        let outcome =
            tools.prompt_with(&args.server, &args.name, &arguments, WHO, EVERYTHING).await;
        answer::show(&outcome, &args.name, &args.show, output)
    })
}
