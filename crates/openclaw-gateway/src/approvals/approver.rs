//! Asks the connected callers whether a call may be made.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_mcp::inventory::describe::without_server;
use openclaw_protocol::approvals::{AlwaysChoice, Approval, ApprovalKind, Decision, Severity};
use openclaw_tools::{
    ApprovalAnswer, ApprovalExtent, ApprovalReason, ApprovalRequest, Approver, GrantRule,
    ToolEffect,
};

use super::subjects::ApprovalSubject;
use super::{ApprovalDecision, PendingApprovals};
use crate::clock::now_ms;
use crate::turn_events::TurnEvents;

/// All approvers have left.
struct NoApprover;

/// Asks the connected callers, for one turn.
#[derive(Debug)]
pub(crate) struct CallerApprover {
    pub(crate) approvals: Arc<PendingApprovals>,
    pub(crate) agent: String,
    pub(crate) run: String,
    pub(crate) timeout: Duration,
    pub(crate) turn_events: Arc<TurnEvents>,
}

impl Approver for CallerApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.ask_callers(request))
    }
}

impl CallerApprover {
    async fn ask_callers(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let approval = self.approval(request);
        // Register first: the answer may arrive immediately.
        let (mut pending, decided) = self.approvals.open(&approval);
        let subject = ApprovalSubject {
            agent: self.agent.clone(),
            session: request.session.map(ToOwned::to_owned),
            tool: request.tool.clone(),
            covered_by: request.always.iter().map(|option| option.grant.clone()).collect(),
        };
        self.approvals.subjects.open(&approval.id, subject);
        if !pending.send(&approval) {
            return ApprovalAnswer::Unanswered;
        }
        self.turn_events.approval_requested(&approval);
        let answered = async {
            tokio::select! {
                biased;
                decision = decided => Ok(decision),
                () = pending.undecided() => Err(NoApprover),
            }
        };
        let answered = tokio::time::timeout(self.timeout, answered).await;
        let is_passed = matches!(answered, Ok(Err(NoApprover))) && pending.is_passed();
        match answered.unwrap_or(Err(NoApprover)) {
            Ok(Ok(ApprovalDecision { decision, choice, instead })) => {
                pending.decided(decision);
                let chosen = request.always.get(choice).map(|option| option.grant.clone());
                match decision {
                    Decision::AllowOnce => ApprovalAnswer::Yes(ApprovalExtent::Once),
                    Decision::AllowAlways => ApprovalAnswer::Yes(
                        chosen.map_or(ApprovalExtent::Once, ApprovalExtent::Always),
                    ),
                    Decision::Deny => instead.map_or(ApprovalAnswer::No, ApprovalAnswer::Instead),
                }
            }
            Ok(Err(_)) => ApprovalAnswer::Unanswered,
            Err(NoApprover) => {
                pending.expired();
                if is_passed { ApprovalAnswer::NotAsked } else { ApprovalAnswer::Unanswered }
            }
        }
    }

    /// The request as callers see it.
    fn approval(&self, request: ApprovalRequest<'_>) -> Approval {
        let number = self.approvals.number();
        let tool = request.tool;
        let severity = match (request.why, tool.effect) {
            (ApprovalReason::Changed | ApprovalReason::Unlisted, _)
            | (_, ToolEffect::Destructive) => Severity::Critical,
            (_, ToolEffect::ReadOnly) => Severity::Info,
            _ => Severity::Warning,
        };
        let mut allowed_decisions = vec![Decision::AllowOnce];
        if !request.always.is_empty() {
            allowed_decisions.push(Decision::AllowAlways);
        }
        allowed_decisions.push(Decision::Deny);
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        Approval {
            id: format!("{}-{number}", self.run),
            kind: ApprovalKind::Call,
            agent_id: Some(self.agent.clone()),
            session_key: request.session.map(ToOwned::to_owned),
            run_id: Some(self.run.clone()),
            tool: tool.name.to_string(),
            server: None,
            title: request.title(),
            // The tool's name and the choices name the server already.
            description: Some(request.description(without_server(&tool.description))),
            severity,
            args: Some(request.arguments.to_owned()),
            allowed_decisions,
            always: request
                .always
                .iter()
                .map(|option| AlwaysChoice {
                    words: option.words.clone(),
                    for_session: matches!(option.grant, GrantRule::Host(_)),
                })
                .collect(),
            changes: request.shown_changes(without_server(&tool.description)),
            whole: self.approvals.shown_in_full(),
            created_at_ms: now_ms(),
            expires_at_ms: now_ms().saturating_add(timeout),
        }
    }
}
