//! Commands in terminals of the client.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, SessionUpdate, Terminal,
    TerminalId, TerminalOutputRequest, ToolCallContent, ToolCallUpdate, ToolCallUpdateFields,
    WaitForTerminalExitRequest,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::folders::SessionFolders;
use super::reason;
use super::spec::EditorTool;
use crate::session::AcpSession;

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

/// Runs a command in a terminal of the client, which is released in the end. Like `exec`, it fails
/// if the command does: the error has the output, too.
pub(super) async fn run(
    session: &Arc<AcpSession>,
    folders: &SessionFolders,
    arguments: &RawValue,
) -> Result<String, String> {
    let args: RunArgs = serde_json::from_str(arguments.get()).map_err(|it| it.to_string())?;
    let cwd = match &args.cwd {
        Some(cwd) => folders.inside(cwd)?,
        None => folders.cwd().to_owned(),
    };
    let request = CreateTerminalRequest::new(session.id.clone(), args.command)
        .args(args.args)
        .cwd(cwd)
        .output_byte_limit(OUTPUT);
    let terminal = create(session, request).await?;
    let id = &terminal.id;
    show(session, id, arguments);
    let wait = WaitForTerminalExitRequest::new(session.id.clone(), id.clone());
    let waited = timeout(COMMAND, session.cx.send_request(wait).block_task()).await;
    if waited.is_err() {
        let kill = KillTerminalRequest::new(session.id.clone(), id.clone());
        let _ = timeout(SHORT, session.cx.send_request(kill).block_task()).await;
    }
    let request = TerminalOutputRequest::new(session.id.clone(), id.clone());
    let output = timeout(SHORT, session.cx.send_request(request).block_task()).await;
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
async fn create(
    session: &Arc<AcpSession>,
    request: CreateTerminalRequest,
) -> Result<OpenTerminal, String> {
    let (sender, created) = oneshot::channel();
    let creating = Arc::clone(session);
    session.tasks.spawn(async move {
        let created = timeout(SHORT, creating.cx.send_request(request).block_task()).await;
        let created = match created {
            Ok(Ok(created)) => Ok(OpenTerminal { id: created.terminal_id, session: creating }),
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
fn show(session: &AcpSession, id: &TerminalId, arguments: &RawValue) {
    let args: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let call = {
        let mut state = session.lock();
        let name = EditorTool::Run.name();
        let mut same = state.calls.iter_mut().filter(|it| it.name == name && !it.is_shown);
        same.find(|call| call.args == args).map(|call| {
            call.is_shown = true;
            call.id.clone()
        })
    };
    if let Some(call) = call {
        let terminal = vec![ToolCallContent::Terminal(Terminal::new(id.clone()))];
        let fields = ToolCallUpdateFields::new().content(terminal);
        session.updates.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call, fields)));
    }
}

/// A terminal. Dropping it kills the command, if it still runs, and releases the terminal.
struct OpenTerminal {
    session: Arc<AcpSession>,
    id: TerminalId,
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        let request = ReleaseTerminalRequest::new(self.session.id.clone(), self.id.clone());
        // Nothing can be done about a failure.
        self.session.cx.send_request(request).detach();
    }
}
