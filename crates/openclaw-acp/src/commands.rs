//! The commands of the agent (`/mcp …`, prompts of MCP servers), for the client's menu.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_protocol::agents::{Command, CommandsParams};
use openclaw_protocol::rpc;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::catalog::ToolCatalog;
use crate::client::SessionClient;
use crate::gateway::GatewaySession;
use crate::options::SessionOptions;
use crate::servers::SessionServers;

/// The command of the gateway about MCP servers. It is not listed if the agent may not use it.
const MCP: &str = "mcp";
/// The command of the offline model, which is not listed either.
const CALL: &str = "call";
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum length of a description, in characters.
const DESCRIPTION: usize = 200;
/// Maximum number of commands of the session's own servers.
const MAX_PROMPTS: usize = 500;
/// How long changes are collected: servers that start at the same time make one list.
const COLLECTED: Duration = Duration::from_millis(50);

/// The commands of a session.
pub(crate) struct CommandMenu {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) catalog: Arc<ToolCatalog>,
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) servers: Option<Arc<SessionServers>>,
    pub(crate) sent: SentCommands,
}

/// What the client knows of the commands.
#[derive(Debug, Default)]
pub(crate) struct SentCommands {
    list: Mutex<Option<Vec<AvailableCommand>>>,
    /// Whether the client knows the session.
    is_shown: AtomicBool,
    /// Notified when the list may have changed.
    changed: Notify,
}

impl CommandMenu {
    /// Called when the client knows the session: only then may it receive the list of commands.
    pub(crate) fn show(&self) {
        self.sent.is_shown.store(true, Ordering::Release);
        self.sent.changed.notify_one();
    }

    /// Sends the list of commands again if servers have changed it.
    pub(crate) fn refresh(&self) {
        if self.sent.is_shown.load(Ordering::Acquire) {
            self.sent.changed.notify_one();
        }
    }

    /// Sends the list of commands whenever it may have changed. Does not end.
    pub(crate) async fn keep_sending(self: Arc<Self>) {
        loop {
            self.sent.changed.notified().await;
            sleep(COLLECTED).await;
            self.send().await;
        }
    }

    /// Sends the list of commands, if it has changed. Without an answer of the gateway, it has those
    /// of the session's own servers only.
    async fn send(&self) {
        self.catalog.fetch().await;
        let listed = self.of_gateway().await;
        let own = self.servers.iter().flat_map(|servers| servers.prompts()).take(MAX_PROMPTS);
        let own = own.map(|prompt| prompt_command(&prompt));
        // A prompt of the session's own server takes precedence, as when it is typed.
        let mut names = BTreeSet::new();
        let commands: Vec<AvailableCommand> = own
            .chain(listed.into_iter().flatten().map(gateway_command))
            .filter(|command| names.insert(command.name.clone()))
            .collect();
        {
            let mut sent = self.sent.list.lock().unwrap_or_else(PoisonError::into_inner);
            if sent.as_ref() == Some(&commands) {
                return;
            }
            *sent = Some(commands.clone());
        }
        let update = AvailableCommandsUpdate::new(commands);
        self.client.send(SessionUpdate::AvailableCommandsUpdate(update));
    }

    /// Returns the commands of the gateway; `None` if it does not list them.
    async fn of_gateway(&self) -> Option<Vec<Command>> {
        let params = CommandsParams {
            agent_id: Some(self.gateway.agent.clone()),
            include_args: Some(true),
            ..CommandsParams::default()
        };
        let listed = self.gateway.ask_within::<rpc::CommandsList>(ANSWER, params).await;
        listed.ok().map(|listed| listed.commands)
    }

    /// Describes a command that does not exist: it must not be sent to the model. Returns `None` if
    /// it exists, or if the gateway has to decide.
    pub(crate) async fn unknown(&self, name: &str) -> Option<String> {
        if name == MCP || (name == CALL && self.options.is_offline()) {
            return None;
        }
        let listed = self.of_gateway().await?;
        let aliases = listed.iter().flat_map(|command| command.text_aliases.iter().flatten());
        let aliases = aliases.map(|alias| alias.trim_start_matches('/'));
        let known: Vec<&str> =
            listed.iter().map(|command| command.name.as_str()).chain(aliases).collect();
        (!known.contains(&name)).then(|| unknown_command(name, &known))
    }
}

fn unknown_command(name: &str, known: &[&str]) -> String {
    let shown = clean_line(Untrusted::new(name), DESCRIPTION);
    let similar = match openclaw_config::nearest(name, known) {
        Some(similar) => format!("Did you mean `/{similar}`?"),
        None => "Use `/help` for a list.".to_owned(),
    };
    format!("Unknown command `/{shown}`. {similar} To send it to the model, type `//{shown}`.")
}

fn gateway_command(command: Command) -> AvailableCommand {
    let arguments = command.args.iter().flatten();
    let arguments = arguments.map(|it| (it.name.as_str(), it.required == Some(true)));
    let input = command.accepts_args.then(|| input(arguments));
    AvailableCommand::new(command.name, command.description).input(input)
}

fn prompt_command(prompt: &PromptCommand) -> AvailableCommand {
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
    let names = arguments.map(
        |(name, is_required)| {
            if is_required { name.to_owned() } else { format!("[{name}]") }
        },
    );
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
            unknown_command("usge", &known),
            "Unknown command `/usge`. Did you mean `/usage`? To send it to the model, type `//usge`."
        );
        assert!(unknown_command("nonsense", &known).contains("Use `/help` for a list."));
    }
}
