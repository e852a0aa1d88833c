//! Asks the user to approve a sampling request: sent to the callers that approve calls, as an approval
//! of its own kind.

use std::time::Duration;

use openclaw_content::{Untrusted, clean_line, excerpt};
use openclaw_mcp_client::host::PATIENCE;
use openclaw_protocol::approvals::{AlwaysChoice, Approval, ApprovalKind, Decision, Severity};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::allowed::Allowed;
use super::context::SamplingContext;
use super::params::{Params, SampledMessage, SamplingPart, SamplingResult};
use super::refusal::SamplingRefusal;
use super::{METHOD, model};
use crate::approvals::PendingApprovals;
use crate::clock::now_ms;

/// Maximum number of sampling requests waiting for approval.
const MAX_WAITING: usize = 8;
/// Maximum characters of all text in a request that are shown.
const MAX_SHOWN: usize = 64 * 1024;
/// The engine times out this much later, so that the timeout is reported here first.
const MARGIN: Duration = Duration::from_secs(5);

/// Asks the connected approvers. Dropping the future withdraws the request.
pub(super) async fn ask(
    approvals: &PendingApprovals,
    allowed: &Allowed,
    context: &SamplingContext,
    params: &Params,
) -> Result<(), SamplingRefusal> {
    let waiting = approvals.list();
    if waiting.iter().filter(|it| it.kind == ApprovalKind::Sampling).count() >= MAX_WAITING {
        return Err(SamplingRefusal::TooManyWait);
    }
    let timeout = context.agent.config.approval.timeout.min(PATIENCE.saturating_sub(MARGIN));
    let approval = approval(approvals, context, params, timeout).await;
    // Register first: the answer may arrive immediately.
    let (mut pending, decided) = approvals.open(&approval);
    if !pending.send(&approval) {
        return Err(SamplingRefusal::Unanswered);
    }
    let answered = async {
        tokio::select! {
            biased;
            decided = decided => decided.ok().map(|decided| decided.decision),
            () = pending.undecided() => None,
        }
    };
    let Ok(decision) = tokio::time::timeout(timeout, answered).await else {
        pending.expired();
        return Err(SamplingRefusal::Unanswered);
    };
    let decision = decision.ok_or(SamplingRefusal::Unanswered)?;
    pending.decided(decision);
    match decision {
        Decision::AllowOnce => Ok(()),
        Decision::AllowAlways => {
            allowed.add(context);
            allow_others(approvals, context, &approval.id);
            Ok(())
        }
        Decision::Deny => Err(SamplingRefusal::Rejected),
    }
}

/// Answers the server's other pending requests when it was allowed permanently.
fn allow_others(approvals: &PendingApprovals, context: &SamplingContext, answered: &str) {
    let is_other = |it: &Approval| {
        it.kind == ApprovalKind::Sampling
            && it.id != answered
            && it.server.as_deref() == Some(context.server.as_str())
            && it.agent_id.as_deref() == Some(context.agent_id())
    };
    for other in approvals.list().into_iter().filter(is_other) {
        // It may have been answered meanwhile.
        let _ = approvals.decide(&other.id, Decision::AllowOnce.into());
    }
}

/// The request, with everything the server wants to send, sanitized.
async fn approval(
    approvals: &PendingApprovals,
    context: &SamplingContext,
    params: &Params,
    timeout: Duration,
) -> Approval {
    let (server, now) = (&context.server, now_ms());
    let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    Approval {
        id: format!("sampling-{server}-{now}-{}", approvals.number()),
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
                approvals.process_name()
            ),
            for_session: false,
        }],
        changes: Vec::new(),
        whole: approvals.shown_in_full(),
        created_at_ms: now,
        expires_at_ms: now.saturating_add(timeout),
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
