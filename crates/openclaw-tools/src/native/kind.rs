//! Which tools there are, and what a model is told about them.

use serde_json::{Value, json};

use crate::spec::Effect;

/// The longest path that is looked at.
const MAX_PATH: usize = 4_096;
/// The longest command: systems take no longer argument.
const MAX_COMMAND: usize = 100_000;
/// The longest address.
const MAX_URL: usize = 8_192;

/// A tool of the program itself.
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
    /// Fetches a page.
    WebFetch,
}

impl Native {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Edit, Self::List, Self::Exec, Self::WebFetch];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::List => "list",
            Self::Exec => "exec",
            Self::WebFetch => "web_fetch",
        }
    }

    /// What people call it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Read => "Read a file",
            Self::Write => "Write a file",
            Self::Edit => "Edit a file",
            Self::List => "List a folder",
            Self::Exec => "Run a command",
            Self::WebFetch => "Fetch a page",
        }
    }

    /// What it does to the world. A command cannot be confined to a folder.
    pub(super) const fn effect(self) -> Effect {
        match self {
            Self::Read | Self::List | Self::WebFetch => Effect::ReadOnly,
            Self::Edit => Effect::Unknown,
            Self::Write | Self::Exec => Effect::Destructive,
        }
    }

    /// The kind of source in an outcome's details.
    pub(super) const fn source(self) -> &'static str {
        match self {
            Self::Read | Self::Write | Self::Edit | Self::List => "file",
            Self::Exec => "command",
            Self::WebFetch => "web_fetch",
        }
    }

    /// What it does, for the model.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Reads a file of the workspace, or a file that holds a large result. Text is \
                 returned in lines, long files in parts (`offset`, `limit`); images are shown."
            }
            Self::Write => {
                "Writes a text file in the workspace, and creates missing folders. An existing file \
                 is replaced."
            }
            Self::Edit => {
                "Replaces a piece of text in a file of the workspace. `old` must occur exactly once, \
                 white space included, unless `all` is true."
            }
            Self::List => "Lists the files and folders in a folder of the workspace.",
            Self::Exec => {
                "Runs a command with the system's shell in the workspace, without input, and returns \
                 its output and exit code. Processes that it leaves running are killed."
            }
            Self::WebFetch => {
                "Fetches an https URL and returns its text (HTML is made readable) or image. \
                 Private networks cannot be reached."
            }
        }
    }

    /// The schema of its arguments.
    pub(super) fn schema(self) -> Value {
        let path = |words: &str| json!({"type": "string", "minLength": 1, "maxLength": MAX_PATH, "description": words});
        let file = || path("The file: relative to the workspace, or absolute and inside of it.");
        let number = |least: u64, most: u64, words: &str| json!({"type": "integer", "minimum": least, "maximum": most, "description": words});
        let (properties, required) = match self {
            Self::Read => {
                let offset = "The first line to read; lines count from 1. A line of more than 4,000 \
                              bytes counts as several.";
                let properties = json!({
                    "path": file(),
                    "offset": number(1, u32::MAX.into(), offset),
                    "limit": number(1, 100_000, "How many lines to read at most; 2,000 if not given."),
                });
                (properties, json!(["path"]))
            }
            Self::Write => {
                let content = json!({"type": "string", "description": "The whole new content."});
                (json!({"path": file(), "content": content}), json!(["path", "content"]))
            }
            Self::Edit => {
                let old = "The text to replace, exactly as it stands in the file.";
                let properties = json!({
                    "path": file(),
                    "old": {"type": "string", "minLength": 1, "description": old},
                    "new": {"type": "string", "description": "The text to put in its place."},
                    "all": {"type": "boolean", "description": "Replace every occurrence."},
                });
                (properties, json!(["path", "old", "new"]))
            }
            Self::List => {
                let properties = json!({
                    "path": path("The folder; the workspace itself if not given."),
                    "depth": number(1, 8, "How many levels to look at; 1 if not given."),
                });
                (properties, json!([]))
            }
            Self::Exec => {
                let command = json!({
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_COMMAND,
                    "description": "The command, as typed into a shell.",
                });
                let timeout = "The timeout, in milliseconds.";
                let properties = json!({
                    "command": command,
                    "timeout_ms": number(1, 24 * 60 * 60 * 1_000, timeout),
                });
                (properties, json!(["command"]))
            }
            Self::WebFetch => {
                let url = json!({
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_URL,
                    "description": "The URL: `https://…`.",
                });
                let most = "How many characters of text to return at most.";
                (json!({"url": url, "max_chars": number(1, 10_000_000, most)}), json!(["url"]))
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
