//! Where each program keeps its MCP servers, and in which format.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{FoundServer, SearchContext, codex, convert, yaml};
use crate::source::Sources;
use crate::tree;

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum App {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// VS Code, including Insiders.
    VsCode,
    /// Codex.
    Codex,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// Gemini CLI.
    GeminiCli,
    /// opencode.
    OpenCode,
    /// goose.
    Goose,
    /// Amp.
    Amp,
    /// JetBrains IDEs: the AI Assistant, Junie and GitHub Copilot in them.
    JetBrains,
}

/// The platforms that differ in where programs keep their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other Unix systems.
    Unix,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform that this program was built for.
    pub const fn this() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Unix
        }
    }
}

/// A configuration file of a program.
pub(super) struct AppConfigFile {
    pub(super) app: App,
    pub(super) file: PathBuf,
    /// The project folder, if it is the file of a project.
    pub(super) project: Option<PathBuf>,
}

impl App {
    /// All programs, in display order.
    pub const ALL: [Self; 12] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Windsurf,
        Self::Zed,
        Self::GeminiCli,
        Self::OpenCode,
        Self::Goose,
        Self::Amp,
        Self::JetBrains,
    ];

    /// The display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::GeminiCli => "Gemini CLI",
            Self::OpenCode => "opencode",
            Self::Goose => "goose",
            Self::Amp => "Amp",
            Self::JetBrains => "JetBrains",
        }
    }

    /// Returns the files of the user that may contain its servers; the first one is the usual one.
    pub(crate) fn of_user(self, machine: SearchContext<'_>) -> Vec<PathBuf> {
        let home = |path: &str| machine.at_home(path);
        let moved =
            |variable: &str, usual: &str, file: &str| machine.relocated(variable, usual, file);
        let settings = |path: &str| machine.in_settings(path);
        // These keep their files in `.config` on every platform.
        let dotted = |path: &str| machine.relocated("XDG_CONFIG_HOME", ".config", path);
        match self {
            Self::ClaudeCode => vec![moved("CLAUDE_CONFIG_DIR", "", ".claude.json")],
            Self::ClaudeDesktop => vec![settings("Claude/claude_desktop_config.json")],
            Self::Cursor => vec![home(".cursor/mcp.json")],
            Self::VsCode => {
                vec![settings("Code/User/mcp.json"), settings("Code - Insiders/User/mcp.json")]
            }
            Self::Codex => vec![moved("CODEX_HOME", ".codex", "config.toml")],
            Self::Windsurf => vec![home(".codeium/windsurf/mcp_config.json")],
            Self::Zed => vec![match machine.platform {
                Platform::Windows => settings("Zed/settings.json"),
                Platform::Unix | Platform::MacOs => dotted("zed/settings.json"),
            }],
            Self::GeminiCli => vec![home(".gemini/settings.json")],
            Self::OpenCode => {
                ["opencode/opencode.json", "opencode/opencode.jsonc"].map(dotted).to_vec()
            }
            Self::Goose => vec![match machine.platform {
                Platform::Windows => settings("Block/goose/config/config.yaml"),
                Platform::Unix | Platform::MacOs => dotted("goose/config.yaml"),
            }],
            Self::Amp => ["amp/settings.json", "amp/settings.jsonc"].map(dotted).to_vec(),
            Self::JetBrains => vec![
                home(".ai/mcp/mcp.json"),
                home(".junie/mcp/mcp.json"),
                dotted("github-copilot/intellij/mcp.json"),
            ],
        }
        .into_iter()
        .flatten()
        .collect()
    }

    /// The files of a project that may contain its servers.
    const fn of_project(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".mcp.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::VsCode => &[".vscode/mcp.json"],
            Self::Zed => &[".zed/settings.json"],
            Self::GeminiCli => &[".gemini/settings.json"],
            Self::OpenCode => &[
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
            ],
            Self::Amp => &[".amp/settings.json", ".amp/settings.jsonc"],
            Self::JetBrains => &[".ai/mcp/mcp.json", ".junie/mcp/mcp.json"],
            Self::ClaudeDesktop | Self::Codex | Self::Windsurf | Self::Goose => &[],
        }
    }

    /// Returns the files that may contain its servers.
    pub(super) fn places(self, machine: SearchContext<'_>) -> Vec<AppConfigFile> {
        let place = |file, project| AppConfigFile { app: self, file, project };
        let mut places: Vec<AppConfigFile> =
            self.of_user(machine).into_iter().map(|file| place(file, None)).collect();
        for file in self.of_project().iter().map(|file| machine.cwd.join(file)) {
            // In the home folder, both may be the same file.
            if places.iter().all(|known| known.file != file) {
                places.push(place(file, Some(machine.cwd.to_path_buf())));
            }
        }
        places
    }

    /// The key of the table of servers.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::OpenCode => "mcp",
            Self::Goose => "extensions",
            Self::Amp => "amp.mcpServers",
            _ => "mcpServers",
        }
    }

    fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Codex => codex::parse(text),
            Self::Goose => yaml::parse(text),
            _ => parse(text),
        }
    }
}

impl SearchContext<'_> {
    /// Returns a path below the home folder.
    pub(crate) fn at_home(self, path: &str) -> Option<PathBuf> {
        Some(self.home?.join(path))
    }

    /// Returns a file in the folder that a variable names, or in the usual one below the home folder.
    pub(crate) fn relocated(self, variable: &str, usual: &str, file: &str) -> Option<PathBuf> {
        let named = (self.variable)(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        Some(named.or_else(|| self.at_home(usual))?.join(file))
    }

    /// Returns a file where desktop programs keep their settings.
    pub(crate) fn in_settings(self, file: &str) -> Option<PathBuf> {
        match self.platform {
            Platform::MacOs => Some(self.at_home("Library/Application Support")?.join(file)),
            Platform::Windows => self.relocated("APPDATA", "AppData/Roaming", file),
            Platform::Unix => self.relocated("XDG_CONFIG_HOME", ".config", file),
        }
    }
}

impl AppConfigFile {
    /// Returns the servers in the text of this file. Appends what is wrong with it to `problems`.
    pub(super) fn servers(
        &self,
        text: &str,
        machine: SearchContext<'_>,
        problems: &mut Vec<String>,
    ) -> Vec<FoundServer> {
        let parsed = self.app.parse(text);
        let mut found = Vec::new();
        let whole = match parsed {
            Ok(Value::Object(whole)) => whole,
            Ok(_) => {
                problems.push("not an object".to_owned());
                return found;
            }
            Err(problem) => {
                problems.push(problem);
                return found;
            }
        };
        let mut take = |section: &Map<String, Value>, project: Option<&Path>| {
            for (name, entry) in self.entries(section, problems) {
                found.push(convert::server(self, name, entry, project, machine));
            }
        };
        take(&whole, self.project.as_deref());
        // Claude Code keeps per-project servers in the user's file.
        let projects = whole.get("projects").filter(|_| self.app == App::ClaudeCode);
        for (folder, settings) in projects.and_then(Value::as_object).into_iter().flatten() {
            if let Value::Object(settings) = settings {
                take(settings, Some(Path::new(folder)));
            }
        }
        found
    }

    /// Returns the server entries in a section.
    fn entries<'s>(
        &self,
        section: &'s Map<String, Value>,
        problems: &mut Vec<String>,
    ) -> Vec<(&'s str, &'s Map<String, Value>)> {
        let key = self.app.key();
        let table = section.get(key).or_else(|| {
            // GitHub Copilot in JetBrains IDEs has the key of VS Code.
            section.get("servers").filter(|_| self.app == App::JetBrains)
        });
        let servers = match table {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Object(servers)) => servers,
            Some(_) => {
                problems.push(format!("`{key}` is not an object"));
                return Vec::new();
            }
        };
        // Version 2 of opencode has its settings of MCP in the same object.
        let inner = servers.get("servers").filter(|_| self.app == App::OpenCode);
        let servers = inner.and_then(Value::as_object).unwrap_or(servers);
        let mut entries = Vec::new();
        for (name, entry) in servers {
            match entry {
                Value::Object(entry) if !is_part_of_program(self.app, entry) => {
                    entries.push((name.as_str(), entry));
                }
                Value::Object(_) => {}
                _ => problems.push(format!("`{key}.{name}` is not an object")),
            }
        }
        entries
    }
}

/// Whether an entry is not an MCP server, but a part of the program or one of its extensions.
fn is_part_of_program(app: App, entry: &Map<String, Value>) -> bool {
    let has = |key: &str| entry.get(key).is_some_and(|value| !value.is_null());
    match app {
        App::Goose => !has("cmd") && !has("uri"),
        App::Zed => !has("command") && !has("url"),
        // Switches off a server that an organisation provides.
        App::OpenCode => !has("command") && !has("url"),
        _ => false,
    }
}

/// Parses JSON with comments, which some programs allow.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut sources = Sources::default();
    let id = sources.add(String::new(), text.to_owned());
    match tree::parse(&sources, id) {
        Ok(node) => Ok(plain(node)),
        Err(problem) => {
            let line = problem.primary.as_ref().map(|(span, _)| sources.locate(*span).line);
            let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
            Err(format!("{}{line}", problem.message()))
        }
    }
}

/// Strips the positions from a tree. The parser bounds its depth.
fn plain(node: tree::ConfigNode) -> Value {
    match node.value {
        tree::ConfigValue::Null => Value::Null,
        tree::ConfigValue::Bool(value) => Value::Bool(value),
        tree::ConfigValue::Number(text) => text.parse().map_or(Value::String(text), Value::Number),
        tree::ConfigValue::String(text) => Value::String(text),
        tree::ConfigValue::Array(elements) => elements.into_iter().map(plain).collect(),
        tree::ConfigValue::Object(members) => {
            let members = members.into_iter().map(|member| (member.key, plain(member.node)));
            Value::Object(members.collect())
        }
    }
}
