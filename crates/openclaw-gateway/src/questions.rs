//! Calls that wait for approval (B9).

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_mcp::inventory::describe::without_server;
use openclaw_protocol::approvals::published::{Requested, Resolved};
use openclaw_protocol::approvals::{
    AlwaysChoice, Approval as Asked, ApprovalKind, Decision, ResolvedEvent, ResolvedReason,
    Severity,
};
use openclaw_protocol::{ErrorShape, names};
use openclaw_tools::{
    ApprovalAnswer, ApprovalExtent, ApprovalReason, ApprovalRequest, Approver, GrantRule,
    ToolEffect,
};

use crate::callers::Connected;
use crate::gateway::{Gateway, now_ms};
use crate::pending_questions::PendingQuestions;
use crate::question_subjects::QuestionSubject;
use crate::turn_events::TurnEvents;

/// How long a question stays open when all approvers have disconnected: a client may reconnect.
const RETURN: Duration = Duration::from_secs(5);

/// All approvers have left.
struct NoApprover;

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionDecision {
    pub(crate) decision: Decision,
    /// For `AllowAlways`: the index of the chosen entry of `always`.
    pub(crate) choice: usize,
    /// For `Deny`: the user's words to the model.
    pub(crate) instead: Option<String>,
}

impl From<Decision> for QuestionDecision {
    fn from(decision: Decision) -> Self {
        Self { decision, choice: 0, instead: None }
    }
}

/// Calls that wait for a decision.
pub(crate) type Questions = PendingQuestions<Asked, QuestionDecision>;

impl Questions {
    /// Records a decision.
    pub(crate) fn decide(&self, id: &str, decided: QuestionDecision) -> Result<(), ErrorShape> {
        self.answer(id, |asked| {
            if !asked.allowed_decisions.contains(&decided.decision) {
                let words = "decision not allowed; see `allowedDecisions`";
                return Err(ErrorShape::invalid(words));
            }
            if decided.choice > 0 && decided.choice >= asked.always.len() {
                return Err(ErrorShape::invalid("no such entry of `always`"));
            }
            Ok(decided)
        })
    }
}

/// Asks the connected callers, for one turn.
#[derive(Debug)]
pub(crate) struct CallerApprover {
    pub(crate) gateway: Weak<Gateway>,
    pub(crate) agent: String,
    pub(crate) run: String,
    pub(crate) patience: Duration,
    pub(crate) turn_events: Arc<TurnEvents>,
}

impl Approver for CallerApprover {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            match self.gateway.upgrade() {
                Some(gateway) => self.ask_callers(&gateway, question).await,
                None => ApprovalAnswer::Unanswered,
            }
        })
    }
}

impl CallerApprover {
    async fn ask_callers(
        &self,
        gateway: &Arc<Gateway>,
        question: ApprovalRequest<'_>,
    ) -> ApprovalAnswer {
        let asked = self.words(gateway, question);
        let id = asked.id.clone();
        // Register first: the answer may arrive immediately.
        let answered = gateway.questions.open(id.clone(), asked.clone());
        let subject = QuestionSubject {
            agent: self.agent.clone(),
            session: question.session.map(ToOwned::to_owned),
            tool: question.tool.clone(),
            covered_by: question.always.iter().map(|option| option.grant.clone()).collect(),
        };
        gateway.question_subjects.open(&id, subject);
        let mut pending = PendingQuestion::of(gateway, &asked);
        if !pending.is_told(&asked) {
            return ApprovalAnswer::Unanswered;
        }
        self.turn_events.approval_requested(&asked);
        let answered = async {
            tokio::select! {
                biased;
                decision = answered => Ok(decision),
                () = pending.undecided() => Err(NoApprover),
            }
        };
        let answered = tokio::time::timeout(self.patience, answered).await;
        let is_passed = matches!(answered, Ok(Err(NoApprover))) && gateway.questions.is_passed(&id);
        match answered.unwrap_or(Err(NoApprover)) {
            Ok(Ok(QuestionDecision { decision, choice, instead })) => {
                (pending.reason, pending.decision) = (ResolvedReason::User, Some(decision));
                let chosen = question.always.get(choice).map(|option| option.grant.clone());
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
                pending.reason = ResolvedReason::Expired;
                if is_passed { ApprovalAnswer::NotAsked } else { ApprovalAnswer::Unanswered }
            }
        }
    }

    fn words(&self, gateway: &Gateway, question: ApprovalRequest<'_>) -> Asked {
        let number = gateway.questions.number();
        let tool = question.tool;
        let severity = match (question.why, tool.effect) {
            (ApprovalReason::Changed | ApprovalReason::Unlisted, _)
            | (_, ToolEffect::Destructive) => Severity::Critical,
            (_, ToolEffect::ReadOnly) => Severity::Info,
            _ => Severity::Warning,
        };
        let mut allowed_decisions = vec![Decision::AllowOnce];
        if !question.always.is_empty() {
            allowed_decisions.push(Decision::AllowAlways);
        }
        allowed_decisions.push(Decision::Deny);
        let patience = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        Asked {
            id: format!("{}-{number}", self.run),
            kind: ApprovalKind::Call,
            agent_id: Some(self.agent.clone()),
            session_key: question.session.map(ToOwned::to_owned),
            run_id: Some(self.run.clone()),
            tool: tool.name.to_string(),
            server: None,
            title: question.title(),
            // The tool's name and the choices name the server already.
            description: Some(question.description(without_server(&tool.description))),
            severity,
            args: Some(question.arguments.to_owned()),
            allowed_decisions,
            always: question
                .always
                .iter()
                .map(|option| AlwaysChoice {
                    words: option.words.clone(),
                    for_session: matches!(option.grant, GrantRule::Host(_)),
                })
                .collect(),
            changes: question.shown_changes(without_server(&tool.description)),
            whole: gateway.shows_questions(),
            created_at_ms: now_ms(),
            expires_at_ms: now_ms().saturating_add(patience),
        }
    }
}

/// A pending question. Dropping it closes the question and notifies the approvers.
pub(crate) struct PendingQuestion<'a> {
    gateway: &'a Gateway,
    id: String,
    session: Option<String>,
    pub(crate) reason: ResolvedReason,
    pub(crate) decision: Option<Decision>,
}

impl<'a> PendingQuestion<'a> {
    /// The question must be open.
    pub(crate) fn of(gateway: &'a Gateway, asked: &Asked) -> Self {
        let (id, session) = (asked.id.clone(), asked.session_key.clone());
        Self { gateway, id, session, reason: ResolvedReason::Cancelled, decision: None }
    }

    /// Sends the question to the approvers. Returns whether there is any.
    pub(crate) fn is_told(&self, asked: &Asked) -> bool {
        let session = self.session.as_deref();
        let callers = &self.gateway.callers;
        let published = Requested::from(asked);
        callers.send_to_approvers(session, names::PLUGIN_APPROVAL_REQUESTED, &published);
        callers.send_to_approvers(session, names::APPROVAL_REQUESTED, asked) > 0
    }

    /// Waits until no approver is left that can decide.
    pub(crate) async fn undecided(&self) {
        let Self { gateway, id, session, .. } = self;
        let decides = |caller: &Connected| {
            caller.decides_in(session.as_deref()) && !gateway.questions.has_passed(id, caller.id)
        };
        // One that cannot decide will not come back to do so.
        let wait = || if gateway.questions.is_passed(id) { Duration::ZERO } else { RETURN };
        gateway.callers.without_deciders(decides, wait).await;
    }
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        self.gateway.questions.close(&self.id);
        self.gateway.question_subjects.close(&self.id);
        let (id, decision, reason) = (std::mem::take(&mut self.id), self.decision, self.reason);
        let (callers, session) = (&self.gateway.callers, self.session.as_deref());
        let published = Resolved { id: id.clone(), decision, ts: now_ms() };
        callers.send_to_approvers(session, names::PLUGIN_APPROVAL_RESOLVED, &published);
        let event = ResolvedEvent { id, decision, reason };
        callers.send_to_approvers(session, names::APPROVAL_RESOLVED, &event);
    }
}
