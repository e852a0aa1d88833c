//! How a call is described to the client.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolKind,
};
use openclaw_content::{ShownArguments, excerpt, reveal_hidden};
use openclaw_protocol::tools::Risk;
use openclaw_tools::ToolEffect;
use openclaw_tools::native::Native;
use serde_json::{Map, Value};

use crate::builtin::{BuiltinTool, EditorTool};
use crate::catalog::ToolCatalog;
use crate::changes::{changed_path, changes};
use crate::content::text_content;
use crate::folders::SessionFolders;
use crate::lent_tools::EditorLentTools;

/// Maximum number of characters of a command or of arguments that are shown before a call.
const MAX_SHOWN: usize = 20_000;

/// Describes the calls of a session.
pub(crate) struct CallDescriber {
    pub(crate) folders: Arc<SessionFolders>,
    pub(crate) lent: Arc<EditorLentTools>,
    pub(crate) catalog: Arc<ToolCatalog>,
}

impl CallDescriber {
    /// Describes a call. `label` is the gateway's title of the tool.
    pub(crate) fn describe(
        &self,
        id: ToolCallId,
        name: &str,
        label: &str,
        args: Value,
    ) -> ToolCall {
        let path = changed_path(&self.folders, name, &args);
        let builtin = BuiltinTool::find(name);
        let lent = self.lent.find(name);
        let kind = match (builtin, &lent) {
            (Some(tool), _) => tool.kind(),
            (None, Some(tool)) => kind_of_effect(tool.effect),
            (None, None) => kind_of_risk(self.catalog.risk(name)),
        };
        let title = match (builtin, &lent) {
            (Some(tool), _) => tool.title(),
            (None, Some(tool)) => &tool.label,
            (None, None) => label,
        };
        // One argument says most about a call of these tools.
        let detail = command_line(name, &args).or_else(|| {
            let detail = ["path", "url"].iter().find_map(|key| args.get(*key)?.as_str());
            detail.map(ToOwned::to_owned)
        });
        let title = match detail.filter(|_| builtin.is_some()) {
            Some(detail) => format!("{title}: {}", first_line(&detail)),
            None => title.to_owned(),
        };
        let content = path.as_ref().map(|path| changes(path, &args, kind)).unwrap_or_default();
        ToolCall::new(id, title)
            .name(name.to_owned())
            .kind(kind)
            .content(content)
            .locations(path.into_iter().map(ToolCallLocation::new).collect::<Vec<_>>())
            .raw_input(args)
    }
}

/// The kind of a tool of an MCP server, from its annotations.
fn kind_of_effect(effect: ToolEffect) -> ToolKind {
    match effect {
        ToolEffect::ReadOnly => ToolKind::Read,
        ToolEffect::Destructive => ToolKind::Edit,
        ToolEffect::Unknown => ToolKind::Other,
    }
}

/// The kind of a tool of the gateway.
fn kind_of_risk(risk: Option<Risk>) -> ToolKind {
    match risk {
        Some(Risk::Low) => ToolKind::Read,
        Some(Risk::High) => ToolKind::Edit,
        Some(Risk::Medium) | None => ToolKind::Other,
    }
}

/// The command that a call runs, as it would be typed; `None` if it runs none.
fn command_line(name: &str, args: &Value) -> Option<String> {
    let command = args.get("command").and_then(Value::as_str)?;
    match BuiltinTool::find(name)? {
        BuiltinTool::Native(Native::Exec) => Some(command.to_owned()),
        BuiltinTool::Editor(EditorTool::Run) => {
            let args = args.get("args").and_then(Value::as_array).into_iter().flatten();
            let words = std::iter::once(command).chain(args.filter_map(Value::as_str));
            let line = words.map(|word| shlex::try_quote(word).unwrap_or(word.into()));
            Some(line.collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// What a call will do, in full, for the user who decides about it: its command, or its arguments, which
/// are `raw` as they will be sent.
pub(crate) fn whole_call(name: &str, args: &Value, raw: &str) -> Option<ToolCallContent> {
    let folder = args.get("cwd").and_then(Value::as_str).map(|it| format!("\nin {it}"));
    let (language, text) = match command_line(name, args) {
        Some(line) => ("sh", reveal_hidden(&(line + &folder.unwrap_or_default()))),
        None if args.as_object().is_none_or(Map::is_empty) => return None,
        None => ("", ShownArguments::read(raw).text()),
    };
    // The raw input has all of it.
    let shown = excerpt(&text, MAX_SHOWN);
    // Longer than any in the text, which cannot end the block then.
    let ticks = shown.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(ticks.max(2) + 1);
    Some(text_content(format!("{fence}{language}\n{shown}\n{fence}")))
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_will_be_sent() {
        let raw = r#"{"z":12345678901234567890123,"text":"EVIL","text":"a\u202eb"}"#;
        let shown = whole_call("mcp_one_write", &serde_json::from_str(raw).unwrap(), raw);
        let shown = serde_json::to_string(&shown).unwrap();
        for part in ["z=12345678901234567890123", "EVIL", "u{202e}b"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(whole_call("mcp_one_write", &serde_json::json!({}), "{}").is_none());
    }
}
