//! Writes an MCP server into the settings of other programs, and removes it (S7).
//!
//! Comments and everything else in their files are kept. A change is computed first, so that it can
//! be shown before it is written.

mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::edit::{Document, EditError, save_text};
use crate::import::{App, SearchContext, parse_json};
use crate::source::{ReadError, read_text};

/// A program that can use an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code.
    VsCode,
    /// Codex.
    Codex,
    /// Zed.
    Zed,
    /// Gemini CLI.
    GeminiCli,
    /// The Node version of OpenClaw.
    NodeOpenClaw,
}

/// Why a file of another program is not changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The home folder is unknown.
    #[error("the home folder is unknown")]
    NoHome,
    /// The program has no file of its own.
    #[error("the Node version of OpenClaw has the same settings file as this program")]
    SharedFile,
    /// The file cannot be read or edited.
    #[error("{0}")]
    Edit(#[from] EditError),
    /// The file is not valid. The message names the line only, because its text may be secret.
    #[error("{0}")]
    Invalid(String),
    /// The servers are written in a way that cannot be edited safely.
    #[error("the servers in it are written in a form that cannot be edited safely")]
    OddForm,
}

/// A change of a file, not yet written.
#[derive(Debug)]
pub struct InstallChange {
    /// The file.
    pub file: PathBuf,
    /// The keys that lead to the entry.
    pub path: Vec<String>,
    /// The entry in the file. It may contain credentials of the user.
    pub before: Option<Value>,
    /// The entry after the change.
    pub after: Option<Value>,
    text: String,
}

impl InstallChange {
    /// Whether the file is already as wanted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.before == self.after
    }

    /// Writes the file atomically. A new one is readable by its owner only.
    ///
    /// # Errors
    /// If it cannot be written; the old file is left untouched.
    pub fn write(&self) -> Result<(), EditError> {
        save_text(&self.file, &self.text)
    }
}

impl McpClient {
    /// The program whose files hold its servers; `None` for the Node version of OpenClaw.
    const fn app(self) -> Option<App> {
        Some(match self {
            Self::ClaudeCode => App::ClaudeCode,
            Self::ClaudeDesktop => App::ClaudeDesktop,
            Self::Cursor => App::Cursor,
            Self::VsCode => App::VsCode,
            Self::Codex => App::Codex,
            Self::Zed => App::Zed,
            Self::GeminiCli => App::GeminiCli,
            Self::NodeOpenClaw => return None,
        })
    }

    /// The display name.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.app().map_or("OpenClaw (Node)", App::title)
    }

    /// Returns the file with the user's settings.
    ///
    /// # Errors
    /// If the home folder is unknown, or the file is that of this program.
    pub fn file(self, machine: SearchContext<'_>) -> Result<PathBuf, InstallError> {
        let app = self.app().ok_or(InstallError::SharedFile)?;
        app.of_user(machine).into_iter().next().ok_or(InstallError::NoHome)
    }

    /// Returns the entry for a local program.
    fn entry(self, command: &str, args: &[String]) -> Value {
        let mut entry = Map::new();
        let marked = match self {
            Self::ClaudeCode | Self::VsCode => Some(("type", "stdio")),
            Self::Zed => Some(("source", "custom")),
            _ => None,
        };
        entry.extend(marked.map(|(key, value)| (key.to_owned(), json!(value))));
        entry.insert("command".to_owned(), json!(command));
        entry.insert("args".to_owned(), json!(args));
        Value::Object(entry)
    }

    /// Computes the change that adds a local program as a server, or replaces the one of that name.
    /// It gets these variables of the environment.
    ///
    /// # Errors
    /// If the file cannot be read or edited.
    pub fn install(
        self,
        file: PathBuf,
        name: &str,
        command: &str,
        args: &[String],
        variables: Map<String, Value>,
    ) -> Result<InstallChange, InstallError> {
        let mut entry = self.entry(command, args);
        if !variables.is_empty() {
            entry["env"] = Value::Object(variables);
        }
        self.change(file, name, Some(entry))
    }

    /// Computes the change that removes a server.
    ///
    /// # Errors
    /// If the file cannot be read or edited.
    pub fn uninstall(self, file: PathBuf, name: &str) -> Result<InstallChange, InstallError> {
        self.change(file, name, None)
    }

    fn change(
        self,
        file: PathBuf,
        name: &str,
        after: Option<Value>,
    ) -> Result<InstallChange, InstallError> {
        let text = existing(&file)?;
        let path = match self.app() {
            Some(app) => vec![app.key(), name],
            None => vec!["mcp", "servers", name],
        };
        let whole = match self {
            Self::Codex => toml::parse(&text),
            _ if text.trim().is_empty() => Ok(json!({})),
            _ => parse_json(&text),
        };
        let whole = whole.map_err(InstallError::Invalid)?;
        let before = path.iter().try_fold(&whole, |value, key| value.get(key)).cloned();
        let changed = match (self, &after) {
            _ if before == after => text,
            (Self::Codex, _) => toml::changed(&text, &whole, &path, after.as_ref())?,
            (_, Some(entry)) => {
                let document = Document::parse(&text)?;
                document.set(&path, entry)?;
                ended(&document)
            }
            (_, None) => {
                let document = Document::parse(&text)?;
                document.remove(&path);
                ended(&document)
            }
        };
        let path = path.into_iter().map(ToOwned::to_owned).collect();
        Ok(InstallChange { file, path, before, after, text: changed })
    }
}

fn existing(file: &Path) -> Result<String, InstallError> {
    match read_text(file) {
        Ok(text) => Ok(text),
        Err(ReadError::Missing) => Ok(String::new()),
        Err(error) => Err(EditError::from(error).into()),
    }
}

/// The text of a document, with a line break at its end.
fn ended(document: &Document) -> String {
    let mut text = document.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Platform;

    const CLIENTS: [McpClient; 8] = [
        McpClient::ClaudeCode,
        McpClient::ClaudeDesktop,
        McpClient::Cursor,
        McpClient::VsCode,
        McpClient::Codex,
        McpClient::Zed,
        McpClient::GeminiCli,
        McpClient::NodeOpenClaw,
    ];

    fn install(
        client: McpClient,
        file: &Path,
        command: &str,
    ) -> Result<InstallChange, InstallError> {
        let args = ["mcp-server".to_owned(), "--hub".to_owned()];
        client.install(file.to_path_buf(), "openclaw", command, &args, Map::new())
    }

    #[test]
    fn an_entry_is_added_to_an_absent_file_and_removed_again() {
        let folder = tempfile::tempdir().unwrap();
        for client in CLIENTS {
            let file = folder.path().join(format!("{client:?}/settings"));
            let add = || install(client, &file, "/bin/openclaw").unwrap();
            let change = add();
            assert!(!change.is_done() && change.before.is_none());
            change.write().unwrap();
            assert!(add().is_done(), "{client:?}");
            let removal = client.uninstall(file.clone(), "openclaw").unwrap();
            assert_eq!(removal.before.as_ref().unwrap()["command"], "/bin/openclaw");
            removal.write().unwrap();
            assert!(client.uninstall(file, "openclaw").unwrap().is_done());
        }
    }

    #[test]
    fn comments_and_other_entries_survive_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let json = "{\n  // mine\n  \"theme\": \"dark\",\n  \"context_servers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n";
        let toml = "# mine\nmodel = \"x\"\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.a.env]\nK = \"v\" # why\n\n[tui]\ntheme = \"dark\"\n";
        for (client, text) in [(McpClient::Zed, json), (McpClient::Codex, toml)] {
            let file = folder.path().join(format!("{client:?}"));
            std::fs::write(&file, text).unwrap();
            install(client, &file, "o").unwrap().write().unwrap();
            let added = std::fs::read_to_string(&file).unwrap();
            assert!(added.contains("mine") && added.contains("mcp-server"), "{added}");
            client.uninstall(file.clone(), "openclaw").unwrap().write().unwrap();
            let after = std::fs::read_to_string(&file).unwrap();
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeezed(&after), squeezed(text));
        }
    }

    #[test]
    fn an_entry_of_the_same_name_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let text = "[mcp_servers.openclaw]\ncommand = \"old\"\n[mcp_servers.openclaw.env]\nA = \"b\"\n[x]\ny = 1\n";
        std::fs::write(&file, text).unwrap();
        let change = install(McpClient::Codex, &file, "new").unwrap();
        assert_eq!(change.before.as_ref().unwrap()["env"]["A"], "b");
        change.write().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("new") && !text.contains("old") && text.contains("y = 1"), "{text}");
    }

    #[test]
    fn a_damaged_file_is_left_alone_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings");
        std::fs::write(&file, "{ \"token\": hunter2 !").unwrap();
        for client in CLIENTS {
            let error = install(client, &file, "o").unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{client:?}: {error}");
        }
    }

    #[test]
    fn toml_that_cannot_be_edited_safely_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        for text in [
            "mcp_servers = { a = { command = \"a\" } }\n",
            "[mcp_servers]\nopenclaw = { command = \"old\" }\n",
        ] {
            std::fs::write(&file, text).unwrap();
            let result = install(McpClient::Codex, &file, "o");
            assert!(matches!(result, Err(InstallError::OddForm)), "{text}: {result:?}");
        }
    }

    #[test]
    fn files_are_where_each_program_keeps_them() {
        let (home, cwd) = (Path::new("/home/user"), Path::new("/work"));
        let machine = SearchContext {
            home: Some(home),
            cwd,
            platform: Platform::Unix,
            variable: &|name| (name == "CODEX_HOME").then(|| "/elsewhere".into()),
            read: &crate::import::read_from_disk,
        };
        for (client, file) in [
            (McpClient::Codex, "/elsewhere/config.toml"),
            (McpClient::Zed, "/home/user/.config/zed/settings.json"),
            (McpClient::VsCode, "/home/user/.config/Code/User/mcp.json"),
            (McpClient::ClaudeCode, "/home/user/.claude.json"),
        ] {
            assert_eq!(client.file(machine).unwrap(), Path::new(file));
        }
        assert!(matches!(McpClient::NodeOpenClaw.file(machine), Err(InstallError::SharedFile)));
        let nowhere = SearchContext { home: None, ..machine };
        assert!(matches!(McpClient::Cursor.file(nowhere), Err(InstallError::NoHome)));
    }
}
