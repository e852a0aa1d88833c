//! Methods for calls that wait for approval.

use openclaw_protocol::ErrorShape;
use openclaw_protocol::approvals::{
    Decision, ListParams, ListResult, RespondParams, RespondResult,
};
use openclaw_sessions::SessionKey;

use super::RequestContext;

pub(super) fn list(
    asked: &RequestContext<'_>,
    params: ListParams,
) -> Result<ListResult, ErrorShape> {
    let ListParams { session_key, agent_id } = params;
    let session_key =
        session_key.map(|key| asked.session(&key, agent_id.as_deref())).transpose()?;
    let session_key = session_key.as_ref().map(SessionKey::as_str);
    let mut approvals = asked.gateway.questions.list();
    approvals.sort_by_key(|it| it.created_at_ms);
    approvals.retain(|it| {
        (session_key.is_none() || it.session_key.as_deref() == session_key)
            && (agent_id.is_none() || it.agent_id == agent_id)
    });
    Ok(ListResult { approvals })
}

pub(super) fn respond(
    asked: &RequestContext<'_>,
    params: RespondParams,
) -> Result<RespondResult, ErrorShape> {
    let RespondParams { id, decision } = params;
    let gateway = asked.gateway;
    // Looked up first: once answered, the question is closed.
    let others = match decision {
        Decision::AllowAlways => gateway.question_subjects.others(&id),
        Decision::AllowOnce | Decision::Deny => Vec::new(),
    };
    gateway.questions.decide(&id, decision)?;
    for other in others {
        // A question that requires an approval per call does not offer this decision and stays
        // open.
        let _ = gateway.questions.decide(&other, decision);
    }
    Ok(RespondResult { ok: true, id, decision })
}
