//! `openclaw sessions export`: a conversation as JSON or Markdown.

use std::fmt::Write as _;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::find;
use super::history::{self, Media};
use crate::cli::ExportFormat;
use crate::commands::link::GatewayLink;
use crate::commands::talk::{ShownCall, ShownMessage, ShownPart};
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn export(
    link: &GatewayLink,
    key: &str,
    format: ExportFormat,
    output: &mut Output,
) -> CommandResult {
    let row = find(link, key).await?;
    let media = match format {
        ExportFormat::Json => Media::Whole,
        ExportFormat::Md => Media::Described,
    };
    let messages = history::read(link, key, None, media).await?;
    match format {
        ExportFormat::Json => output.value(&json!({ "session": row, "messages": messages })),
        ExportFormat::Md => output.outside(&markdown(key, &messages)),
    }
    Ok(Exit::Ok)
}

fn markdown(key: &str, messages: &[Box<RawValue>]) -> String {
    let mut text = format!("# {key}\n");
    for raw in messages {
        let read: Option<Value> = serde_json::from_str(raw.get()).ok();
        let Some(message) = read.as_ref().and_then(ShownMessage::of) else { continue };
        for (at, part) in message.parts.iter().enumerate() {
            if at == 0 && !matches!(part, ShownPart::Result { .. }) {
                let _ = writeln!(text, "\n## {}", message.role);
            }
            write_part(part, &mut text);
        }
    }
    text
}

fn write_part(part: &ShownPart, text: &mut String) {
    let _ = match part {
        ShownPart::Text(said) => writeln!(text, "\n{said}"),
        ShownPart::File { name, text: content } => {
            writeln!(text, "\nAttached {name}:\n\n{}", fenced("", content.trim_end()))
        }
        ShownPart::Thought(_) => Ok(()),
        ShownPart::Call { name, args } => {
            writeln!(text, "\nCall `{name}`:\n\n{}", fenced("json", &format!("{args:#}")))
        }
        ShownPart::Result { name, text: said, is_error } => {
            let call = ShownCall { text: Some(said.clone()), ..ShownCall::default() };
            let name = name.as_deref().unwrap_or("the tool");
            let verb = if *is_error { "failed" } else { "returned" };
            writeln!(text, "\n`{name}` {verb}:\n\n{}", fenced("", call.result().trim_end()))
        }
        ShownPart::Media { mime_type, bytes } => {
            writeln!(text, "\n[{mime_type}, about {bytes} bytes]")
        }
        ShownPart::Other(kind) => writeln!(text, "\n[{kind}]"),
    };
}

/// Formats a code block whose fence is longer than any run of backticks in its content.
fn fenced(kind: &str, content: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in content.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{kind}\n{content}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap_or_default()
    }

    #[test]
    fn a_conversation_becomes_markdown_that_its_content_cannot_break() {
        let messages = [
            raw(&json!({ "role": "user", "content": [{ "type": "text", "text": "Show it" }] })),
            raw(&json!({ "role": "assistant", "content": [
                { "type": "toolCall", "name": "cat", "arguments": { "a": 1 } },
            ]})),
            raw(&json!({ "role": "toolResult", "content": [
                { "type": "toolResult", "name": "cat", "content": [
                    { "type": "text", "text": "```\nhi\n```" },
                ]},
            ]})),
        ];
        let text = markdown("agent:main:main", &messages);
        assert_eq!(
            text,
            "# agent:main:main\n\n## user\n\nShow it\n\n## assistant\n\nCall `cat`:\n\n\
             ```json\n{\n  \"a\": 1\n}\n```\n\n`cat` returned:\n\n````\n```\nhi\n```\n````\n"
        );
    }
}
