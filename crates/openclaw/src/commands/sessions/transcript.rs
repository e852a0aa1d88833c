//! `openclaw sessions show`: a conversation as text.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::sessions::Row;
use serde_json::value::RawValue;

use super::ago;
use super::list::updated;
use crate::commands::talk::{CallFormatter, ShownCall, ShownMessage, ShownPart};
use crate::output::{Output, plural};
use openclaw_terminal::style::{FAINT, HINT, STRONG};

/// The maximum length of a key, a role or a type.
const LINE_CHARS: usize = 200;

pub(super) fn show(row: &Row, messages: &[Box<RawValue>], output: &mut Output) {
    let line = |text: &str| clean_line(Untrusted::new(text), LINE_CHARS);
    let when = updated(row).map(|time| format!(", {}", ago(time))).unwrap_or_default();
    let count = plural(messages.len(), "message");
    output.line(format_args!("{STRONG}{}{STRONG:#} {FAINT}{count}{when}{FAINT:#}", line(&row.key)));
    for raw in messages {
        let read = serde_json::from_str(raw.get()).ok();
        if let Some(message) = read.as_ref().and_then(ShownMessage::of) {
            show_message(&message, output);
        }
    }
}

fn show_message(message: &ShownMessage, output: &mut Output) {
    let is_result = message.parts.iter().all(|part| matches!(part, ShownPart::Result { .. }));
    if !is_result || message.parts.is_empty() {
        let who = match message.role.as_str() {
            "user" => "you",
            "toolResult" | "tool" => "tool",
            "system" => "summary",
            other => other,
        };
        let who = clean_line(Untrusted::new(who), LINE_CHARS);
        output.line(format_args!("\n{HINT}{who}{HINT:#}"));
    }
    for part in &message.parts {
        match part {
            ShownPart::Text(text) if message.role == "toolResult" => {
                let name = message.tool.as_deref().unwrap_or("tool");
                result(name, text, message.is_error, output);
            }
            ShownPart::Text(text) => output.outside(text),
            ShownPart::File { name, text } => {
                output.line(format_args!("{FAINT}attached {name}:{FAINT:#}"));
                output.outside(text);
            }
            ShownPart::Thought(_) => output.line(format_args!("{FAINT}(thought){FAINT:#}")),
            ShownPart::Call { name, args } => {
                let call = ShownCall {
                    name: name.clone(),
                    args: Some(args.clone()),
                    ..ShownCall::default()
                };
                output.line(format_args!("{FAINT}⚙ {}{FAINT:#}", call.asked()));
            }
            ShownPart::Result { name, text, is_error } => {
                let name = name.as_deref().or(message.tool.as_deref()).unwrap_or("tool");
                result(name, text, *is_error, output);
            }
            ShownPart::Media { mime_type, bytes } => {
                let kind = clean_line(Untrusted::new(mime_type), LINE_CHARS);
                output.line(format_args!("{FAINT}[{kind}, about {bytes} bytes]{FAINT:#}"));
            }
            ShownPart::Other(kind) => {
                let kind = clean_line(Untrusted::new(kind), LINE_CHARS);
                output.line(format_args!("{FAINT}[{kind}]{FAINT:#}"));
            }
        }
    }
}

fn result(name: &str, text: &str, is_error: bool, output: &mut Output) {
    let call = ShownCall {
        name: name.to_owned(),
        text: Some(text.to_owned()),
        is_error,
        ..ShownCall::default()
    };
    CallFormatter::result(&call).iter().for_each(|line| output.line(line));
}
