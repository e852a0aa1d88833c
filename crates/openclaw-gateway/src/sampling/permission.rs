//! Asks the user to approve a sampling request: sent to the callers that approve calls, as a
//! question of its own kind.

use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line, excerpt};
use openclaw_mcp_client::host::PATIENCE;
use openclaw_protocol::approvals::{
    AlwaysChoice, Approval, ApprovalKind, Decision, ResolvedReason, Severity,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::context::SamplingContext;
use super::params::{Params, SampledMessage, SamplingPart, SamplingResult};
use super::refusal::SamplingRefusal;
use super::{METHOD, model};
use crate::gateway::{Gateway, now_ms};
use crate::questions::PendingQuestion;

/// Maximum number of sampling requests waiting for approval.
const MAX_WAITING: usize = 8;
/// Maximum characters of all text in a request that are shown.
const MAX_SHOWN: usize = 64 * 1024;
/// The engine times out this much later, so that the timeout is reported here first.
const MARGIN: Duration = Duration::from_secs(5);

/// Asks the connected approvers. Dropping the future withdraws the question.
pub(super) async fn ask(
    gateway: &Arc<Gateway>,
    context: &SamplingContext,
    params: &Params,
) -> Result<(), SamplingRefusal> {
    let waiting = gateway.questions.list();
    if waiting.iter().filter(|it| it.kind == ApprovalKind::Sampling).count() >= MAX_WAITING {
        return Err(SamplingRefusal::TooManyWait);
    }
    let patience = context.agent.config.approval.timeout.min(PATIENCE.saturating_sub(MARGIN));
    let asked = question(gateway, context, params, patience).await;
    let id = asked.id.clone();
    // Register first: the answer may arrive immediately.
    let answered = gateway.questions.open(id.clone(), asked.clone());
    let mut pending = PendingQuestion::of(gateway, &asked);
    if !pending.is_told(&asked) {
        return Err(SamplingRefusal::Unanswered);
    }
    let answered = async {
        tokio::select! {
            biased;
            decided = answered => decided.ok().map(|decided| decided.decision),
            () = pending.undecided() => None,
        }
    };
    let Ok(decision) = tokio::time::timeout(patience, answered).await else {
        pending.reason = ResolvedReason::Expired;
        return Err(SamplingRefusal::Unanswered);
    };
    let decision = decision.ok_or(SamplingRefusal::Unanswered)?;
    (pending.reason, pending.decision) = (ResolvedReason::User, Some(decision));
    match decision {
        Decision::AllowOnce => Ok(()),
        Decision::AllowAlways => {
            gateway.sampling.allowed.add(context);
            others_too(gateway, context, &id);
            Ok(())
        }
        Decision::Deny => Err(SamplingRefusal::Rejected),
    }
}

/// Answers the server's other pending requests when it was allowed permanently.
fn others_too(gateway: &Gateway, context: &SamplingContext, answered: &str) {
    let is_other = |it: &Approval| {
        it.kind == ApprovalKind::Sampling
            && it.id != answered
            && it.server.as_deref() == Some(context.server.as_str())
            && it.agent_id.as_deref() == Some(context.agent_id())
    };
    for other in gateway.questions.list().into_iter().filter(is_other) {
        // It may have been answered meanwhile.
        let _ = gateway.questions.decide(&other.id, Decision::AllowOnce.into());
    }
}

/// The question, with everything the server wants to send, sanitized.
async fn question(
    gateway: &Gateway,
    context: &SamplingContext,
    params: &Params,
    patience: Duration,
) -> Approval {
    let (server, now) = (&context.server, now_ms());
    let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    Approval {
        id: format!("sampling-{server}-{now}-{}", gateway.questions.number()),
        kind: ApprovalKind::Sampling,
        agent_id: Some(context.agent_id().to_owned()),
        session_key: context.session.clone(),
        run_id: None,
        tool: METHOD.to_owned(),
        server: Some(server.clone()),
        title: format!("MCP server `{server}` requests an answer from your model"),
        description: Some(
            "The text comes from the server and is untrusted; the answer is sent to the server."
                .to_owned(),
        ),
        severity: Severity::Warning,
        args: to_raw_value(&shown(context, params).await).ok(),
        allowed_decisions: vec![Decision::AllowOnce, Decision::AllowAlways, Decision::Deny],
        always: vec![AlwaysChoice {
            words: format!(
                "always allow MCP server {server} to use the model of agent {}, until {} exits",
                context.agent_id(),
                gateway.process_name()
            ),
            for_session: false,
        }],
        changes: Vec::new(),
        whole: gateway.shows_questions(),
        created_at_ms: now,
        expires_at_ms: now.saturating_add(patience),
    }
}

/// The request for display: `model`, `maxTokens`, `systemPrompt`, `messages`, `tools`.
async fn shown(context: &SamplingContext, params: &Params) -> Value {
    let mut room = CharacterBudget(MAX_SHOWN);
    let mut shown = json!({
        "model": model::first(context, params).await,
        "maxTokens": params.max_tokens.min(context.sampling.max_tokens),
    });
    if !params.hints.is_empty() {
        let hints = params.hints.iter().map(|hint| clean_line(Untrusted::new(hint), 80));
        shown["modelHints"] = hints.collect();
    }
    if let Some(prompt) = &params.system_prompt {
        shown["systemPrompt"] = room.text(prompt).into();
    }
    let message = |role: &str, text: String| json!({ "role": role, "text": text });
    let mut messages = Vec::new();
    for said in &params.messages {
        match said {
            SampledMessage::User(pieces) => messages.push(message("user", room.pieces(pieces))),
            SampledMessage::Assistant { pieces, calls } => {
                let calls = calls.iter().map(|call| format!("(calls {})", call.name));
                let text = std::iter::once(room.pieces(pieces)).chain(calls);
                let text = text.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n");
                messages.push(message("assistant", text));
            }
            SampledMessage::Results(results) => {
                let texts = results.iter().map(|SamplingResult { pieces, .. }| room.pieces(pieces));
                let text = texts.collect::<Vec<_>>().join("\n");
                messages.push(message("tool", text));
            }
        }
    }
    shown["messages"] = messages.into();
    if !params.tools.is_empty() {
        shown["tools"] = params.tools.iter().map(|tool| tool.name.as_str()).collect();
    }
    shown
}

/// Number of characters that may still be shown.
struct CharacterBudget(usize);

impl CharacterBudget {
    /// Sanitizes a text line by line. Of a long one, the beginning and the end are shown.
    fn text(&mut self, text: &Untrusted<String>) -> String {
        let text = text.as_ref().map(String::as_str).expose();
        let lines = text.lines().map(|line| clean_line(Untrusted::new(line), usize::MAX));
        let text = lines.collect::<Vec<_>>().join("\n");
        let shown = excerpt(&text, self.0);
        self.0 = self.0.saturating_sub(shown.chars().count());
        shown.into_owned()
    }

    fn pieces(&mut self, pieces: &[SamplingPart]) -> String {
        let pieces = pieces.iter().map(|piece| match piece {
            SamplingPart::Text(text) => self.text(text),
            SamplingPart::Media { mime_type, .. } => format!("({mime_type})"),
        });
        pieces.collect::<Vec<_>>().join("\n")
    }
}
