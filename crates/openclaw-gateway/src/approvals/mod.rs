//! Calls and sampling requests that wait for the approval of a user (B9), and the approvals for later
//! calls (B17).

mod approver;
mod rules;
mod subjects;

pub(crate) use approver::CallerApprover;
pub(crate) use rules::ApprovalRules;

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::approvals::published::{Requested, Resolved};
use openclaw_protocol::approvals::{Approval, Decision, ResolvedEvent, ResolvedReason};
use tokio::sync::oneshot;

use crate::callers::{Callers, Connected};
use crate::clock::now_ms;
use crate::pending_requests::OpenRequests;
use subjects::ApprovalSubjects;

/// How long a request stays open when all approvers have disconnected: a client may reconnect.
const RETURN: Duration = Duration::from_secs(5);

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalDecision {
    pub(crate) decision: Decision,
    /// For `AllowAlways`: the index of the chosen entry of `always`.
    pub(crate) choice: usize,
    /// For `Deny`: the user's words to the model.
    pub(crate) instead: Option<String>,
}

impl From<Decision> for ApprovalDecision {
    fn from(decision: Decision) -> Self {
        Self { decision, choice: 0, instead: None }
    }
}

/// What waits for approval.
#[derive(Debug)]
pub(crate) struct PendingApprovals {
    pending: OpenRequests<Approval, ApprovalDecision>,
    subjects: ApprovalSubjects,
    callers: Arc<Callers>,
    /// Whether other processes can ask this one.
    is_served: bool,
}

impl PendingApprovals {
    pub(crate) fn new(callers: Arc<Callers>, is_served: bool) -> Self {
        Self {
            pending: OpenRequests::default(),
            subjects: ApprovalSubjects::default(),
            callers,
            is_served,
        }
    }

    /// The pending approvals, oldest first.
    pub(crate) fn list(&self) -> Vec<Approval> {
        let mut approvals = self.pending.list();
        approvals.sort_by_key(|it| it.created_at_ms);
        approvals
    }

    /// Number of pending approvals.
    pub(crate) fn count(&self) -> usize {
        self.pending.count()
    }

    /// Returns a unique number, for an id.
    pub(crate) fn number(&self) -> u64 {
        self.pending.number()
    }

    /// Where all of a pending approval can be read, if other processes can ask this one.
    pub(crate) fn shown_in_full(&self) -> Option<String> {
        self.is_served.then(|| "`openclaw approvals show` on the machine of the gateway".to_owned())
    }

    /// The name of the process for users: what is not stored is kept until it exits.
    pub(crate) fn process_name(&self) -> &'static str {
        if self.is_served { "the gateway" } else { "openclaw" }
    }

    /// Adds a request, which can be decided from now on.
    pub(crate) fn open(
        &self,
        approval: &Approval,
    ) -> (PendingApproval<'_>, oneshot::Receiver<ApprovalDecision>) {
        let decided = self.pending.open(approval.id.clone(), approval.clone());
        let pending = PendingApproval {
            approvals: self,
            id: approval.id.clone(),
            session: approval.session_key.clone(),
            reason: ResolvedReason::Cancelled,
            decision: None,
        };
        (pending, decided)
    }

    /// Records a decision.
    pub(crate) fn decide(&self, id: &str, decided: ApprovalDecision) -> Result<(), ErrorShape> {
        self.pending.answer(id, |asked| {
            if !asked.allowed_decisions.contains(&decided.decision) {
                let message = "decision not allowed; see `allowedDecisions`";
                return Err(ErrorShape::invalid(message));
            }
            if decided.choice > 0 && decided.choice >= asked.always.len() {
                return Err(ErrorShape::invalid("no such entry of `always`"));
            }
            Ok(decided)
        })
    }

    /// Like [`decide`](Self::decide). An approval for later calls is also that of the pending calls that
    /// it covers.
    pub(crate) fn decide_with_covered(
        &self,
        id: &str,
        decided: ApprovalDecision,
    ) -> Result<(), ErrorShape> {
        let ApprovalDecision { decision, choice, .. } = decided;
        // Looked up first: once decided, the request is closed.
        let others = match decision {
            Decision::AllowAlways => self.subjects.others(id, choice),
            Decision::AllowOnce | Decision::Deny => Vec::new(),
        };
        self.decide(id, decided)?;
        for (other, choice) in others {
            // A request that requires an approval per call does not offer this decision and stays open.
            let _ = self.decide(&other, ApprovalDecision { choice, ..decision.into() });
        }
        Ok(())
    }

    /// Records that a caller cannot decide.
    pub(crate) fn pass(&self, id: &str, caller: u64) -> Result<(), ErrorShape> {
        self.pending.pass(id, caller)?;
        self.callers.changed();
        Ok(())
    }
}

/// A pending approval. Dropping it closes the request and notifies the approvers.
pub(crate) struct PendingApproval<'a> {
    approvals: &'a PendingApprovals,
    id: String,
    session: Option<String>,
    reason: ResolvedReason,
    decision: Option<Decision>,
}

impl PendingApproval<'_> {
    /// Sends the request to the approvers. Returns whether there is any.
    pub(crate) fn send(&self, approval: &Approval) -> bool {
        let session = self.session.as_deref();
        let callers = &self.approvals.callers;
        let published = Requested::from(approval);
        callers.send_to_approvers(session, published);
        callers.send_to_approvers(session, approval.clone()) > 0
    }

    /// Waits until no approver is left that can decide.
    pub(crate) async fn undecided(&self) {
        let Self { approvals: PendingApprovals { pending, callers, .. }, id, session, .. } = self;
        let decides = |caller: &Connected| {
            caller.decides_in(session.as_deref()) && !pending.has_passed(id, caller.id())
        };
        // One that cannot decide will not come back to do so.
        let wait = || if pending.is_passed(id) { Duration::ZERO } else { RETURN };
        callers.without_deciders(decides, wait).await;
    }

    /// Whether an approver has said that it cannot decide.
    fn is_passed(&self) -> bool {
        self.approvals.pending.is_passed(&self.id)
    }

    /// Sets what the approvers are told about its end.
    pub(crate) fn decided(&mut self, decision: Decision) {
        self.reason = ResolvedReason::User;
        self.decision = Some(decision);
    }

    /// Like [`decided`](Self::decided), if no approver has decided in time.
    pub(crate) fn expired(&mut self) {
        self.reason = ResolvedReason::Expired;
    }
}

impl Drop for PendingApproval<'_> {
    fn drop(&mut self) {
        let PendingApprovals { pending, subjects, callers, .. } = self.approvals;
        pending.close(&self.id);
        subjects.close(&self.id);
        let id = std::mem::take(&mut self.id);
        let session = self.session.as_deref();
        let published = Resolved { id: id.clone(), decision: self.decision, ts: now_ms() };
        callers.send_to_approvers(session, published);
        let event = ResolvedEvent { id, decision: self.decision, reason: self.reason };
        callers.send_to_approvers(session, event);
    }
}
