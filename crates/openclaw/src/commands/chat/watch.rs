//! Watches the gateway while the prompt is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use openclaw_mcp::server::status::ServerStatus;
use openclaw_protocol::agents::{Command, CommandSource, CommandsParams};
use openclaw_protocol::approvals::{Approval, ListParams};
use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::mcp::elicitation::{self, Elicitation};
use openclaw_protocol::sessions::Row;
use openclaw_protocol::tools::CatalogParams;
use openclaw_protocol::{EventReceiver, Received, rpc};

use super::Chat;
use super::commands::LATEST;
use super::complete::{CompletionWord, Vocabulary};
use super::greeting::server_line;
use super::inbox::{Inbox, InboxItem, Shown};
use crate::commands::link::look;
use crate::commands::sessions;
use crate::commands::talk::{EventFilter, TurnEvent, is_starting, servers};

/// What is watched, and the servers as they were last shown.
pub(super) struct Watch {
    events: EventReceiver,
    inbox: Inbox,
    /// The session whose events are sent here.
    followed: String,
    /// The ids of the requests for approval that were shown.
    asked: BTreeSet<String>,
    told: Vec<ServerStatus>,
    vocabulary: Arc<Vocabulary>,
}

/// Returns the elicitations that wait already, for example of a turn that another client runs.
async fn elicitations(chat: &Chat<'_>) -> Vec<Elicitation> {
    let waiting =
        look::<rpc::McpElicitationList>(chat.surface, elicitation::ListParams::default()).await;
    waiting.map(|it| it.elicitations).unwrap_or_default()
}

impl Watch {
    /// Starts watching. The current servers are not reported by [`news`](Self::news).
    pub(super) async fn begin(chat: &Chat<'_>, vocabulary: Arc<Vocabulary>) -> Self {
        // Subscribed first, so that no change is missed.
        let events = chat.surface.events();
        let told = servers(chat.surface, Some(&chat.whom.agent)).await.unwrap_or_default();
        let inbox = Inbox::unknown(elicitations(chat).await);
        let (followed, asked) = (String::new(), BTreeSet::new());
        let watch = Self { events, inbox, followed, asked, told, vocabulary };
        watch.learn(chat).await;
        watch
    }

    /// Starts again on a new connection. What has changed meanwhile is reported.
    pub(super) async fn resume(&mut self, chat: &Chat<'_>) {
        self.events = chat.surface.events();
        self.inbox = Inbox::unknown(elicitations(chat).await);
        self.asked.clear();
        self.followed.clear();
        self.follow(chat).await;
        self.learn(chat).await;
    }

    pub(super) fn servers(&self) -> &[ServerStatus] {
        &self.told
    }

    /// Has the events of the conversation sent here, also those of turns of other clients.
    pub(super) async fn follow(&mut self, chat: &Chat<'_>) {
        if self.followed == chat.session {
            return;
        }
        let params = HistoryParams {
            session_key: chat.session.clone(),
            agent_id: chat.whom.named_for(&chat.session),
            limit: Some(1),
            ..HistoryParams::default()
        };
        // It is tried again before the next prompt.
        if look::<rpc::ChatHistory>(chat.surface, params).await.is_ok() {
            self.followed.clone_from(&chat.session);
        }
    }

    /// Waits until there is something to show. Cancel-safe.
    pub(super) async fn changed(&mut self, chat: &Chat<'_>) -> InboxItem {
        let own_run = chat.own_run();
        let shown = Shown { session: &chat.session, own_run: &own_run };
        loop {
            // All of it: what has arrived later may settle what has arrived before.
            while let Some(Some(received)) = self.events.next().now_or_never() {
                self.inbox.add(received, shown);
            }
            if let Some(change) = self.inbox.pop() {
                return change;
            }
            match self.events.next().await {
                None => return InboxItem::Gone,
                Some(received) => self.inbox.add(received, shown),
            }
        }
    }

    /// Waits until a question is settled. Cancel-safe.
    pub(super) async fn settled(&mut self, chat: &Chat<'_>, id: &str) {
        let own_run = chat.own_run();
        let shown = Shown { session: &chat.session, own_run: &own_run };
        let filter = EventFilter { run: "", session: "", all_questions: false };
        while let Some(received) = self.events.next().await {
            let step = match &received {
                Received::Event(event) => TurnEvent::of(event, filter),
                Received::Lagged(_) => None,
            };
            self.inbox.add(received, shown);
            if matches!(step, Some(TurnEvent::Decided(decided)) if decided == id) {
                return;
            }
        }
    }

    /// Hands over the events that follow, to a turn.
    pub(super) fn hand_over(&mut self, chat: &Chat<'_>) -> EventReceiver {
        std::mem::replace(&mut self.events, chat.surface.events())
    }

    /// Returns the requests for approval that wait and were not shown.
    pub(super) async fn approvals(&mut self, chat: &Chat<'_>) -> Vec<Approval> {
        let waiting = look::<rpc::ApprovalsList>(chat.surface, ListParams::default()).await;
        let waiting = waiting.map(|it| it.approvals).unwrap_or_default();
        // Ids are not used again, so that only those that wait need to be kept.
        let ids: BTreeSet<String> = waiting.iter().map(|it| it.id.clone()).collect();
        let before = std::mem::replace(&mut self.asked, ids);
        waiting.into_iter().filter(|it| !before.contains(&it.id)).collect()
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
            CompletionWord::new(row.key, &about)
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
        let commands = look::<rpc::CommandsList>(chat.surface, params).await;
        let commands = commands.map(|answer| answer.commands).unwrap_or_default();
        let params = CatalogParams { agent_id, include_plugins: Some(true) };
        let tools = look::<rpc::ToolsCatalog>(chat.surface, params).await;
        let groups = tools.map(|answer| answer.groups).unwrap_or_default();
        let tools = groups.into_iter().flat_map(|group| group.tools);
        let command = |it: Command| {
            let entry = CompletionWord::new(format!("/{}", it.name), &it.description);
            // Servers complete the arguments of their prompts.
            let args = it.args.filter(|_| it.source == CommandSource::Plugin).unwrap_or_default();
            entry.with_args(args.into_iter().map(|argument| argument.name))
        };
        self.vocabulary.learn(
            commands.into_iter().map(command),
            self.told.iter().map(|server| server.name.clone()),
            tools.map(|tool| CompletionWord::new(tool.id, &tool.description)),
        );
    }
}
