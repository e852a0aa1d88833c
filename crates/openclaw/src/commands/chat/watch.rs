//! Watches the servers while the prompt is shown.

use std::sync::Arc;

use openclaw_mcp::server::status::ServerStatus;
use openclaw_protocol::agents::{Command, CommandSource, CommandsParams, CommandsResult};
use openclaw_protocol::sessions::Row;
use openclaw_protocol::tools::{CatalogParams, CatalogResult};
use openclaw_protocol::{EventReceiver, Received, RequestError, names, rpc};

use super::Chat;
use super::commands::LATEST;
use super::complete::{Entry, Vocabulary};
use super::greeting::server_line;
use crate::commands::link::look;
use crate::commands::sessions;
use crate::commands::talk::{is_starting, servers};

/// A change at the gateway.
pub(super) enum Change {
    /// The state of a server may have changed.
    Servers,
    /// The connection is closed.
    Gone,
}

/// The servers as they were last shown.
pub(super) struct Watch {
    events: EventReceiver,
    told: Vec<ServerStatus>,
    vocabulary: Arc<Vocabulary>,
}

impl Watch {
    /// Starts watching. The current servers are not reported by [`news`](Self::news).
    pub(super) async fn begin(chat: &Chat<'_>, vocabulary: Arc<Vocabulary>) -> Self {
        // Subscribed first, so that no change is missed.
        let events = chat.surface.events();
        let told = servers(chat.surface, Some(&chat.whom.agent)).await.unwrap_or_default();
        let watch = Self { events, told, vocabulary };
        watch.learn(chat).await;
        watch
    }

    pub(super) fn servers(&self) -> &[ServerStatus] {
        &self.told
    }

    /// Waits until something may have changed. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Change {
        loop {
            match self.events.next().await {
                None => return Change::Gone,
                Some(Received::Lagged(_)) => return Change::Servers,
                Some(Received::Event(event)) if event.event == names::MCP_SERVER => {
                    return Change::Servers;
                }
                Some(Received::Event(_)) => {}
            }
        }
    }

    /// Returns a line for each server that has changed since it was last shown.
    pub(super) async fn news(&mut self, chat: &Chat<'_>) -> Vec<String> {
        let Ok(now) = servers(chat.surface, Some(&chat.whom.agent)).await else {
            return Vec::new();
        };
        // Servers that are starting again are not reported: only the result matters.
        let is_news = |server: &&ServerStatus| {
            let before = self.told.iter().find(|told| told.name == server.name);
            let is_other =
                |told: &ServerStatus| told.state != server.state || told.tools != server.tools;
            before.is_none_or(|told| !is_starting(server) && is_other(told))
        };
        let lines: Vec<String> = now.iter().filter(is_news).map(server_line).collect();
        if !lines.is_empty() {
            self.told = now;
            self.learn(chat).await;
        }
        lines
    }

    /// Updates the conversations for completion.
    pub(super) async fn learn_sessions(&self, chat: &Chat<'_>) {
        let found = sessions::latest(chat.surface, Some(&chat.whom.agent), LATEST).await;
        let entry = |row: Row| {
            let about = sessions::title(&row).unwrap_or_default();
            Entry::new(row.key, &about)
        };
        self.vocabulary.learn_sessions(found.unwrap_or_default().into_iter().map(entry));
    }

    /// Updates the commands, servers and tools for completion.
    async fn learn(&self, chat: &Chat<'_>) {
        let agent_id = Some(chat.whom.agent.clone());
        let params = CommandsParams {
            agent_id: agent_id.clone(),
            include_args: Some(true),
            ..CommandsParams::default()
        };
        let commands: Result<CommandsResult, RequestError> =
            look::<rpc::CommandsList>(chat.surface, params).await;
        let commands = commands.map(|answer| answer.commands).unwrap_or_default();
        let params = CatalogParams { agent_id, include_plugins: Some(true) };
        let tools: Result<CatalogResult, RequestError> =
            look::<rpc::ToolsCatalog>(chat.surface, params).await;
        let groups = tools.map(|answer| answer.groups).unwrap_or_default();
        let tools = groups.into_iter().flat_map(|group| group.tools);
        let command = |it: Command| {
            let entry = Entry::new(format!("/{}", it.name), &it.description);
            // Servers complete the arguments of their prompts.
            let args = it.args.filter(|_| it.source == CommandSource::Plugin).unwrap_or_default();
            entry.with_args(args.into_iter().map(|argument| argument.name))
        };
        self.vocabulary.learn(
            commands.into_iter().map(command),
            self.told.iter().map(|server| server.name.clone()),
            tools.map(|tool| Entry::new(tool.id, &tool.description)),
        );
    }
}
