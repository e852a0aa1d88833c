//! The changes that a call makes to files, for the client to show.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolKind};
use openclaw_tools::native::Native;
use serde_json::{Map, Value};

use crate::builtin::BuiltinTool;
use crate::folders::{SessionFolders, normal};

/// A larger file is not read for the text that a call replaces.
const MAX_BEFORE: u64 = 1024 * 1024;
/// The arguments that name a file, as MCP servers call them.
const PATHS: [&str; 3] = ["path", "file_path", "filePath"];
/// The arguments that replace one text by another, as MCP servers call them.
const REPLACED: [(&str, &str); 5] = [
    ("old", "new"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
];

/// The absolute path of the file that a call is about.
pub(crate) fn changed_path(folders: &SessionFolders, name: &str, args: &Value) -> Option<PathBuf> {
    let base = match BuiltinTool::find(name) {
        Some(BuiltinTool::Native(_)) => folders.workspace.as_deref(),
        Some(BuiltinTool::Editor(_)) => Some(folders.cwd()),
        None => None,
    };
    let path = PATHS.iter().find_map(|key| args.get(*key)?.as_str()).map(Path::new)?;
    match base {
        Some(base) => Some(normal(&base.join(path))),
        // What a relative path of another tool is relative to is not known.
        None => path.is_absolute().then(|| normal(path)),
    }
}

/// The changes that a call makes to a file, as its arguments describe them.
pub(crate) fn changes(path: &Path, args: &Value, kind: ToolKind) -> Vec<ToolCallContent> {
    let args = args.as_object().filter(|_| kind != ToolKind::Read);
    let diffs = args.map(|args| diffs(path, args)).unwrap_or_default();
    diffs.into_iter().map(ToolCallContent::Diff).collect()
}

fn diffs(path: &Path, args: &Map<String, Value>) -> Vec<Diff> {
    let replaced = |args: &Map<String, Value>| {
        let text = |key: &str| args.get(key)?.as_str();
        let (old, new) = REPLACED.iter().find_map(|(old, new)| text(old).zip(text(new)))?;
        Some(Diff::new(path, new).old_text(old.to_owned()))
    };
    if let Some(diff) = replaced(args) {
        return vec![diff];
    }
    let edits = args.get("edits").and_then(Value::as_array).into_iter().flatten();
    let edits: Vec<Diff> = edits.filter_map(Value::as_object).filter_map(replaced).collect();
    let content = args.get("content").and_then(Value::as_str);
    match content {
        // With further arguments it may mean something else.
        Some(content) if edits.is_empty() && args.len() == 2 => vec![Diff::new(path, content)],
        _ => edits,
    }
}

/// Adds the text that a call will replace, if the file is in this folder: it is on this machine then.
pub(crate) fn add_replaced_text(folder: &Path, name: &str, content: &mut [ToolCallContent]) {
    // An edit has it already, and the editor has read it for its own tools.
    if matches!(
        BuiltinTool::find(name),
        Some(BuiltinTool::Native(Native::Edit) | BuiltinTool::Editor(_))
    ) {
        return;
    }
    for content in content {
        if let ToolCallContent::Diff(diff) = content
            && diff.old_text.is_none()
            && diff.path.starts_with(folder)
        {
            let before = openclaw_files::read(&diff.path, MAX_BEFORE).ok();
            diff.old_text = before.and_then(|before| String::from_utf8(before).ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_recognized_by_their_arguments() {
        let changes = |args: Value| {
            let diffs = diffs(Path::new("/w/a"), args.as_object().unwrap());
            let parts = diffs.into_iter().map(|diff| (diff.old_text, diff.new_text));
            parts.collect::<Vec<_>>()
        };
        let pair = |old: &str, new: &str| (Some(old.to_owned()), new.to_owned());
        assert_eq!(changes(json!({ "path": "/w/a", "old": "1", "new": "2" })), [pair("1", "2")]);
        let edits = json!([{ "oldText": "1", "newText": "2" }, { "oldText": "3", "newText": "" }]);
        assert_eq!(
            changes(json!({ "path": "/w/a", "edits": edits, "dryRun": false })),
            [pair("1", "2"), pair("3", "")]
        );
        assert_eq!(changes(json!({ "path": "/w/a", "content": "x" })), [(None, "x".to_owned())]);
        for other in [
            json!({ "path": "/w/a" }),
            json!({ "path": "/w/a", "content": "x", "channel": "general" }),
            json!({ "path": "/w/a", "old_text": "1" }),
            json!({ "path": "/w/a", "edits": ["x"] }),
        ] {
            assert_eq!(changes(other), []);
        }
    }
}
