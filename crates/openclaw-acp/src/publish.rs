//! Publishes the lent tools through a node, at a gateway to which they cannot be lent.
//!
//! Such a gateway offers them to all of its agents, and asks for no approval. So both are checked here:
//! only this session can call them, and what may change something is approved by the user.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::approvals::{Approval, ApprovalKind, Decision, Severity};
use openclaw_protocol::client::node::{MAX_TOOLS, NodeCall, PublishedTool, call_of};
use openclaw_protocol::{Connect, EventReceiver, PublishingNode, Received};
use openclaw_tools::{ProgressWatcher, ToolEffect};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::SessionClient;
use crate::current_turn::CurrentTurn;
use crate::gateway::GatewaySession;
use crate::lent_calls::{LentCalls, invoke_result};
use crate::lent_tools::{EditorLentTool, EditorLentTools, LentToolOutcome};
use crate::permission::Permissions;
use crate::tasks::SessionTasks;

/// How long the gateway may take to accept the tools.
const PUBLISH: Duration = Duration::from_secs(30);
/// Calls that run at the same time, per session.
const MAX_CALLS: usize = 64;
/// The name of the server that the tools belong to, as the gateway shows it.
const SERVER: &str = "editor";

/// Publishes the lent tools of a session.
pub(crate) struct Publisher {
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) turn: Arc<CurrentTurn>,
    pub(crate) lent: Arc<EditorLentTools>,
    pub(crate) lent_calls: Arc<LentCalls>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) tasks: SessionTasks,
    /// Held while tools are being lent. Contains the node that publishes them, once there is one.
    pub(crate) node: Mutex<Option<Arc<PublishingNode>>>,
}

impl Publisher {
    /// Publishes the tools, through a node that is connected the first time there are any.
    ///
    /// # Errors
    /// Why the agent cannot use them, and what the user can do.
    pub(crate) async fn publish(
        self: &Arc<Self>,
        connected: &mut Option<Arc<PublishingNode>>,
        tools: &[EditorLentTool],
    ) -> Result<(), String> {
        let node = match connected {
            Some(node) => Arc::clone(node),
            None if tools.is_empty() => return Ok(()),
            None => {
                let node = Arc::new(self.connect.node().await?);
                let events = node.node.events();
                self.tasks.spawn(Arc::clone(self).follow(Arc::clone(&node), events));
                Arc::clone(connected.insert(node))
            }
        };
        let published: Vec<PublishedTool> = tools.iter().map(published).collect();
        let accepted = timeout(PUBLISH, node.node.publish(&published)).await;
        let accepted = accepted
            .map_err(|_| "the gateway did not respond in time".to_owned())
            .and_then(|accepted| accepted.map_err(|error| error.to_string()));
        let missing: Vec<&str> = match &accepted {
            Ok(accepted) => {
                let names = tools.iter().map(|tool| tool.name.as_str());
                names.filter(|name| !accepted.iter().any(|it| it == name)).collect()
            }
            Err(error) => {
                // Also if the connection is lost: the next attempt makes a new one.
                *connected = None;
                return Err(error.clone());
            }
        };
        match (missing.as_slice(), &node.waits_for) {
            ([], _) => Ok(()),
            (_, Some(advice)) => Err(format!("the gateway has not approved them: {advice}")),
            (missing, None) if missing.len() == tools.len() => Err(
                "the gateway does not accept them; its settings `gateway.nodes.pluginTools` and \
                 `gateway.nodes.commands` may forbid it"
                    .to_owned(),
            ),
            (missing, None) => {
                let names = missing.join(", ");
                self.client.note(&format!(
                    "The gateway does not accept these tools (at most {MAX_TOOLS}, with simple names): {names}"
                ));
                Ok(())
            }
        }
    }

    /// Executes the calls that arrive, until the connection is lost.
    async fn follow(self: Arc<Self>, node: Arc<PublishingNode>, mut events: EventReceiver) {
        let slots = Arc::new(Semaphore::new(MAX_CALLS));
        while let Some(received) = events.next().await {
            let Received::Event(event) = received else { continue };
            let Some(call) = call_of(&event) else { continue };
            let publisher = Arc::clone(&self);
            let node = Arc::clone(&node);
            // More calls wait. The buffer of events is bounded: what does not fit times out at the gateway.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            self.tasks.spawn(async move {
                let over = publisher.turn.over().unwrap_or_default();
                let outcome = tokio::select! {
                    outcome = publisher.run(&call) => outcome,
                    () = over.cancelled() => LentToolOutcome::failed("The turn has ended."),
                };
                let result = invoke_result(call.id, call.node_id, outcome);
                // It fails if the gateway does not wait any more.
                let _ = timeout(PUBLISH, node.node.answer(&result)).await;
                drop(slot);
            });
        }
        // The next time that tools are lent, a new connection is made.
        *self.node.lock().await = None;
        self.lent.set(None);
    }

    async fn run(&self, call: &NodeCall) -> LentToolOutcome {
        let is_own = call
            .session_key
            .as_deref()
            .is_some_and(|key| key.eq_ignore_ascii_case(&self.gateway.key));
        if !is_own {
            return LentToolOutcome::failed("This tool belongs to another session.");
        }
        if let Err(why) = self.check_allowed(call).await {
            return LentToolOutcome::failed(why);
        }
        let (progress, _) = ProgressWatcher::channel();
        self.lent_calls.execute(&call.tool, &call.arguments, &progress, None).await
    }

    /// Checks that the call may run: it changes nothing, or the user approves it.
    ///
    /// # Errors
    /// Why it may not.
    async fn check_allowed(&self, call: &NodeCall) -> Result<(), &'static str> {
        let Some(tool) = self.lent.find(&call.tool) else { return Ok(()) };
        if tool.effect == ToolEffect::ReadOnly {
            return Ok(());
        }
        let approval = Approval {
            id: call.id.clone(),
            kind: ApprovalKind::default(),
            agent_id: Some(self.gateway.agent.clone()),
            session_key: Some(self.gateway.key.clone()),
            run_id: self.turn.run(),
            tool: call.tool.clone(),
            server: None,
            title: tool.label,
            description: None,
            severity: match tool.effect {
                ToolEffect::Destructive => Severity::Critical,
                ToolEffect::ReadOnly | ToolEffect::Unknown => Severity::Warning,
            },
            args: Some(call.arguments.clone()),
            allowed_decisions: vec![Decision::AllowOnce, Decision::Deny],
            always: Vec::new(),
            changes: Vec::new(),
            whole: None,
            created_at_ms: 0,
            expires_at_ms: u64::MAX,
        };
        match self.permissions.decide(&approval, &CancellationToken::new()).await {
            Ok((Decision::AllowOnce | Decision::AllowAlways, _)) => Ok(()),
            Ok((Decision::Deny, _)) => Err("The user denied this call."),
            Err(_) => {
                Err("The call needs the user's approval, and the editor could not ask for it.")
            }
        }
    }
}

fn published(tool: &EditorLentTool) -> PublishedTool {
    PublishedTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: Arc::clone(&tool.schema),
        server: SERVER.to_owned(),
    }
}
