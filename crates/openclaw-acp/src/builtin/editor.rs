//! The tools that an editor can execute, as the model sees them.

use std::path::Path;

use agent_client_protocol::v1::schema::ToolKind;
use openclaw_tools::ToolEffect;
use serde_json::{Value, json};

/// A tool that the editor executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorTool {
    ReadFile,
    WriteFile,
    EditFile,
    Run,
}

impl EditorTool {
    pub(crate) const ALL: [Self; 4] = [Self::ReadFile, Self::WriteFile, Self::EditFile, Self::Run];

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "editor_read_file",
            Self::WriteFile => "editor_write_file",
            Self::EditFile => "editor_edit_file",
            Self::Run => "editor_run",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ReadFile => "Read a file in the editor",
            Self::WriteFile => "Write a file in the editor",
            Self::EditFile => "Edit a file in the editor",
            Self::Run => "Run a command in the editor",
        }
    }

    pub(crate) const fn kind(self) -> ToolKind {
        match self {
            Self::ReadFile => ToolKind::Read,
            Self::WriteFile | Self::EditFile => ToolKind::Edit,
            Self::Run => ToolKind::Execute,
        }
    }

    pub(crate) const fn effect(self) -> ToolEffect {
        match self {
            Self::ReadFile => ToolEffect::ReadOnly,
            Self::EditFile => ToolEffect::Unknown,
            Self::WriteFile | Self::Run => ToolEffect::Destructive,
        }
    }

    pub(crate) fn description(self, cwd: &Path) -> String {
        let cwd = cwd.display();
        match self {
            Self::ReadFile => format!(
                "Reads a text file of the user's project in {cwd}, as it is in the editor, with \
                 unsaved changes. For these files, use it instead of `read`."
            ),
            Self::WriteFile => format!(
                "Writes a text file of the user's project in {cwd} through the editor. An existing \
                 file is replaced. For these files, use it instead of `write`: the editor may have \
                 unsaved changes."
            ),
            Self::EditFile => format!(
                "Replaces text in a file of the user's project in {cwd} through the editor. `old` \
                 must occur exactly once, including white space. For these files, use it instead of \
                 `edit`: the editor may have unsaved changes."
            ),
            Self::Run => format!(
                "Runs a program in a terminal of the editor, in the user's project in {cwd}, and \
                 returns its output and exit code. For a shell command, run `sh` with the \
                 arguments `-c` and the command."
            ),
        }
    }

    pub(crate) fn schema(self) -> Value {
        let path = json!({
            "type": "string",
            "minLength": 1,
            "description": "File path, absolute or relative to the project.",
        });
        let text = |about: &str| json!({ "type": "string", "description": about });
        let (properties, required) = match self {
            Self::ReadFile => {
                let number =
                    |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
                let properties = json!({
                    "path": path,
                    "line": number("The first line to read; lines count from 1."),
                    "limit": number("Maximum number of lines."),
                });
                (properties, json!(["path"]))
            }
            Self::WriteFile => {
                let properties =
                    json!({ "path": path, "content": text("New content of the file.") });
                (properties, json!(["path", "content"]))
            }
            Self::EditFile => {
                let old =
                    json!({ "type": "string", "minLength": 1, "description": "Text to replace." });
                let properties =
                    json!({ "path": path, "old": old, "new": text("Replacement text.") });
                (properties, json!(["path", "old", "new"]))
            }
            Self::Run => {
                let properties = json!({
                    "command": { "type": "string", "minLength": 1, "description": "The program." },
                    "args": { "type": "array", "items": { "type": "string" }, "description": "Its arguments." },
                    "cwd": text("Folder in the project; default: the project."),
                });
                (properties, json!(["command"]))
            }
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}
