//! Lends the tools of a session to the gateway: those of its MCP servers and those of the editor.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::SessionUpdate;
use futures_util::FutureExt as _;
use openclaw_protocol::sessions::{ExtraTool, ExtraToolSchema, SetExtraToolsParams};
use openclaw_protocol::{rpc, servers_settled};
use openclaw_tools::ToolEffect;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep, timeout};

use crate::client::SessionClient;
use crate::commands::CommandMenu;
use crate::content::chunk;
use crate::editor_tools::EditorTools;
use crate::gateway::GatewaySession;
use crate::lent_tools::{EditorLentTool, EditorLentTools};
use crate::publish::Publisher;
use crate::servers::SessionServers;

/// The timeout of a lent tool at the gateway: longer than any timeout here.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// A prompt that waits longer for servers says so.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Keeps the tools lent as they are now.
pub(crate) struct Lending {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) lent: Arc<EditorLentTools>,
    pub(crate) servers: Option<Arc<SessionServers>>,
    pub(crate) editor_tools: Arc<EditorTools>,
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) commands: Arc<CommandMenu>,
    /// How long a prompt waits for servers that are starting.
    pub(crate) patience: Duration,
    pub(crate) progress: Mutex<LendingProgress>,
}

#[derive(Debug, Default)]
pub(crate) struct LendingProgress {
    /// Until when prompts wait for servers that are starting; `None` before the first prompt.
    waits_until: Option<Instant>,
    /// What was reported about tools that could not be lent.
    reported: Vec<String>,
}

impl Lending {
    /// Lends the tools as they are now, if they have changed. When it returns, the gateway has them.
    async fn lend(&self) {
        // A turn must not begin while another task is still lending the same tools.
        let mut node = self.publisher.node.lock().await;
        // Before the tools are read: a change meanwhile lends them again.
        let revision = self.servers.as_ref().map(|servers| servers.revision());
        if self.lent.has_revision(revision) {
            return;
        }
        let mut tools = self.editor_tools.tools();
        if let Some(servers) = &self.servers {
            let (own, note) = servers.tools();
            tools.extend(own);
            if let Some(note) = note {
                self.note_once(note);
            }
        }
        if self.lent.set_revision(revision, &tools) {
            return;
        }
        let params = SetExtraToolsParams {
            session_key: self.gateway.key.clone(),
            agent_id: None,
            tools: tools.iter().map(extra_tool).collect(),
        };
        // Before the request: a call may arrive before its answer. Also without tools: the turns of
        // this session must not use those that another client lends to it.
        self.lent.set(Some(tools.clone()));
        let lent = match self.gateway.ask::<rpc::SessionsSetExtraTools>(params).await {
            Err(error) if error.is_unknown_method() => {
                self.publisher.publish(&mut node, &tools).await
            }
            lent => lent.map(drop).map_err(|error| error.to_string()),
        };
        if let Err(error) = lent {
            self.lent.set(None);
            self.note_once(format!("The tools of this session are not available: {error}"));
        }
    }

    fn note_once(&self, note: String) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if !progress.reported.contains(&note) {
            self.client.note(&note);
            progress.reported.push(note);
        }
    }

    /// Waits until the servers were tried and their tools are lent, with a limit: the tools of a
    /// server that is late or restarts join later.
    pub(crate) async fn ready(&self, patience: Duration) {
        let left = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            time_left(&mut progress.waits_until, Instant::now(), self.patience)
        };
        if let Some(left) = left.map(|left| left.min(patience)) {
            let own = async {
                if let Some(servers) = &self.servers {
                    servers.fleet().tried().await;
                }
            };
            let of_gateway =
                servers_settled(&*self.gateway.surface, Some(&self.gateway.agent), left);
            let ready = async { tokio::join!(timeout(left, own).map(drop), of_gateway) };
            tokio::select! {
                _ = ready => {}
                never = self.report_waiting() => match never {},
            }
        }
        self.lend().await;
        self.report_failures(true);
    }

    /// Says which servers a prompt waits for, if it takes long.
    async fn report_waiting(&self) -> Infallible {
        sleep(LONG_WAIT).await;
        let starting = self.servers.iter().flat_map(|servers| servers.starting());
        let starting = starting.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if !starting.is_empty() {
            let text = format!("Waiting for MCP servers: {starting}\n");
            self.client.send(SessionUpdate::AgentThoughtChunk(chunk(text)));
        }
        std::future::pending().await
    }

    /// Lends the tools whenever the servers change.
    pub(crate) async fn keep_lending(self: Arc<Self>) {
        let Some(servers) = &self.servers else { return self.lend().await };
        let mut events = servers.fleet().events();
        let _ = timeout(self.patience, servers.fleet().tried()).await;
        let mut prompts = 0;
        loop {
            // What has happened so far is part of what is looked at now.
            while !matches!(events.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
            self.lend().await;
            // A prompt reports those that are still starting, after it has waited for them.
            self.report_failures(false);
            let now = servers.prompts().len();
            if std::mem::replace(&mut prompts, now) != now {
                self.commands.refresh();
            }
            match events.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Reports the servers that are not available, each once.
    fn report_failures(&self, with_starting: bool) {
        let failures = self.servers.iter().flat_map(|servers| servers.new_failures(with_starting));
        failures.for_each(|failure| self.client.note(&failure));
    }

    /// Takes the tools back: they are used no more.
    pub(crate) async fn stop(&self, limit: Duration) {
        let params = SetExtraToolsParams {
            session_key: self.gateway.key.clone(),
            ..SetExtraToolsParams::default()
        };
        let unlent = self.gateway.ask_within::<rpc::SessionsSetExtraTools>(limit, params);
        let unpublished = timeout(limit, async { *self.publisher.node.lock().await = None });
        let _ = tokio::join!(unlent, unpublished);
    }
}

/// A lent tool in the gateway's protocol.
fn extra_tool(tool: &EditorLentTool) -> ExtraTool {
    ExtraTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        // Those of servers come from the catalogue, the editor's are ours.
        parameters: Some(ExtraToolSchema::Shared(Arc::clone(&tool.schema))),
        read_only: Some(tool.effect == ToolEffect::ReadOnly),
        timeout_ms: u64::try_from(TIMEOUT.as_millis()).ok(),
    }
}

/// Returns how long a prompt may still wait. All prompts of a session share the time, which begins
/// with the first one.
fn time_left(until: &mut Option<Instant>, now: Instant, patience: Duration) -> Option<Duration> {
    let until = *until.get_or_insert(now + patience);
    until.checked_duration_since(now).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_wait_once() {
        let start = Instant::now();
        let patience = Duration::from_secs(20);
        let mut until = None;
        let mut left = |after| {
            let now = start + Duration::from_secs(after);
            time_left(&mut until, now, patience).map(|left| left.as_secs())
        };
        assert_eq!([left(0), left(5), left(20), left(60)], [Some(20), Some(15), None, None]);
    }
}
