//! A request for approval at the prompt (B9).

use openclaw_protocol::approvals::{Approval, ApprovalKind, Decision};

use super::dialogue::{AfterQuestion, Dialogue, LineInput};
use crate::commands::talk::ShownCall;
use crate::commands::talk::approve::{self, ApprovalPrompt, TypedChoice, UserDecision};
use crate::signals::SignalAction;
use openclaw_terminal::style::FAINT;

/// The maximum number of times that one question is asked.
const MAX_TRIES: usize = 5;

impl Dialogue<'_> {
    /// Asks the user for approval of a call. `settled` resolves when no answer is needed any more.
    pub(super) async fn approve(
        &mut self,
        approval: &Approval,
        settled: impl Future<Output = ()>,
    ) -> AfterQuestion {
        let mut settled = std::pin::pin!(settled);
        let mut request = ApprovalPrompt::new(approval, self.output.width());
        self.view.lines(&request.lines(), self.output);
        let mut decided = UserDecision::DENY;
        let mut after = AfterQuestion::Continue;
        for _ in 0..MAX_TRIES {
            match self.ask(request.choices(), settled.as_mut()).await {
                LineInput::Line(line) => match request.meaning(&line) {
                    Some(TypedChoice::Decision(decision)) => decided = decision,
                    Some(TypedChoice::ShowAll) => {
                        request.show_all();
                        self.view.lines(&request.lines(), self.output);
                        continue;
                    }
                    None => {
                        self.view.line(&request.wrong_answer(), self.output);
                        continue;
                    }
                },
                LineInput::Interrupt => after = AfterQuestion::Cancel(SignalAction::Interrupt),
                LineInput::End => {}
                LineInput::Signal(signal) => return AfterQuestion::Cancel(signal),
                LineInput::Settled => {
                    self.withdrawn();
                    return AfterQuestion::Continue;
                }
            }
            break;
        }
        self.decide(approval, decided).await;
        after
    }

    async fn decide(&mut self, approval: &Approval, decided: UserDecision) {
        let decision = decided.decision;
        match approve::respond(self.surface, &approval.id, decided).await {
            Err(error) => self.view.notice(&error.to_string(), self.output),
            Ok(()) if decision == Decision::Deny => {}
            // What runs now is shown by the client whose turn it is.
            Ok(()) if approval.session_key.as_deref() != Some(self.session) => {}
            Ok(()) if approval.kind == ApprovalKind::Sampling => {
                let server = approval.server.as_deref().unwrap_or_default();
                self.view
                    .draft(&format!("… the model is answering MCP server {server}"), self.output);
            }
            Ok(()) => {
                let args = approval.args.as_ref();
                let args = args.and_then(|args| serde_json::from_str(args.get()).ok());
                let call = ShownCall { name: approval.tool.clone(), args, ..ShownCall::default() };
                if decision == Decision::AllowAlways {
                    let words = format!("  {FAINT}/approvals to list and revoke{FAINT:#}");
                    self.view.line(&words, self.output);
                }
                self.view.runs(&call, self.output);
            }
        }
    }
}
