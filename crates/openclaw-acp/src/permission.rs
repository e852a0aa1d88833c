//! Approvals of the gateway as permission requests to the client.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, SessionUpdate, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use openclaw_content::{Untrusted, clean_excerpt};
use openclaw_protocol::approvals::{Approval, Decision, PassParams, RespondParams};
use openclaw_protocol::{ask as request, rpc};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::calls::{describe, is_builtin, text_content, whole};
use crate::changes::add_replaced_text;
use crate::client_tools::ClientTool;
use crate::session::AcpSession;

const ONCE: &str = "allow";
const SESSION: &str = "allow-session";
const ALWAYS: &str = "always-";
const REJECT: &str = "reject";
/// Maximum length of what "always" allows, in characters.
const ALWAYS_CHARS: usize = 600;

/// The user's answer to a permission request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PermissionAnswer {
    /// The id of the chosen option.
    Chosen(String),
    /// The turn was cancelled.
    Cancelled,
    /// The client could not ask, or is gone.
    NotAsked,
    /// The question was withdrawn.
    Withdrawn,
}

/// Why there is no decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The client could not ask the user.
    NotAsked,
    /// It is not needed any more.
    Withdrawn,
}

/// Asks the client for an approval, in a task of its own.
pub(crate) fn ask(session: &Arc<AcpSession>, approval: Approval) {
    let withdrawn = CancellationToken::new();
    session.lock().open_questions.push((approval.id.clone(), withdrawn.clone()));
    let asking = Arc::clone(session);
    session.spawn(async move {
        let decided = decide(&asking, &approval, &withdrawn).await;
        asking.lock().open_questions.retain(|(id, _)| *id != approval.id);
        let id = approval.id;
        let answered = match decided {
            Ok((decision, always)) => {
                let params = RespondParams { id, decision, always, instead: None };
                request::<rpc::ApprovalsRespond>(&*asking.surface, params).await.map(drop)
            }
            // Another client may decide. Otherwise, the fallback of the configuration applies.
            Err(Undecided::NotAsked) => {
                let params = PassParams { id };
                request::<rpc::ApprovalsPass>(&*asking.surface, params).await.map(drop)
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
    session: &Arc<AcpSession>,
    approval: &Approval,
    withdrawn: &CancellationToken,
) -> Result<(Decision, Option<usize>), Undecided> {
    let (own, is_allowed, is_guarded) = {
        let state = session.lock();
        let turn = state.turn.as_ref().filter(|turn| Some(&turn.run) == approval.run_id.as_ref());
        if turn.is_some_and(|turn| turn.cancelled.is_cancelled()) {
            return Ok((Decision::Deny, None));
        }
        let own = state.lent.iter().flatten().find(|tool| tool.name == approval.tool).cloned();
        let is_allowed = own.as_ref().is_some_and(|tool| state.allowed.contains(tool));
        (own, is_allowed, state.options.is_guarded())
    };
    let is_own = own.is_some();
    let call = call_of(session, approval).await;
    let (id, content) = (call.tool_call_id.clone(), call.fields.content.clone());
    let shown = |decision| {
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        let is_diff = |it: &ToolCallContent| matches!(it, ToolCallContent::Diff(_));
        if content.iter().flatten().any(is_diff) {
            // With the text that is replaced, which was not known before.
            fields = fields.content(content.clone());
        }
        session.updates.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
        decision
    };
    // What is outside of the session's folders is refused by the tool: the user need not decide.
    let is_refused = is_own && session.client_tools.refuses(&approval.tool, &args(approval));
    if is_refused || (is_own && is_allowed && !is_guarded) {
        return Ok(shown((Decision::AllowOnce, None)));
    }
    // A command can do anything: each one is decided about.
    let lasts = is_own && !is_guarded && ClientTool::find(&approval.tool) != Some(ClientTool::Run);
    let answer = choose(session, call, options(approval, lasts), withdrawn).await;
    let decided = match answer {
        PermissionAnswer::Withdrawn => return Err(Undecided::Withdrawn),
        PermissionAnswer::NotAsked => return Err(Undecided::NotAsked),
        PermissionAnswer::Cancelled => (Decision::Deny, None),
        PermissionAnswer::Chosen(chosen) => match (chosen.as_str(), chosen.strip_prefix(ALWAYS)) {
            (ONCE, _) => (Decision::AllowOnce, None),
            (SESSION, _) if lasts => {
                session.lock().allowed.extend(own);
                (Decision::AllowOnce, None)
            }
            (_, Some(nth)) => match nth.parse::<usize>() {
                Ok(nth) if nth < approval.always.len() => (Decision::AllowAlways, Some(nth)),
                _ => (Decision::Deny, None),
            },
            // An unknown option is not an approval.
            _ => (Decision::Deny, None),
        },
    };
    Ok(if decided.0 == Decision::Deny { decided } else { shown(decided) })
}

fn args(approval: &Approval) -> Value {
    let args = approval.args.as_ref();
    args.and_then(|args| serde_json::from_str(args.get()).ok()).unwrap_or_default()
}

fn options(approval: &Approval, lasts: bool) -> Vec<PermissionOption> {
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

/// Describes the call that an approval is about: the one that the client knows, if it is found.
async fn call_of(session: &Arc<AcpSession>, approval: &Approval) -> ToolCallUpdate {
    let args = args(approval);
    let known = {
        let mut state = session.lock();
        let mut same = state.calls.iter_mut().filter(|it| it.name == approval.tool && !it.is_asked);
        same.find(|call| call.args == args).map(|call| {
            call.is_asked = true;
            call.id.clone()
        })
    };
    let id = known.unwrap_or_else(|| ToolCallId::new(format!("approval-{}", approval.id)));
    let described = describe(session, id.clone(), &approval.tool, &approval.title, args.clone());
    let mut content = match ClientTool::find(&approval.tool) {
        // With the text that is replaced, so that the client can show the difference.
        Some(ClientTool::WriteFile) => session.client_tools.diff(session, &args).await,
        _ => described.content,
    };
    add_replaced_text(session, &approval.tool, &mut content);
    // The result shows the same changes.
    if let Some(call) = session.lock().calls.iter_mut().find(|call| call.id == id) {
        call.changes.clone_from(&content);
    }
    // All of what will be done: the title has only the beginning, and what the arguments of a
    // server's tool mean is not known.
    let is_builtin = is_builtin(&approval.tool);
    if content.is_empty() || !is_builtin {
        let raw = approval.args.as_ref().map_or("{}", |args| args.get());
        content.extend(whole(&approval.tool, &args, raw));
        let words = approval.description.as_deref().filter(|_| !is_builtin);
        content.extend(words.map(text_content));
    }
    if !approval.changes.is_empty() {
        content.push(text_content(format!("{}\n{}", approval.title, approval.changes.join("\n"))));
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

/// Lets the user choose an option.
pub(crate) async fn choose(
    session: &AcpSession,
    call: ToolCallUpdate,
    options: Vec<PermissionOption>,
    withdrawn: &CancellationToken,
) -> PermissionAnswer {
    // The client must know the call that it is asked about.
    session.updates.flushed().await;
    let request = RequestPermissionRequest::new(session.id.clone(), call, options);
    let sent = session.cx.send_request(request);
    let cancellation = sent.cancellation_handle();
    tokio::select! {
        answer = sent.block_task() => match answer.map(|answer| answer.outcome) {
            Ok(RequestPermissionOutcome::Selected(SelectedPermissionOutcome {
                option_id, ..
            })) => PermissionAnswer::Chosen(option_id.0.to_string()),
            Ok(_) => PermissionAnswer::Cancelled,
            Err(error) => {
                session.note(&format!("The editor could not ask for permission: {}", error.message));
                PermissionAnswer::NotAsked
            }
        },
        () = withdrawn.cancelled() => {
            // The client may still show it; its answer is ignored.
            let _ = cancellation.cancel();
            PermissionAnswer::Withdrawn
        }
    }
}
