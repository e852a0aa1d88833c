//! The commands of the agent (`/mcp …`, prompts of its servers), for the client's menu.

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use openclaw_protocol::agents::{Command, CommandsParams};
use openclaw_protocol::tools::CatalogParams;
use openclaw_protocol::{ask, rpc};
use tokio::time::timeout;

use crate::session::Session;

const ANSWER: Duration = Duration::from_secs(10);

/// Sends the list of commands, and learns what the agent's tools do. Without an answer of the
/// gateway, the client has no menu.
pub(crate) async fn announce(session: &Session) {
    let agent_id = Some(session.agent.clone());
    let params = CommandsParams {
        agent_id: agent_id.clone(),
        include_args: Some(true),
        ..CommandsParams::default()
    };
    let listed = timeout(ANSWER, ask::<rpc::CommandsList>(&*session.surface, params)).await;
    if let Ok(Ok(listed)) = listed {
        let commands: Vec<AvailableCommand> = listed.commands.into_iter().map(command).collect();
        let is_new = session.lock().commands.as_ref() != Some(&commands);
        if is_new {
            session.lock().commands = Some(commands.clone());
            let update = AvailableCommandsUpdate::new(commands);
            session.update(SessionUpdate::AvailableCommandsUpdate(update));
        }
    }
    let params = CatalogParams { agent_id, include_plugins: Some(true) };
    let catalog = timeout(ANSWER, ask::<rpc::ToolsCatalog>(&*session.surface, params)).await;
    if let Ok(Ok(catalog)) = catalog {
        let tools = catalog.groups.into_iter().flat_map(|group| group.tools);
        let risks = tools.filter_map(|tool| Some((tool.id, tool.risk?))).collect();
        session.lock().risks = risks;
    }
}

fn command(command: Command) -> AvailableCommand {
    let names = command.args.iter().flatten().map(|arg| match arg.required {
        Some(true) => arg.name.clone(),
        _ => format!("[{}]", arg.name),
    });
    let hint = names.collect::<Vec<_>>().join(" ");
    let input = command.accepts_args.then(|| {
        let hint = if hint.is_empty() { "arguments".to_owned() } else { hint };
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
    });
    AvailableCommand::new(command.name, command.description).input(input)
}
