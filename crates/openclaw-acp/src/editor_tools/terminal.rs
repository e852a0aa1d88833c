//! Commands in terminals of the editor.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, Terminal, TerminalId,
    TerminalOutputRequest, ToolCallContent, ToolCallUpdateFields, WaitForTerminalExitRequest,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{EditorTools, reason};
use crate::builtin::EditorTool;
use crate::client::SessionClient;

/// The timeout of a command.
const COMMAND: Duration = Duration::from_secs(600);
/// The timeout of any other request.
const SHORT: Duration = Duration::from_secs(60);
/// Bytes of a command's output that the client keeps.
const OUTPUT: u64 = 100_000;

#[derive(Deserialize)]
struct RunArgs {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<String>,
}

impl EditorTools {
    /// Runs a command in a terminal of the editor, which is released in the end. Like `exec`, it
    /// fails if the command does: the error has the output, too.
    pub(super) async fn run(&self, arguments: &RawValue) -> Result<String, String> {
        let args: RunArgs = serde_json::from_str(arguments.get()).map_err(|it| it.to_string())?;
        let cwd = match &args.cwd {
            Some(cwd) => self.folders.inside(cwd)?,
            None => self.folders.cwd().to_owned(),
        };
        let client = &self.client;
        let request = CreateTerminalRequest::new(client.session.clone(), args.command)
            .args(args.args)
            .cwd(cwd)
            .output_byte_limit(OUTPUT);
        let terminal = self.create_terminal(request).await?;
        let id = &terminal.id;
        self.show_terminal(id, arguments);
        let wait = WaitForTerminalExitRequest::new(client.session.clone(), id.clone());
        let waited = timeout(COMMAND, client.send_request(wait).block_task()).await;
        if waited.is_err() {
            let kill = KillTerminalRequest::new(client.session.clone(), id.clone());
            let _ = timeout(SHORT, client.send_request(kill).block_task()).await;
        }
        let request = TerminalOutputRequest::new(client.session.clone(), id.clone());
        let output = timeout(SHORT, client.send_request(request).block_task()).await;
        let output = output.map_err(|_| "the editor did not return the output".to_owned())?;
        let output = output
            .map_err(|error| format!("the editor did not return the output: {}", reason(&error)))?;
        let (is_error, how) = match waited {
            Err(_) => (true, format!("killed after {} s", COMMAND.as_secs())),
            Ok(Err(error)) => (true, reason(&error)),
            Ok(Ok(exit)) => match (exit.exit_status.exit_code, exit.exit_status.signal) {
                (Some(code), _) => (code != 0, format!("exit code {code}")),
                (None, Some(signal)) => (true, format!("ended by signal {signal}")),
                (None, None) => (false, "ended".to_owned()),
            },
        };
        let cut = if output.truncated { "[the beginning is omitted]\n" } else { "" };
        let text = format!("{cut}{}\n[{how}]", output.output);
        if is_error { Err(text) } else { Ok(text) }
    }

    /// Creates a terminal. If the call is cancelled before the client has answered, the terminal is
    /// released when it has: until then, its id is not known.
    async fn create_terminal(
        &self,
        request: CreateTerminalRequest,
    ) -> Result<OpenTerminal, String> {
        let (sender, created) = oneshot::channel();
        let client = Arc::clone(&self.client);
        self.tasks.spawn_to_completion(async move {
            let created = timeout(SHORT, client.send_request(request).block_task()).await;
            let created = match created {
                Ok(Ok(created)) => Ok(OpenTerminal { id: created.terminal_id, client }),
                Ok(Err(error)) => {
                    Err(format!("the editor could not open a terminal: {}", reason(&error)))
                }
                Err(_) => Err("the editor did not open a terminal".to_owned()),
            };
            let _ = sender.send(created);
        });
        created.await.unwrap_or_else(|_| Err("the session has ended".to_owned()))
    }

    /// Shows the terminal in the call that it belongs to.
    fn show_terminal(&self, id: &TerminalId, arguments: &RawValue) {
        let args: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
        if let Some(call) = self.calls.show_terminal(EditorTool::Run.name(), &args) {
            let terminal = vec![ToolCallContent::Terminal(Terminal::new(id.clone()))];
            self.client.update_call(call, ToolCallUpdateFields::new().content(terminal));
        }
    }
}

/// A terminal. Dropping it kills the command, if it still runs, and releases the terminal.
struct OpenTerminal {
    client: Arc<SessionClient>,
    id: TerminalId,
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        let request = ReleaseTerminalRequest::new(self.client.session.clone(), self.id.clone());
        // Nothing can be done about a failure.
        self.client.send_request(request).detach();
    }
}
