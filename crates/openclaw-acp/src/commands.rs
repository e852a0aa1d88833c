//! The commands of the agent (`/mcp …`, prompts of MCP servers), for the client's menu.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_protocol::agents::{Command, CommandsParams};
use openclaw_protocol::tools::CatalogParams;
use openclaw_protocol::{ask, rpc};
use tokio::time::timeout;

use crate::session::AcpSession;

/// The command of the gateway about MCP servers. It is not listed if the agent may not use it.
const MCP: &str = "mcp";
/// The command of the offline model, which is not listed either.
const CALL: &str = "call";
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum length of a description, in characters.
const DESCRIPTION: usize = 200;
/// Maximum number of commands of the session's own servers.
const MAX_PROMPTS: usize = 500;

/// Sends the list of commands, if it has changed. Without an answer of the gateway, it has those of
/// the session's own servers only.
pub(crate) async fn announce(session: &AcpSession) {
    learn_tools(session).await;
    let listed = of_gateway(session).await;
    let own = session.servers.iter().flat_map(|servers| servers.prompts()).take(MAX_PROMPTS);
    let own = own.map(|prompt| of_prompt(&prompt));
    // A prompt of the session's own server takes precedence, as when it is typed.
    let mut names = BTreeSet::new();
    let commands: Vec<AvailableCommand> = own
        .chain(listed.into_iter().flatten().map(command))
        .filter(|command| names.insert(command.name.clone()))
        .collect();
    let mut state = session.lock();
    if state.commands.as_ref() == Some(&commands) {
        return;
    }
    state.commands = Some(commands.clone());
    drop(state);
    let update = AvailableCommandsUpdate::new(commands);
    session.updates.send(SessionUpdate::AvailableCommandsUpdate(update));
}

/// Returns the commands of the gateway; `None` if it does not list them.
async fn of_gateway(session: &AcpSession) -> Option<Vec<Command>> {
    let params = CommandsParams {
        agent_id: Some(session.agent.clone()),
        include_args: Some(true),
        ..CommandsParams::default()
    };
    let listed = timeout(ANSWER, ask::<rpc::CommandsList>(&*session.surface, params)).await;
    listed.ok().and_then(Result::ok).map(|listed| listed.commands)
}

/// Describes a command that does not exist: it must not be sent to the model. Returns `None` if it
/// exists, or if the gateway has to decide.
pub(crate) async fn unknown(session: &AcpSession, name: &str) -> Option<String> {
    if name == MCP || (name == CALL && session.lock().options.is_offline()) {
        return None;
    }
    let listed = of_gateway(session).await?;
    let aliases = listed.iter().flat_map(|command| command.text_aliases.iter().flatten());
    let aliases = aliases.map(|alias| alias.trim_start_matches('/'));
    let known: Vec<&str> =
        listed.iter().map(|command| command.name.as_str()).chain(aliases).collect();
    (!known.contains(&name)).then(|| unknown_words(name, &known))
}

fn unknown_words(name: &str, known: &[&str]) -> String {
    let shown = clean_line(Untrusted::new(name), DESCRIPTION);
    let similar = match openclaw_config::nearest(name, known) {
        Some(similar) => format!("Did you mean `/{similar}`?"),
        None => "Use `/help` for a list.".to_owned(),
    };
    format!("Unknown command `/{shown}`. {similar} To send it to the model, type `//{shown}`.")
}

/// Learns what the agent's tools do, for the kinds of their calls. Returns their labels.
pub(crate) async fn learn_tools(session: &AcpSession) -> BTreeMap<String, String> {
    let params =
        CatalogParams { agent_id: Some(session.agent.clone()), include_plugins: Some(true) };
    let catalog = timeout(ANSWER, ask::<rpc::ToolsCatalog>(&*session.surface, params)).await;
    let Ok(Ok(catalog)) = catalog else { return BTreeMap::new() };
    let (mut risks, mut labels) = (BTreeMap::new(), BTreeMap::new());
    for tool in catalog.groups.into_iter().flat_map(|group| group.tools) {
        risks.extend(tool.risk.map(|risk| (tool.id.clone(), risk)));
        labels.insert(tool.id, tool.label);
    }
    session.lock().risks = Some(risks);
    labels
}

fn command(command: Command) -> AvailableCommand {
    let arguments = command.args.iter().flatten();
    let arguments = arguments.map(|it| (it.name.as_str(), it.required == Some(true)));
    let input = command.accepts_args.then(|| input(arguments));
    AvailableCommand::new(command.name, command.description).input(input)
}

fn of_prompt(prompt: &PromptCommand) -> AvailableCommand {
    let clean = |text: &str| clean_line(Untrusted::new(text), DESCRIPTION);
    let entry = &prompt.prompt.entry;
    let names: Vec<(String, bool)> =
        entry.arguments.iter().map(|it| (clean(&it.name), it.required)).collect();
    let arguments = names.iter().map(|(name, is_required)| (name.as_str(), *is_required));
    let input = (!names.is_empty()).then(|| input(arguments));
    let description = clean(entry.description.as_deref().unwrap_or_default());
    AvailableCommand::new(prompt.command.to_string(), description).input(input)
}

/// Describes arguments: their names, and whether they are required.
fn input<'a>(arguments: impl Iterator<Item = (&'a str, bool)>) -> AvailableCommandInput {
    let names = arguments.map(|(name, is_required)| match is_required {
        true => name.to_owned(),
        false => format!("[{name}]"),
    });
    let hint = names.collect::<Vec<_>>().join(" ");
    let hint = if hint.is_empty() { "arguments".to_owned() } else { hint };
    AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_named_with_a_similar_one() {
        let known = ["help", "usage"];
        assert_eq!(
            unknown_words("usge", &known),
            "Unknown command `/usge`. Did you mean `/usage`? To send it to the model, type `//usge`."
        );
        assert!(unknown_words("nonsense", &known).contains("Use `/help` for a list."));
    }
}
