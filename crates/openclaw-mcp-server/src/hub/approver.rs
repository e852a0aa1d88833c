//! Approvals of calls by the user of a client (S6).
//!
//! A client's own user decides, if the client can ask; otherwise the agent's configured fallback
//! applies. A client that asks its user before every call is asked nevertheless: whether it does
//! cannot be known.

use futures_util::future::BoxFuture;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::connection::client::PATIENCE;
use openclaw_tools::{Approval, ApprovalAnswer, ApprovalReason, ApprovalRequest, Approver};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::answers::{Answers, ELICIT, Question};

/// Maximum length of the arguments in a question, in characters.
const MAX_ARGUMENTS: usize = 1_000;
/// The answers that a user chooses from.
const ONCE: &str = "allow once";
const ALWAYS: &str = "always allow";
const NO: &str = "deny";

/// Asks the user of a client.
#[derive(Debug)]
pub(super) struct ClientApprover<'a>(pub(super) &'a dyn Answers);

impl Approver for ClientApprover<'_> {
    fn ask<'a>(&'a self, asked: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let question = question(&asked);
            if !self.0.abilities().include(&question) {
                return ApprovalAnswer::Unanswered;
            }
            match timeout(PATIENCE, self.0.ask(question)).await {
                Ok(Ok(answer)) => decision(&answer, &asked),
                Ok(Err(_)) | Err(_) => ApprovalAnswer::Unanswered,
            }
        })
    }
}

fn lasting<'a>(asked: &ApprovalRequest<'a>) -> Option<&'a openclaw_tools::AlwaysOption> {
    asked.always.first().filter(|_| asked.why.can_last())
}

fn question(asked: &ApprovalRequest<'_>) -> Question {
    let why = match asked.why {
        ApprovalReason::MayChange => "it may change something",
        ApprovalReason::EachTime => "every call needs an approval",
        ApprovalReason::Changed => "its description has changed since it was approved",
        ApprovalReason::Unlisted => "the server does not list this address",
    };
    let arguments = clean_line(Untrusted::new(asked.arguments.get()), MAX_ARGUMENTS);
    let message =
        format!("Allow this call of `{}`? ({why}) Arguments: {arguments}", asked.tool.name);
    let mut choices = vec![ONCE, NO];
    let mut schema = json!({ "type": "string", "title": "Decision" });
    if let Some(always) = lasting(asked) {
        choices.insert(1, ALWAYS);
        schema["description"] = json!(format!("{ALWAYS}: {}", always.words));
    }
    schema["enum"] = json!(choices);
    let schema =
        json!({ "type": "object", "properties": { "decision": schema }, "required": ["decision"] });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    Question { method: ELICIT, params }
}

fn decision(answer: &Value, asked: &ApprovalRequest<'_>) -> ApprovalAnswer {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return ApprovalAnswer::No;
    }
    let decision = answer.pointer("/content/decision").and_then(Value::as_str);
    match (decision, lasting(asked)) {
        (Some(ONCE), _) => ApprovalAnswer::Yes(Approval::Once),
        (Some(ALWAYS), Some(always)) => ApprovalAnswer::Yes(Approval::Always(always.grant.clone())),
        _ => ApprovalAnswer::No,
    }
}
