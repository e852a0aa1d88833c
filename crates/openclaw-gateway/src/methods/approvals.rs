//! Calls that wait for somebody's word.

use openclaw_protocol::approvals::{
    Decision, ListParams, ListResult, RespondParams, RespondResult,
};

use super::{Answered, Asked, give};

pub(super) fn list(asked: &Asked<'_>) -> Answered {
    let ListParams { session_key, agent_id } = asked.params()?;
    let mut approvals = asked.gateway.questions.list();
    approvals.retain(|it| {
        (session_key.is_none() || it.session_key == session_key)
            && (agent_id.is_none() || it.agent_id == agent_id)
    });
    give(&ListResult { approvals })
}

pub(super) fn respond(asked: &Asked<'_>) -> Answered {
    let RespondParams { id, decision } = asked.params()?;
    let gateway = asked.gateway;
    // Before it is answered: then it is no longer open.
    let others = match decision {
        Decision::AllowAlways => gateway.alike.others(&id),
        Decision::AllowOnce | Decision::Deny => Vec::new(),
    };
    gateway.questions.answer(&id, decision)?;
    for other in others {
        // One that wants every call to be asked about is not offered this, and stays open.
        let _ = gateway.questions.answer(&other, decision);
    }
    give(&RespondResult { ok: true, id, decision })
}
