//! Elicitations during a turn or a call: prompts the user for the answers (T11).

use openclaw_mcp_client::host::ElicitationAnswer;
use openclaw_protocol::mcp::elicitation::Elicitation;

use super::dialogue::{AfterQuestion, Dialogue, LineInput};
use crate::commands::elicitation::{ElicitationDialogue, Next, Responded, respond};
use crate::signals::SignalAction;

/// The maximum number of times that a form is filled in, if the gateway rejects it.
const MAX_FORMS: usize = 3;

impl Dialogue<'_> {
    /// Prompts the user for an elicitation. `settled` resolves when no answer is needed any more.
    pub(super) async fn elicit(
        &mut self,
        elicitation: &Elicitation,
        settled: impl Future<Output = ()>,
    ) -> AfterQuestion {
        let mut settled = std::pin::pin!(settled);
        for _ in 0..MAX_FORMS {
            let dialogue = ElicitationDialogue::of(elicitation);
            let (answer, then) = match self.fill_in(dialogue, settled.as_mut()).await {
                Ok(answer) => (answer, AfterQuestion::Continue),
                Err(LineInput::Interrupt) => {
                    (ElicitationAnswer::Cancel, AfterQuestion::Cancel(SignalAction::Interrupt))
                }
                // The chat or the turn ends, so the answer is not needed.
                Err(LineInput::Signal(signal)) => return AfterQuestion::Cancel(signal),
                Err(LineInput::End | LineInput::Line(_)) => {
                    (ElicitationAnswer::Cancel, AfterQuestion::Continue)
                }
                Err(LineInput::Settled) => {
                    self.withdrawn();
                    return AfterQuestion::Continue;
                }
            };
            if self.respond_to_server(&elicitation.id, answer).await {
                return then;
            }
        }
        self.respond_to_server(&elicitation.id, ElicitationAnswer::Cancel).await;
        AfterQuestion::Continue
    }

    /// Prompts for one field after another. The number of fields and of attempts is bounded.
    async fn fill_in(
        &mut self,
        mut dialogue: ElicitationDialogue,
        mut settled: impl Future<Output = ()> + Unpin,
    ) -> Result<ElicitationAnswer, LineInput> {
        for line in dialogue.introduction() {
            self.view.line(line, self.output);
        }
        loop {
            let line = match self.ask(dialogue.question(), &mut settled).await {
                LineInput::Line(line) => line,
                other => return Err(other),
            };
            match dialogue.typed(&line) {
                Next::Ask => {}
                Next::Again(why) => self.view.line(&format!("    {why}"), self.output),
                Next::Done(answer) => return Ok(answer),
            }
        }
    }

    /// Sends the answer. Returns whether the elicitation is done; a rejected answer is reported,
    /// and can be given again.
    async fn respond_to_server(&mut self, id: &str, answer: ElicitationAnswer) -> bool {
        match respond(self.surface, id, answer).await {
            Responded::Done => true,
            Responded::Unfit(why) => {
                self.view.notice(&why, self.output);
                false
            }
            Responded::Failed(why) => {
                self.view.notice(&why, self.output);
                true
            }
        }
    }
}
