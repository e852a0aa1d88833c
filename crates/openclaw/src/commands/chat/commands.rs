//! Slash commands that the chat itself understands. All others are the gateway's.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::agents::{CommandsParams, CommandsResult};
use openclaw_protocol::{AskError, Method};

use super::Chat;
use crate::commands::link::look;
use crate::commands::sessions;
use crate::output::{FAINT, Output, STRONG, printable};

/// The word, what may follow it, and what it does.
pub(super) const LOCAL: [(&str, &str, &str); 7] = [
    ("/help", "", "Lists the commands"),
    ("/new", "", "Begins a new conversation"),
    ("/sessions", "", "Lists the latest conversations"),
    ("/session", "KEY", "Goes on with another conversation"),
    ("/model", "", "Tells which model answers, and how to have another"),
    ("/call", "TOOL {JSON}", "Calls a tool"),
    ("/exit", "", "Leaves"),
];
/// How many conversations are listed.
const LATEST: u64 = 15;
/// How much of a description is shown.
const LINE_CHARS: usize = 120;

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing.
    Empty,
    /// Something that was done here.
    Done,
    Exit,
    /// A tool to be called, and its arguments.
    Call(&'a str, &'a str),
    /// For the gateway.
    Message,
}

/// Carries out a line that is for the chat itself.
pub(super) async fn take<'l>(chat: &mut Chat<'_>, line: &'l str, output: &mut Output) -> Line<'l> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word, rest.trim()) {
        ("", _) => return Line::Empty,
        ("/exit" | "/quit" | "/q", "") => return Line::Exit,
        // The offline model calls tools by itself: the turn is then kept.
        ("/call", call) if !chat.whom.is_offline() => {
            let (tool, args) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
            return Line::Call(tool, args.trim());
        }
        ("/help", "") => help(chat, output).await,
        ("/new", "") => {
            chat.session = chat.whom.new_session();
            tell_session(chat, "a new conversation", output);
        }
        ("/session", "") => tell_session(chat, "this conversation", output),
        ("/session", key) => {
            chat.session = chat.whom.session(key);
            tell_session(chat, "on with", output);
        }
        ("/sessions", "") => list(chat, output).await,
        ("/model", "") => model(chat, output),
        _ => return Line::Message,
    }
    Line::Done
}

fn tell_session(chat: &Chat<'_>, words: &str, output: &mut Output) {
    let key = clean_line(Untrusted::new(&chat.session), LINE_CHARS);
    output.line(format_args!("{FAINT}{words}:{FAINT:#} {key}"));
}

async fn list(chat: &Chat<'_>, output: &mut Output) {
    match sessions::latest(chat.surface, &chat.whom.agent, LATEST).await {
        Ok(found) if found.is_empty() => output.line("There are no conversations yet."),
        Ok(found) => {
            output.table(sessions::rows(&found));
            output.line(format_args!("{FAINT}/session KEY goes on with one{FAINT:#}"));
        }
        Err(error) => output.warning(&error.to_string()),
    }
}

fn model(chat: &Chat<'_>, output: &mut Output) {
    let line = |text: &str| clean_line(Untrusted::new(text), LINE_CHARS);
    output.line(format_args!("{STRONG}{}{STRONG:#}", line(&chat.whom.model)));
    for fallback in &chat.whom.fallbacks {
        output.line(format_args!("  {FAINT}then{FAINT:#} {}", line(fallback)));
    }
    if chat.whom.is_offline() {
        output.line(
            "It is no language model: it follows simple words, such as `what time is it` or `add 2 and 3`,\n\
             and `/call TOOL {JSON}`, and really uses tools.",
        );
    }
    output.line(
        "Another one: `agents.defaults.model` in the configuration, such as `anthropic/claude-sonnet-4-5`;\n\
         or a key in $ANTHROPIC_API_KEY, $OPENAI_API_KEY or $GEMINI_API_KEY; or a local Ollama.",
    );
}

async fn help(chat: &Chat<'_>, output: &mut Output) {
    for (word, args, about) in LOCAL {
        show(&format!("{word} {args}"), about, output);
    }
    let params = CommandsParams {
        agent_id: Some(chat.whom.agent.clone()),
        include_args: Some(true),
        ..CommandsParams::default()
    };
    let answer: Result<CommandsResult, AskError> =
        look(chat.surface, Method::CommandsList, &params).await;
    let commands = match answer {
        Ok(answer) => answer.commands,
        Err(error) => return output.warning(&error.to_string()),
    };
    let is_known =
        |name: &str| LOCAL.iter().any(|(word, _, _)| word.strip_prefix('/') == Some(name));
    for command in commands.iter().filter(|command| !is_known(&command.name)) {
        let args = command.args.iter().flatten().map(|arg| match arg.required {
            Some(true) => arg.name.clone(),
            _ => format!("[{}]", arg.name),
        });
        let args = args.collect::<Vec<_>>().join(" ");
        show(&format!("/{} {args}", command.name), &command.description, output);
    }
    output.line(format_args!(
        "{FAINT}Tab completes, Ctrl-R searches, Alt-Enter or a \\ at the end begins a new line.{FAINT:#}"
    ));
}

fn show(usage: &str, about: &str, output: &mut Output) {
    let about = clean_line(Untrusted::new(about), LINE_CHARS);
    let usage = printable(usage.trim_end()).into_owned();
    output.line(format_args!("  {STRONG}{usage:24}{STRONG:#} {about}"));
}
