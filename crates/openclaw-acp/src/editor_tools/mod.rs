//! The editor's file system and terminals as tools of the agent (P6). The gateway asks for approval
//! before it calls one that changes something.

mod terminal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, Diff, ReadTextFileRequest, ToolCallContent, WriteTextFileRequest,
};
use openclaw_content::{Untrusted, clean_line};
use openclaw_tools::ToolSpec;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::builtin::EditorTool;
use crate::client::SessionClient;
use crate::folders::SessionFolders;
use crate::lent_tools::{EditorLentTool, LentToolOutcome, LentToolOwner};
use crate::open_calls::OpenCalls;
use crate::tasks::SessionTasks;

/// The timeout of reading or writing a file.
const FILE: Duration = Duration::from_secs(60);
/// Maximum number of characters of a cause that the client names.
const MAX_CAUSE: usize = 300;
/// Maximum number of characters of a file that are returned.
const MAX_CHARS: usize = 100_000;

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

/// The tools that the editor offers.
pub(crate) struct EditorTools {
    offered: Vec<EditorTool>,
    folders: Arc<SessionFolders>,
    client: Arc<SessionClient>,
    calls: Arc<OpenCalls>,
    tasks: SessionTasks,
}

/// Returns the tools that a client can execute.
fn offered(client: &ClientCapabilities) -> Vec<EditorTool> {
    let reads = client.fs.read_text_file;
    let writes = client.fs.write_text_file;
    let is_offered = |tool: &EditorTool| match tool {
        EditorTool::ReadFile => reads,
        EditorTool::WriteFile => writes,
        EditorTool::EditFile => reads && writes,
        EditorTool::Run => client.terminal,
    };
    EditorTool::ALL.into_iter().filter(is_offered).collect()
}

impl EditorTools {
    pub(crate) fn new(
        client: Arc<SessionClient>,
        folders: Arc<SessionFolders>,
        calls: Arc<OpenCalls>,
        tasks: SessionTasks,
    ) -> Self {
        Self { offered: offered(&client.capabilities), folders, client, calls, tasks }
    }

    pub(crate) fn tools(&self) -> Vec<EditorLentTool> {
        let tools = self.offered.iter().map(|tool| EditorLentTool {
            name: tool.name().to_owned(),
            label: tool.title().to_owned(),
            description: tool.description(self.folders.cwd()),
            schema: ToolSpec::schema(tool.schema()),
            effect: tool.effect(),
            owner: LentToolOwner::Editor,
        });
        tools.collect()
    }

    /// Calls a tool. The gateway has obtained the user's approval, and checked the arguments.
    pub(crate) async fn call(&self, tool: EditorTool, arguments: &RawValue) -> LentToolOutcome {
        let done = match tool {
            EditorTool::Run => self.run(arguments).await,
            _ => {
                let work = self.file(tool, arguments);
                timeout(FILE, work).await.unwrap_or_else(|_| Err("timed out".to_owned()))
            }
        };
        match done {
            Ok(text) => LentToolOutcome::done(&text),
            Err(message) => LentToolOutcome::failed(&message),
        }
    }

    async fn file(&self, tool: EditorTool, arguments: &RawValue) -> Result<String, String> {
        let args: FileArgs = serde_json::from_str(arguments.get()).map_err(|it| it.to_string())?;
        let path = self.folders.inside(&args.path)?;
        match tool {
            EditorTool::ReadFile => {
                let read = self.read(&path, args.line, args.limit).await?;
                Ok(match read.char_indices().nth(MAX_CHARS) {
                    Some((end, _)) => {
                        format!("{}\n[truncated; use `line` and `limit` to read on]", &read[..end])
                    }
                    None => read,
                })
            }
            EditorTool::WriteFile => {
                self.write(path, args.content).await?;
                Ok("The file was written.".to_owned())
            }
            EditorTool::EditFile => {
                let before = self.read(&path, None, None).await?;
                match before.matches(&args.old).count() {
                    1 => {}
                    0 => {
                        return Err("`old` does not occur in the file. The file was not changed."
                            .to_owned());
                    }
                    count => {
                        return Err(format!(
                            "`old` occurs {count} times in the file. The file was not changed: \
                             include more surrounding text to make it unique."
                        ));
                    }
                }
                self.write(path, before.replacen(&args.old, &args.new, 1)).await?;
                Ok("The file was changed.".to_owned())
            }
            EditorTool::Run => Err("not a file tool".to_owned()),
        }
    }

    /// Whether a tool will refuse to work on what these arguments name.
    pub(crate) fn refuses(&self, tool: &str, args: &Value) -> bool {
        let key = match EditorTool::find(tool) {
            Some(EditorTool::Run) => "cwd",
            Some(_) => "path",
            None => return false,
        };
        let path = args.get(key).and_then(Value::as_str);
        path.is_some_and(|path| self.folders.inside(path).is_err())
    }

    /// Returns the difference that a write makes, with the text that it replaces.
    pub(crate) async fn diff(&self, args: &Value) -> Vec<ToolCallContent> {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        let (Some(path), Some(content)) = (text("path"), text("content")) else {
            return Vec::new();
        };
        let Ok(path) = self.folders.inside(path) else { return Vec::new() };
        let mut before = None;
        if self.offered.contains(&EditorTool::ReadFile) {
            let read = timeout(FILE, self.read(&path, None, None)).await;
            before = read.ok().and_then(Result::ok);
        }
        vec![ToolCallContent::Diff(Diff::new(path, content).old_text(before))]
    }

    async fn read(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        let request = ReadTextFileRequest::new(self.client.session.clone(), path);
        let request = request.line(line).limit(limit);
        let read = self.client.send_request(request).block_task().await;
        read.map(|read| read.content).map_err(|error| {
            format!("the editor could not read {}: {}", path.display(), reason(&error))
        })
    }

    async fn write(&self, path: PathBuf, content: String) -> Result<(), String> {
        let request = WriteTextFileRequest::new(self.client.session.clone(), path.clone(), content);
        let written = self.client.send_request(request).block_task().await;
        written.map(drop).map_err(|error| {
            format!("the editor could not write {}: {}", path.display(), reason(&error))
        })
    }
}

/// The message of an error of the client, with its cause: the message alone is often that of the
/// code, such as "Parse error" for an answer that is not as specified.
fn reason(error: &Error) -> String {
    let data = error.data.as_ref();
    let cause = data.and_then(|data| data.as_str().or_else(|| data.get("error")?.as_str()));
    match cause {
        Some(cause) => {
            format!("{}: {}", error.message, clean_line(Untrusted::new(cause), MAX_CAUSE))
        }
        None => error.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_of_the_client_has_its_cause() {
        let error = |data: Option<Value>| reason(&Error::new(-32700, "Parse error").data(data));
        let invalid = json!({"error": "missing field `content`", "phase": "deserialization"});
        assert_eq!(error(Some(invalid)), "Parse error: missing field `content`");
        assert_eq!(error(Some(json!("no\nfile"))), "Parse error: no file");
        assert_eq!(error(Some(json!({"line": 1}))), "Parse error");
        assert_eq!(error(None), "Parse error");
    }

    #[test]
    fn only_what_the_client_offers_is_a_tool() {
        let client: ClientCapabilities =
            serde_json::from_value(json!({"fs": {"readTextFile": true}})).unwrap();
        let names: Vec<&str> = offered(&client).into_iter().map(EditorTool::name).collect();
        assert_eq!(names, ["editor_read_file"]);
    }
}
