//! Approvals of the gateway as permission requests to the client.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use openclaw_content::{Untrusted, clean_excerpt};
use openclaw_protocol::approvals::{Approval, Decision, PassParams, RespondParams};
use openclaw_protocol::rpc;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::builtin::{BuiltinTool, EditorTool};
use crate::changes::add_replaced_text;
use crate::client::SessionClient;
use crate::content::text_content;
use crate::current_turn::CurrentTurn;
use crate::describe::{CallDescriber, whole_call};
use crate::editor_tools::EditorTools;
use crate::gateway::GatewaySession;
use crate::lent_tools::EditorLentTools;
use crate::open_calls::OpenCalls;
use crate::options::SessionOptions;
use crate::questions::{OpenQuestions, PermissionAnswer, choose};
use crate::tasks::SessionTasks;

const ONCE: &str = "allow";
const SESSION: &str = "allow-session";
const ALWAYS: &str = "always-";
const REJECT: &str = "reject";
/// Maximum length of what "always" allows, in characters.
const ALWAYS_CHARS: usize = 600;

/// Why there is no decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The client could not ask the user.
    NotAsked,
    /// It is not needed any more.
    Withdrawn,
}

/// Asks the client for approvals.
pub(crate) struct Permissions {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) turn: Arc<CurrentTurn>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) lent: Arc<EditorLentTools>,
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) describer: Arc<CallDescriber>,
    pub(crate) editor_tools: Arc<EditorTools>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) tasks: SessionTasks,
}

impl Permissions {
    /// Asks the client for an approval, in a task of its own.
    pub(crate) fn ask(self: &Arc<Self>, approval: Approval) {
        let withdrawn = self.questions.open(&approval.id);
        let permissions = Arc::clone(self);
        self.tasks.spawn(async move {
            let decided = permissions.decide(&approval, &withdrawn).await;
            permissions.questions.close(&approval.id);
            let id = approval.id;
            let gateway = &permissions.gateway;
            let answered = match decided {
                Ok((decision, always)) => {
                    let params = RespondParams { id, decision, always, instead: None };
                    gateway.ask::<rpc::ApprovalsRespond>(params).await.map(drop)
                }
                // Another client may decide. Otherwise, the fallback of the configuration applies.
                Err(Undecided::NotAsked) => {
                    gateway.ask::<rpc::ApprovalsPass>(PassParams { id }).await.map(drop)
                }
                Err(Undecided::Withdrawn) => return,
            };
            if let Err(error) = answered {
                // It was decided elsewhere, or has expired.
                tracing::info!(%error, "approval not accepted");
            }
        });
    }

    /// Returns the decision.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn decide(
        &self,
        approval: &Approval,
        withdrawn: &CancellationToken,
    ) -> Result<(Decision, Option<usize>), Undecided> {
        if approval.run_id.as_deref().is_some_and(|run| self.turn.is_cancelled(run)) {
            return Ok((Decision::Deny, None));
        }
        let lent = self.lent.find(&approval.tool);
        let is_lent = lent.is_some();
        let is_allowed = lent.as_ref().is_some_and(|tool| self.lent.is_allowed(tool));
        let is_guarded = self.options.is_guarded();
        let call = self.call_of(approval).await;
        let id = call.tool_call_id.clone();
        let content = call.fields.content.clone();
        let shown = |decision| {
            let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
            let is_diff = |it: &ToolCallContent| matches!(it, ToolCallContent::Diff(_));
            if content.iter().flatten().any(is_diff) {
                // With the text that is replaced, which was not known before.
                fields = fields.content(content.clone());
            }
            self.client.update_call(id, fields);
            decision
        };
        // What is outside of the session's folders is refused by the tool: the user need not decide.
        let is_refused = is_lent && self.editor_tools.refuses(&approval.tool, &args(approval));
        if is_refused || (is_allowed && !is_guarded) {
            return Ok(shown((Decision::AllowOnce, None)));
        }
        // A command can do anything: each one is decided about.
        let lasts =
            is_lent && !is_guarded && EditorTool::find(&approval.tool) != Some(EditorTool::Run);
        let options = permission_options(approval, lasts);
        let decided = match choose(&self.client, call, options, withdrawn).await {
            PermissionAnswer::Withdrawn => return Err(Undecided::Withdrawn),
            PermissionAnswer::NotAsked => return Err(Undecided::NotAsked),
            PermissionAnswer::Cancelled => (Decision::Deny, None),
            PermissionAnswer::Chosen(chosen) => {
                match (chosen.as_str(), chosen.strip_prefix(ALWAYS)) {
                    (ONCE, _) => (Decision::AllowOnce, None),
                    (SESSION, _) if lasts => {
                        lent.into_iter().for_each(|tool| self.lent.allow(tool));
                        (Decision::AllowOnce, None)
                    }
                    (_, Some(nth)) => match nth.parse::<usize>() {
                        Ok(nth) if nth < approval.always.len() => {
                            (Decision::AllowAlways, Some(nth))
                        }
                        _ => (Decision::Deny, None),
                    },
                    // An unknown option is not an approval.
                    _ => (Decision::Deny, None),
                }
            }
        };
        Ok(if decided.0 == Decision::Deny { decided } else { shown(decided) })
    }

    /// Describes the call that an approval is about: the one that the client knows, if it is found.
    async fn call_of(&self, approval: &Approval) -> ToolCallUpdate {
        let args = args(approval);
        let known = self.calls.ask_about(&approval.tool, &args);
        let id = known.unwrap_or_else(|| ToolCallId::new(format!("approval-{}", approval.id)));
        let described =
            self.describer.describe(id.clone(), &approval.tool, &approval.title, args.clone());
        let mut content = match EditorTool::find(&approval.tool) {
            // With the text that is replaced, so that the client can show the difference.
            Some(EditorTool::WriteFile) => self.editor_tools.diff(&args).await,
            _ => described.content,
        };
        if let Some(folder) = &self.describer.folders.turns {
            add_replaced_text(folder, &approval.tool, &mut content);
        }
        // The result shows the same changes.
        self.calls.set_changes(&id, &content);
        // All of what will be done: the title has only the beginning, and what the arguments of a
        // server's tool mean is not known.
        let is_builtin = BuiltinTool::find(&approval.tool).is_some();
        if content.is_empty() || !is_builtin {
            let raw = approval.args.as_ref().map_or("{}", |args| args.get());
            content.extend(whole_call(&approval.tool, &args, raw));
            let description = approval.description.as_deref().filter(|_| !is_builtin);
            content.extend(description.map(text_content));
        }
        if !approval.changes.is_empty() {
            let changes = approval.changes.join("\n");
            content.push(text_content(format!("{}\n{changes}", approval.title)));
        }
        let fields = ToolCallUpdateFields::new()
            .title(described.title)
            .kind(described.kind)
            .status(ToolCallStatus::Pending)
            .content(content)
            .locations(described.locations)
            .raw_input(args);
        ToolCallUpdate::new(id, fields)
    }
}

fn args(approval: &Approval) -> Value {
    let args = approval.args.as_ref();
    args.and_then(|args| serde_json::from_str(args.get()).ok()).unwrap_or_default()
}

fn permission_options(approval: &Approval, lasts: bool) -> Vec<PermissionOption> {
    let mut options =
        vec![PermissionOption::new(ONCE, "Allow once", PermissionOptionKind::AllowOnce)];
    if approval.allowed_decisions.contains(&Decision::AllowAlways) {
        options.extend(approval.always.iter().enumerate().map(|(nth, always)| {
            let id = format!("{ALWAYS}{nth}");
            PermissionOption::new(
                id,
                capitalized(&clean_excerpt(Untrusted::new(&always.words), ALWAYS_CHARS)),
                PermissionOptionKind::AllowAlways,
            )
        }));
    }
    if lasts && approval.always.is_empty() {
        let name = "Always allow in this session";
        options.push(PermissionOption::new(SESSION, name, PermissionOptionKind::AllowAlways));
    }
    options.push(PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce));
    options
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
