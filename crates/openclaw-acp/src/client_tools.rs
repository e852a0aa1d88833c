//! The client's file system and terminals as tools of the agent (P6). The gateway asks for approval
//! before it calls one that changes something.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ClientCapabilities, CreateTerminalRequest, Diff, KillTerminalRequest, ReadTextFileRequest,
    ReleaseTerminalRequest, SessionUpdate, Terminal, TerminalId, TerminalOutputRequest,
    ToolCallContent, ToolCallUpdate, ToolCallUpdateFields, ToolKind, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use openclaw_tools::{Effect, ToolSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::lend::{LentOutcome, SessionTool, ToolOwner, text_block};
use crate::session::Session;

/// The timeout of reading or writing a file.
const FILE: Duration = Duration::from_secs(60);
/// The timeout of a command.
const COMMAND: Duration = Duration::from_secs(600);
/// Bytes of a command's output that the client keeps.
const OUTPUT: u64 = 100_000;
/// Maximum number of characters of a file that are returned.
const MAX_CHARS: usize = 100_000;

/// A tool that the client executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientTool {
    ReadFile,
    WriteFile,
    EditFile,
    Run,
}

impl ClientTool {
    const ALL: [Self; 4] = [Self::ReadFile, Self::WriteFile, Self::EditFile, Self::Run];

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "editor_read_file",
            Self::WriteFile => "editor_write_file",
            Self::EditFile => "editor_edit_file",
            Self::Run => "editor_run",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ReadFile => "Read a file",
            Self::WriteFile => "Write a file",
            Self::EditFile => "Edit a file",
            Self::Run => "Run a command",
        }
    }

    pub(crate) const fn kind(self) -> ToolKind {
        match self {
            Self::ReadFile => ToolKind::Read,
            Self::WriteFile | Self::EditFile => ToolKind::Edit,
            Self::Run => ToolKind::Execute,
        }
    }

    const fn effect(self) -> Effect {
        match self {
            Self::ReadFile => Effect::ReadOnly,
            Self::EditFile => Effect::Unknown,
            Self::WriteFile | Self::Run => Effect::Destructive,
        }
    }

    fn description(self, cwd: &Path) -> String {
        let cwd = cwd.display();
        match self {
            Self::ReadFile => format!(
                "Reads a text file of the user's project in {cwd}, as it is in the editor, with \
                 unsaved changes."
            ),
            Self::WriteFile => format!(
                "Writes a text file of the user's project in {cwd} through the editor. An existing \
                 file is replaced."
            ),
            Self::EditFile => format!(
                "Replaces text in a file of the user's project in {cwd} through the editor. `old` \
                 must occur exactly once, including white space."
            ),
            Self::Run => format!(
                "Runs a program in a terminal of the editor, in the user's project in {cwd}, and \
                 returns its output and exit code. For a shell command, run `sh` with the \
                 arguments `-c` and the command."
            ),
        }
    }

    fn schema(self) -> Value {
        let path = json!({
            "type": "string",
            "minLength": 1,
            "description": "File path, absolute or relative to the project.",
        });
        let text = |words: &str| json!({ "type": "string", "description": words });
        let (properties, required) = match self {
            Self::ReadFile => {
                let number =
                    |words: &str| json!({ "type": "integer", "minimum": 1, "description": words });
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

#[derive(Deserialize)]
struct FileArgs {
    path: String,
    line: Option<u32>,
    limit: Option<u32>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    old: String,
    #[serde(default)]
    new: String,
}

#[derive(Deserialize)]
struct RunArgs {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<String>,
}

/// The tools that the client of a session offers.
pub(crate) struct ClientTools {
    offered: Vec<ClientTool>,
    /// The folders of the session: the first one is its current folder.
    folders: Vec<PathBuf>,
}

impl ClientTools {
    pub(crate) fn new(client: &ClientCapabilities, cwd: &Path, more: Vec<PathBuf>) -> Self {
        let (reads, writes) = (client.fs.read_text_file, client.fs.write_text_file);
        let is_offered = |tool: &ClientTool| match tool {
            ClientTool::ReadFile => reads,
            ClientTool::WriteFile => writes,
            ClientTool::EditFile => reads && writes,
            ClientTool::Run => client.terminal,
        };
        let offered = ClientTool::ALL.into_iter().filter(is_offered).collect();
        let folders = std::iter::once(cwd.to_owned()).chain(more).collect();
        Self { offered, folders }
    }

    fn cwd(&self) -> &Path {
        self.folders.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    pub(crate) fn tools(&self) -> Vec<SessionTool> {
        let tools = self.offered.iter().map(|tool| SessionTool {
            name: tool.name().to_owned(),
            label: tool.title().to_owned(),
            description: tool.description(self.cwd()),
            schema: ToolSpec::schema(tool.schema()),
            effect: tool.effect(),
            by: ToolOwner::Client(*tool),
        });
        tools.collect()
    }

    /// Calls a tool. The gateway has obtained the user's approval, and checked the arguments.
    pub(crate) async fn call(
        &self,
        session: &Arc<Session>,
        tool: ClientTool,
        arguments: &RawValue,
    ) -> LentOutcome {
        let done = match tool {
            ClientTool::Run => self.run(session, arguments).await,
            _ => {
                let work = self.file(session, tool, arguments);
                timeout(FILE, work).await.unwrap_or_else(|_| Err("timed out".to_owned()))
            }
        };
        done.map(|text| vec![text_block(&text)])
    }

    async fn file(
        &self,
        session: &Session,
        tool: ClientTool,
        arguments: &RawValue,
    ) -> Result<String, String> {
        let args: FileArgs = serde_json::from_str(arguments.get()).map_err(|it| it.to_string())?;
        let path = self.inside(&args.path)?;
        match tool {
            ClientTool::ReadFile => {
                let read = read(session, &path, args.line, args.limit).await?;
                Ok(match read.char_indices().nth(MAX_CHARS) {
                    Some((end, _)) => format!("{}\n[cut; use `line` and `limit`]", &read[..end]),
                    None => read,
                })
            }
            ClientTool::WriteFile => {
                write(session, path, args.content).await?;
                Ok("The file was written.".to_owned())
            }
            ClientTool::EditFile => {
                let before = read(session, &path, None, None).await?;
                match before.matches(&args.old).count() {
                    1 => {}
                    0 => return Err("`old` does not occur in the file".to_owned()),
                    count => return Err(format!("`old` occurs {count} times in the file")),
                }
                write(session, path, before.replacen(&args.old, &args.new, 1)).await?;
                Ok("The file was changed.".to_owned())
            }
            ClientTool::Run => Err("not a file tool".to_owned()),
        }
    }

    /// Returns the difference that a write makes, with the text that it replaces.
    pub(crate) async fn diff(&self, session: &Session, args: &Value) -> Vec<ToolCallContent> {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        let (Some(path), Some(content)) = (text("path"), text("content")) else {
            return Vec::new();
        };
        let Ok(path) = self.inside(path) else { return Vec::new() };
        let before = match self.offered.contains(&ClientTool::ReadFile) {
            true => timeout(FILE, read(session, &path, None, None)).await,
            false => Ok(Err(String::new())),
        };
        let before = before.ok().and_then(Result::ok);
        vec![ToolCallContent::Diff(Diff::new(path, content).old_text(before))]
    }

    /// Runs a command in a terminal of the client, which is released at the end.
    async fn run(&self, session: &Arc<Session>, arguments: &RawValue) -> Result<String, String> {
        let args: RunArgs = serde_json::from_str(arguments.get()).map_err(|it| it.to_string())?;
        let cwd = match &args.cwd {
            Some(cwd) => self.inside(cwd)?,
            None => self.cwd().to_owned(),
        };
        let request = CreateTerminalRequest::new(session.id.clone(), args.command)
            .args(args.args)
            .cwd(cwd)
            .output_byte_limit(OUTPUT);
        let created = session.cx.send_request(request).block_task().await;
        let id = created.map_err(|error| error.message)?.terminal_id;
        let terminal = OpenTerminal { session: Arc::clone(session), id: id.clone() };
        show_terminal(session, &id, arguments);
        let wait = WaitForTerminalExitRequest::new(session.id.clone(), id.clone());
        let waited = timeout(COMMAND, session.cx.send_request(wait).block_task()).await;
        if waited.is_err() {
            let kill = KillTerminalRequest::new(session.id.clone(), id.clone());
            let _ = session.cx.send_request(kill).block_task().await;
        }
        let request = TerminalOutputRequest::new(session.id.clone(), id);
        let output = session.cx.send_request(request).block_task().await;
        let output = output.map_err(|error| error.message)?;
        drop(terminal);
        let how = match waited {
            Err(_) => format!("killed after {} s", COMMAND.as_secs()),
            Ok(Err(error)) => error.message,
            Ok(Ok(exit)) => match (exit.exit_status.exit_code, exit.exit_status.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => "ended".to_owned(),
            },
        };
        let cut = if output.truncated { "[the beginning was cut]\n" } else { "" };
        Ok(format!("{cut}{}\n[{how}]", output.output))
    }

    /// Resolves a path, which must be in one of the session's folders, also when links are
    /// followed.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let path = normal(&self.cwd().join(path));
        let is_in = |path: &Path, folder: &Path| path.starts_with(normal(folder));
        let outside = || format!("{} is outside the session's folders", path.display());
        if !self.folders.iter().any(|folder| is_in(&path, folder)) {
            return Err(outside());
        }
        // The client may be elsewhere: what does not exist here is not followed.
        let existing = path.ancestors().find_map(|it| it.canonicalize().ok());
        let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let has_folder = self.cwd().exists();
        match existing {
            Some(existing) if has_folder => {
                match self.folders.iter().any(|folder| is_in(&existing, &real(folder))) {
                    true => Ok(path),
                    false => Err(outside()),
                }
            }
            _ => Ok(path),
        }
    }
}

/// Removes `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

async fn read(
    session: &Session,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, String> {
    let request = ReadTextFileRequest::new(session.id.clone(), path).line(line).limit(limit);
    let read = session.cx.send_request(request).block_task().await;
    read.map(|read| read.content).map_err(|error| error.message)
}

async fn write(session: &Session, path: PathBuf, content: String) -> Result<(), String> {
    let request = WriteTextFileRequest::new(session.id.clone(), path, content);
    let written = session.cx.send_request(request).block_task().await;
    written.map(drop).map_err(|error| error.message)
}

/// Shows the terminal in the call that it belongs to.
fn show_terminal(session: &Session, id: &TerminalId, arguments: &RawValue) {
    let args: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let call = {
        let mut state = session.lock();
        let name = ClientTool::Run.name();
        let mut same = state.calls.iter_mut().filter(|it| it.name == name && !it.is_shown);
        same.find(|call| call.args == args).map(|call| {
            call.is_shown = true;
            call.id.clone()
        })
    };
    if let Some(call) = call {
        let terminal = vec![ToolCallContent::Terminal(Terminal::new(id.clone()))];
        let fields = ToolCallUpdateFields::new().content(terminal);
        session.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call, fields)));
    }
}

/// A terminal. Dropping it kills the command, if it still runs, and releases the terminal.
struct OpenTerminal {
    session: Arc<Session>,
    id: TerminalId,
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        let request = ReleaseTerminalRequest::new(self.session.id.clone(), self.id.clone());
        // Nothing can be done about a failure.
        self.session.cx.send_request(request).detach();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_the_session_s_folders_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let client = ClientCapabilities::default();
        let tools = ClientTools::new(&client, folder.path(), vec![PathBuf::from("/nowhere/more")]);
        for good in ["a.rs", "./x/../a.rs", "/nowhere/more/b.rs"] {
            assert!(tools.inside(good).is_ok() || good.starts_with("/nowhere"), "{good}");
        }
        for bad in ["../a.rs", "/etc/passwd", "x/../../a.rs", "/nowhere/moreover"] {
            assert!(tools.inside(bad).is_err(), "{bad}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
            assert!(tools.inside("link/passwd").is_err(), "a link leads outside");
        }
    }

    #[test]
    fn only_what_the_client_offers_is_a_tool() {
        let client: ClientCapabilities =
            serde_json::from_value(json!({"fs": {"readTextFile": true}})).unwrap();
        let tools = ClientTools::new(&client, Path::new("/w"), Vec::new()).tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["editor_read_file"]);
    }
}
