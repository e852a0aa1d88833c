//! The native tools and their descriptions for models.

use serde_json::{Value, json};

use super::plan::{MAX_STEP, MAX_STEPS, StepStatus};
use crate::spec::ToolEffect;

/// Maximum length of a path.
const MAX_PATH: usize = 4_096;
/// Maximum length of a command: systems accept no longer argument.
const MAX_COMMAND: usize = 100_000;
/// Maximum length of a URL.
const MAX_URL: usize = 8_192;

/// A native tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Native {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Changes a part of a file.
    Edit,
    /// Lists a folder.
    List,
    /// Runs a command.
    Exec,
    /// Fetches a web page.
    WebFetch,
    /// Shows the steps of a task to the user.
    UpdatePlan,
}

impl Native {
    /// All native tools.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::Edit,
        Self::List,
        Self::Exec,
        Self::WebFetch,
        Self::UpdatePlan,
    ];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::List => "list",
            Self::Exec => "exec",
            Self::WebFetch => "web_fetch",
            Self::UpdatePlan => "update_plan",
        }
    }

    /// Returns its label for users.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Read => "Read a file",
            Self::Write => "Write a file",
            Self::Edit => "Edit a file",
            Self::List => "List a folder",
            Self::Exec => "Run a command",
            Self::WebFetch => "Fetch a page",
            Self::UpdatePlan => "Update the plan",
        }
    }

    /// Returns its side effects. A command cannot be confined to a folder, and a URL can carry data
    /// to a host.
    pub(super) const fn effect(self) -> ToolEffect {
        match self {
            Self::Read | Self::List | Self::UpdatePlan => ToolEffect::ReadOnly,
            Self::Edit | Self::WebFetch => ToolEffect::Unknown,
            Self::Write | Self::Exec => ToolEffect::Destructive,
        }
    }

    /// Returns the kind of source in the details of an outcome.
    pub(super) const fn source(self) -> &'static str {
        match self {
            Self::Read | Self::Write | Self::Edit | Self::List => "file",
            Self::Exec => "command",
            Self::WebFetch => "web_fetch",
            Self::UpdatePlan => "plan",
        }
    }

    /// Returns its description for the model.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Reads a file in the workspace, or a saved large result. Text is returned in lines, \
                 long files in parts (`offset`, `limit`); images are shown."
            }
            Self::Write => {
                "Writes a text file in the workspace and creates missing folders. An existing file is \
                 replaced."
            }
            Self::Edit => {
                "Replaces text in a file in the workspace. `old` must occur exactly once, including \
                 white space, unless `all` is true."
            }
            Self::List => "Lists the files and folders in a workspace folder.",
            // A model writes commands for this shell.
            Self::Exec if cfg!(windows) => {
                "Runs a command in PowerShell (in cmd.exe where there is no PowerShell) in the \
                 workspace, without input, and returns its output and exit code. Processes that it \
                 leaves running are killed."
            }
            Self::Exec => {
                "Runs a shell command in the workspace, without input, and returns its output and exit \
                 code. Processes that it leaves running are killed."
            }
            Self::WebFetch => {
                "Fetches an https URL and returns its text (HTML is converted to readable text) or \
                 image. Private networks are not reachable."
            }
            Self::UpdatePlan => {
                "Shows the user the steps of a task and how far they are. For work of several steps: \
                 send the whole plan at the beginning and after each step, with at most one step \
                 `in_progress`."
            }
        }
    }

    /// Returns the schema of its arguments.
    pub fn schema(self) -> Value {
        let text = |most: usize, words: &str| json!({"type": "string", "minLength": 1, "maxLength": most, "description": words});
        let file = || text(MAX_PATH, "File path, relative to the workspace or absolute inside it.");
        let number = |least: u64, most: u64, words: &str| json!({"type": "integer", "minimum": least, "maximum": most, "description": words});
        let (properties, required) = match self {
            Self::Read => {
                let offset = "The first line to read; lines count from 1. A line of more than 4,000 \
                              bytes counts as several.";
                let properties = json!({
                    "path": file(),
                    "offset": number(1, u32::MAX.into(), offset),
                    "limit": number(1, 100_000, "Maximum number of lines; default 2,000."),
                });
                (properties, json!(["path"]))
            }
            Self::Write => {
                let content = json!({"type": "string", "description": "New content of the file."});
                (json!({"path": file(), "content": content}), json!(["path", "content"]))
            }
            Self::Edit => {
                let old = "Text to replace, exactly as in the file.";
                let properties = json!({
                    "path": file(),
                    "old": {"type": "string", "minLength": 1, "description": old},
                    "new": {"type": "string", "description": "Replacement text."},
                    "all": {"type": "boolean", "description": "Replace every occurrence."},
                });
                (properties, json!(["path", "old", "new"]))
            }
            Self::List => {
                let properties = json!({
                    "path": text(MAX_PATH, "Folder path; default: the workspace."),
                    "depth": number(1, 8, "Number of levels to list; default 1."),
                });
                (properties, json!([]))
            }
            Self::Exec => {
                let properties = json!({
                    "command": text(MAX_COMMAND, "Shell command."),
                    "timeout_ms": number(1, 24 * 60 * 60 * 1_000, "Timeout in milliseconds."),
                });
                (properties, json!(["command"]))
            }
            Self::WebFetch => {
                let url = text(MAX_URL, "The URL: `https://…`.");
                let most = "Maximum number of characters to return.";
                (json!({"url": url, "max_chars": number(1, 10_000_000, most)}), json!(["url"]))
            }
            Self::UpdatePlan => {
                let step = json!({"type": "string", "minLength": 1, "maxLength": MAX_STEP, "description": "What is done, in one short sentence."});
                let step = json!({
                    "type": "object",
                    "properties": {"step": step, "status": {"type": "string", "enum": StepStatus::NAMES}},
                    "required": ["step", "status"],
                    "additionalProperties": false,
                });
                let plan = json!({
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_STEPS,
                    "items": step,
                    "description": "All steps, in order.",
                });
                (json!({"plan": plan}), json!(["plan"]))
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
