//! Methods for calls that wait for approval.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::approvals::published::{
    ExecDetails, GetParams, Requested, ResolveParams, ResolveResult,
};
use openclaw_protocol::approvals::{
    Decision, ListParams, ListResult, PassParams, PassResult, RespondParams, RespondResult,
};
use openclaw_sessions::SessionKey;

use super::{Reply, RequestContext};
use crate::approvals::{ApprovalDecision, PendingApprovals};
use crate::callers::Connected;
use crate::pending_requests::not_pending;

/// Maximum characters of the user's words to the model.
const INSTEAD: usize = 4_000;

pub(super) fn list(context: &RequestContext<'_>, params: ListParams) -> Reply<ListResult> {
    let ListParams { session_key, agent_id } = params;
    let session_key =
        session_key.map(|key| context.session(&key, agent_id.as_deref())).transpose()?;
    let session_key = session_key.as_ref().map(SessionKey::as_str);
    let mut approvals = context.services.approvals.list();
    approvals.retain(|it| {
        (session_key.is_none() || it.session_key.as_deref() == session_key)
            && (agent_id.is_none() || it.agent_id == agent_id)
    });
    Ok(ListResult { approvals })
}

pub(super) fn respond(approvals: &PendingApprovals, params: RespondParams) -> Reply<RespondResult> {
    let RespondParams { id, decision, always, instead } = params;
    if instead.is_some() && decision != Decision::Deny {
        return Err(ErrorShape::invalid("`instead` requires the decision `deny`"));
    }
    let instead = instead.map(|text| clean_line(Untrusted::new(&text), INSTEAD));
    let instead = instead.filter(|text| !text.is_empty());
    let choice = match (decision, always) {
        (Decision::AllowAlways, choice) => choice.unwrap_or(0),
        (Decision::AllowOnce | Decision::Deny, None) => 0,
        (Decision::AllowOnce | Decision::Deny, Some(_)) => {
            return Err(ErrorShape::invalid("`always` requires the decision `allow-always`"));
        }
    };
    approvals.decide_with_covered(&id, ApprovalDecision { decision, choice, instead })?;
    Ok(RespondResult { ok: true, id, decision })
}

pub(super) fn pass(
    approvals: &PendingApprovals,
    caller: &Connected,
    params: PassParams,
) -> Reply<PassResult> {
    let PassParams { id } = params;
    approvals.pass(&id, caller.id())?;
    Ok(PassResult { ok: true, id })
}

/// The pending approvals in the shape of the published schema, oldest first.
pub(super) fn published(approvals: &PendingApprovals) -> Vec<Requested> {
    approvals.list().iter().map(Requested::from).collect()
}

/// `respond`, under its published name.
pub(super) fn resolve(approvals: &PendingApprovals, params: ResolveParams) -> Reply<ResolveResult> {
    let ResolveParams { id, decision } = params;
    let pending = approvals.list();
    let shown = pending.iter().find(|it| it.id == id).map(Requested::from);
    if shown.is_some_and(|shown| !shown.request.allowed_decisions.contains(&decision)) {
        return Err(ErrorShape::invalid("decision not allowed; see `allowedDecisions`"));
    }
    let answer = RespondParams { id, decision, always: None, instead: None };
    respond(approvals, answer).map(|_| ResolveResult { ok: true })
}

pub(super) fn details(approvals: &PendingApprovals, params: &GetParams) -> Reply<ExecDetails> {
    let pending = approvals.list();
    let found = pending.iter().find(|it| it.id == params.id).map(ExecDetails::from);
    found.ok_or_else(not_pending)
}
