//! Approvals of calls by the user of a client (S6).
//!
//! A client's own user decides, if the client can ask; otherwise the agent's configured fallback
//! applies. Without the scope for approvals, the user decides about this one call at most
//! (`gateway.hubApprovals`): nothing for later, and no tool that has changed. A client that asks its
//! user before every call is asked nevertheless: whether it does cannot be known.

use futures_util::future::BoxFuture;
use openclaw_content::{QuestionText, QuestionTooLong, Untrusted, clean_line};
use openclaw_mcp::inventory::describe::without_server;
use openclaw_mcp_client::host::PATIENCE;
use openclaw_protocol::Scope;
use openclaw_tools::{ApprovalAnswer, ApprovalExtent, ApprovalReason, ApprovalRequest, Approver};
use tokio::time::timeout;

use super::client::{ApprovalRights, HubClient};
use crate::input::approval::{ApprovalChoice, CallQuestion, MAX_QUESTION};
use crate::input::{AskableClient, ask_if_able};

/// How many times their text arguments take while they are made readable.
const SHOWN: usize = 2;
/// Maximum length of a tool's name in a command, in characters.
const MAX_NAME: usize = 80;

/// Asks the user of a client, within the rights of its principal.
#[derive(Debug)]
pub(super) struct ClientApprover<'a> {
    pub(super) answers: &'a dyn AskableClient,
    pub(super) client: &'a HubClient,
}

impl ClientApprover<'_> {
    /// Says who may approve this call, if the user of the client may not.
    fn refused(&self, asked: &ApprovalRequest<'_>, rights: ApprovalRights) -> Option<String> {
        let is_changed = asked.why == ApprovalReason::Changed;
        let needed = match rights {
            ApprovalRights::OwnCallOnce if is_changed => {
                "The tool's description or schema has changed since it was first seen or approved"
            }
            ApprovalRights::All | ApprovalRights::OwnCallOnce => return None,
            ApprovalRights::Nothing => "The call needs an approval",
        };
        let scope = Scope::Approvals.name().unwrap_or_default();
        let command = self.command(asked, is_changed).unwrap_or_default();
        Some(format!(
            "{needed}, and the access token of this client has no right to approve that. Someone with \
             the scope `{scope}` has to{command}. The tool was not called."
        ))
    }

    /// Returns the command that approves a tool.
    fn command(&self, asked: &ApprovalRequest<'_>, is_changed: bool) -> Option<String> {
        let view = self.client.view()?;
        let tool = view.tool_of_model(asked.tool.name.as_str())?;
        let name = clean_line(Untrusted::new(&tool.listed().name), MAX_NAME);
        let server = tool.server().name();
        Some(match is_changed {
            true => format!(
                ": review it with `openclaw mcp tools {server} {name}`, then run \
                 `openclaw mcp call {server} {name} --approve`"
            ),
            false => format!(": run `openclaw approvals allow {}`", asked.tool.name),
        })
    }
}

impl Approver for ClientApprover<'_> {
    fn ask<'a>(&'a self, asked: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let rights = self.client.approval_rights();
            if let Some(words) = self.refused(&asked, rights) {
                return ApprovalAnswer::NotEntitled(words);
            }
            let may_last = rights == ApprovalRights::All && asked.why.can_last();
            let always = asked.always.first().filter(|_| may_last);
            // Only while the text is made, which is short then.
            let shown = asked.arguments.get().len().saturating_mul(SHOWN);
            let memory = match self.client.budget.hold(shown) {
                Ok(memory) => memory,
                Err(spent) => return ApprovalAnswer::NotEntitled(spent.to_string()),
            };
            let text = match text(&asked) {
                Ok(text) => text,
                Err(error) => {
                    tracing::warn!(tool = %asked.tool.name, %error, "the client is not asked");
                    return match self.command(&asked, true) {
                        Some(command) if asked.why == ApprovalReason::Changed => {
                            ApprovalAnswer::NotEntitled(format!(
                                "The tool's description or schema has changed, and {error}. The user \
                                 has to{command}. The tool was not called."
                            ))
                        }
                        _ => ApprovalAnswer::NotAsked,
                    };
                }
            };
            drop(memory);
            let call = CallQuestion { text, always: always.map(|always| always.words.as_str()) };
            let answer = timeout(PATIENCE, ask_if_able(self.answers, call.question())).await;
            let Ok(Ok(answer)) = answer else { return ApprovalAnswer::Unanswered };
            match (call.choice(&answer), always) {
                (ApprovalChoice::Once, _) => ApprovalAnswer::Yes(ApprovalExtent::Once),
                (ApprovalChoice::Always, Some(always)) => {
                    ApprovalAnswer::Yes(ApprovalExtent::Always(always.grant.clone()))
                }
                // The call is the client's own: it may ask again.
                (ApprovalChoice::Always, None)
                | (ApprovalChoice::Deny | ApprovalChoice::Dismissed, _) => ApprovalAnswer::No,
            }
        })
    }
}

/// What the client shows: what is asked, the difference of a changed tool, and the arguments.
fn text(asked: &ApprovalRequest<'_>) -> Result<String, QuestionTooLong> {
    let why = match asked.why {
        ApprovalReason::MayChange => "it may change something",
        ApprovalReason::EachTime => "every call needs an approval",
        ApprovalReason::Changed => "its definition has changed since it was approved",
        ApprovalReason::Unlisted => "the server does not list this URI",
    };
    let description = without_server(&asked.tool.description);
    let question = QuestionText {
        title: &format!("Allow this call of `{}`? ({why})\n{}", asked.tool.name, asked.title()),
        arguments: asked.arguments.get(),
        changes: &asked.shown_changes(description),
        description: &asked.description(description),
        whole: Some("the call, which this client has made"),
    };
    question.fit(MAX_QUESTION)
}
