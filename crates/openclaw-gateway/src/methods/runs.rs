//! `agent` and `agent.wait`: messages whose answer is the response.

use std::time::Duration;

use openclaw_protocol::chat::{ChatEvent, ChatState, SendParams, SendStatus};
use openclaw_protocol::runs::{
    ACCEPTED, Payload, RunAccepted, RunAnswer, RunParams, RunResult, WaitParams, WaitResult,
};
use openclaw_protocol::sessions::ResolveParams;
use openclaw_protocol::{ErrorShape, EventReceiver, Received, keys, names};
use openclaw_sessions::SessionKey;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::{Reply, RequestContext, chat};
use crate::clock::now_ms;
use crate::sessions::usable_model;

/// Default and maximum time of `agent.wait`.
const WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Sends a message, responds that it is accepted, and waits for the end of its run. Cancelling the
/// request does not abort the run.
pub(super) async fn run(context: &RequestContext<'_>, params: RunParams) -> Reply<RunResult> {
    let key = session(context, &params).await?;
    let agent = context.services.sessions.agent_of(&key, params.agent_id.as_deref()).await?;
    let model = match (params.provider, params.model) {
        (_, None) => None,
        (Some(provider), Some(model)) if !model.contains('/') => {
            Some(format!("{provider}/{model}"))
        }
        (_, model) => model,
    };
    let model = match model.filter(|model| !model.is_empty()) {
        Some(model) => Some(usable_model(&agent, model).await?),
        None => None,
    };
    // From before the message is sent: its run may end at once.
    let events = context.caller.events();
    let timeout_ms = params.timeout.filter(|seconds| *seconds > 0);
    let sent = SendParams {
        session_key: key.to_string(),
        agent_id: params.agent_id,
        message: params.message,
        attachments: params.attachments,
        timeout_ms: timeout_ms.map(|seconds| seconds.saturating_mul(1_000)),
        idempotency_key: params.idempotency_key,
        ..SendParams::default()
    };
    let sent = chat::send_to(context, sent, model).await?;
    let run_id = sent.run_id;
    let result = |status: &str, summary: Option<String>, text: Option<String>| {
        let payloads = text.into_iter().map(|text| Payload { text }).collect();
        RunResult {
            run_id: run_id.clone(),
            session_key: key.to_string(),
            status: status.to_owned(),
            summary,
            result: Some(RunAnswer { payloads }),
        }
    };
    match sent.status {
        SendStatus::Started => {
            let accepted = RunAccepted {
                run_id: run_id.clone(),
                session_key: key.to_string(),
                agent_id: agent.config.id.to_string(),
                status: ACCEPTED.to_owned(),
                accepted_at: now_ms(),
            };
            if let (Some(early), Ok(accepted)) = (&context.early, to_raw_value(&accepted)) {
                early.send(&accepted);
            }
        }
        status => return Ok(result(name(status), None, None)),
    }
    let ended = ended(events, &run_id, key.as_str());
    let over = context.services.runs.ended(&run_id);
    let state = tokio::select! {
        biased;
        state = ended => state,
        // The event was lost.
        status = over => return Ok(result(name(status), None, None)),
    };
    Ok(match state {
        Some(ChatState::Final { message, .. }) => {
            result("ok", Some("completed".to_owned()), message.as_ref().and_then(text))
        }
        Some(ChatState::Aborted { message, stop_reason, .. }) => {
            let status =
                if stop_reason.as_deref() == Some("timeout") { "timeout" } else { "error" };
            result(status, Some("aborted".to_owned()), message.as_ref().and_then(text))
        }
        Some(ChatState::Error { error_message, .. }) => {
            let message = error_message.unwrap_or_else(|| "the run failed".to_owned());
            return Err(ErrorShape::unavailable(message));
        }
        _ => result("error", None, None),
    })
}

/// The session that is meant: by its key or its id, or the agent's main one. An unknown id is that of a
/// new session.
async fn session(context: &RequestContext<'_>, params: &RunParams) -> Reply<SessionKey> {
    let agent = params.agent_id.as_deref();
    match (&params.session_key, &params.session_id) {
        (Some(key), _) => context.session(key, agent),
        (None, None) => context.session(keys::MAIN, agent),
        (None, Some(id)) => {
            let agent_id = params.agent_id.clone();
            let session_id = Some(id.trim().to_owned()).filter(|id| !id.is_empty());
            let session_id = session_id.ok_or_else(|| ErrorShape::invalid("blank session id"))?;
            let wanted = ResolveParams {
                session_id: Some(session_id.clone()),
                agent_id,
                ..ResolveParams::default()
            };
            let key = match context.services.sessions.resolve(wanted).await?.key {
                Some(key) => key,
                None => keys::explicit(context.services.agents.id(agent)?.as_str(), &session_id),
            };
            context.session(&key, agent)
        }
    }
}

pub(super) async fn wait(context: &RequestContext<'_>, params: WaitParams) -> WaitResult {
    let WaitParams { run_id, timeout_ms } = params;
    let patience = timeout_ms.map_or(WAIT, Duration::from_millis).min(LONGEST_WAIT);
    let ended = tokio::time::timeout(patience, context.services.runs.ended(&run_id)).await;
    let status = ended.map_or("timeout", name).to_owned();
    WaitResult { run_id, status }
}

/// Waits for the last event of a run.
async fn ended(mut events: EventReceiver, run: &str, session: &str) -> Option<ChatState> {
    loop {
        let Received::Event(event) = events.next().await? else { continue };
        if event.event != names::CHAT {
            continue;
        }
        let Some(chat) = event.read::<ChatEvent>() else { continue };
        let is_end = !matches!(chat.state, ChatState::Status { .. } | ChatState::Delta { .. });
        if chat.run_id == run && chat.session_key == session && is_end {
            return Some(chat.state);
        }
    }
}

/// The text of a message in the format of the protocol.
fn text(message: &Value) -> Option<String> {
    let parts = message.get("content")?.as_array()?;
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

fn name(status: SendStatus) -> &'static str {
    match status {
        SendStatus::Started | SendStatus::InFlight => "in_flight",
        SendStatus::Ok => "ok",
        SendStatus::Timeout => "timeout",
        SendStatus::Error => "error",
    }
}
