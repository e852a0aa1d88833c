//! Elicitations during a turn or a call: prompts the user for the answers (T11).

use openclaw_mcp::connection::client::ElicitationAnswer;
use openclaw_protocol::Surface;
use openclaw_protocol::mcp::elicitation::Elicitation;

use super::editor::{Ask, Editor, Typed};
use crate::commands::inquiry::{Inquiry, Next, Responded, respond};
use crate::commands::talk::View;
use crate::output::{FAINT, Output};
use crate::signals::{SignalAction, Signals};

/// The maximum number of times that a form is filled in, if the gateway rejects it.
const MAX_FORMS: usize = 3;

/// The result of an elicitation.
pub(super) enum ElicitationResult {
    /// It was answered, or is settled; continue.
    On,
    /// A signal, or Ctrl-C, that cancels the turn or the call.
    Signal(SignalAction),
}

/// The input and output of the dialogue.
pub(super) struct ElicitationDialogue<'a> {
    pub(super) surface: &'a dyn Surface,
    pub(super) editor: &'a mut Editor,
    pub(super) view: &'a mut View,
    pub(super) signals: &'a mut Signals,
    pub(super) output: &'a mut Output,
}

/// The result of a prompt for one line.
enum LineInput {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    Signal(SignalAction),
    /// No answer is needed any more.
    Settled,
}

impl ElicitationDialogue<'_> {
    /// Prompts the user for an elicitation. `settled` resolves when no answer is needed any more.
    pub(super) async fn lead(
        &mut self,
        elicitation: &Elicitation,
        settled: impl Future<Output = ()>,
    ) -> ElicitationResult {
        let mut settled = std::pin::pin!(settled);
        for _ in 0..MAX_FORMS {
            let inquiry = Inquiry::of(elicitation);
            let (answer, then) = match self.fill_in(inquiry, settled.as_mut()).await {
                Ok(answer) => (answer, ElicitationResult::On),
                Err(LineInput::Interrupt) => {
                    (ElicitationAnswer::Cancel, ElicitationResult::Signal(SignalAction::Interrupt))
                }
                // The chat or the turn ends, so the answer is not needed.
                Err(LineInput::Signal(signal)) => return ElicitationResult::Signal(signal),
                Err(LineInput::End | LineInput::Line(_)) => {
                    (ElicitationAnswer::Cancel, ElicitationResult::On)
                }
                Err(LineInput::Settled) => {
                    let words = format!("{FAINT}the question was withdrawn{FAINT:#}");
                    self.view.line(&words, self.output);
                    return ElicitationResult::On;
                }
            };
            if self.respond(&elicitation.id, answer).await {
                return then;
            }
        }
        self.respond(&elicitation.id, ElicitationAnswer::Cancel).await;
        ElicitationResult::On
    }

    /// Prompts for one field after another. The number of fields and of attempts is bounded.
    async fn fill_in(
        &mut self,
        mut inquiry: Inquiry,
        mut settled: impl Future<Output = ()> + Unpin,
    ) -> Result<ElicitationAnswer, LineInput> {
        for line in inquiry.introduction() {
            self.view.line(line, self.output);
        }
        loop {
            let line = match self.ask(inquiry.question(), &mut settled).await {
                LineInput::Line(line) => line,
                other => return Err(other),
            };
            match inquiry.typed(&line) {
                Next::Ask => {}
                Next::Again(why) => self.view.line(&format!("    {why}"), self.output),
                Next::Done(answer) => return Ok(answer),
            }
        }
    }

    async fn ask(&mut self, question: String, settled: impl Future<Output = ()>) -> LineInput {
        self.editor.begin(Ask::Choice(question));
        tokio::select! {
            biased;
            typed = self.editor.typed() => match typed {
                Typed::Line(line) => LineInput::Line(line),
                Typed::Interrupt => LineInput::Interrupt,
                Typed::End | Typed::GivenUp | Typed::Failed(_) => LineInput::End,
            },
            signal = self.signals.next() => {
                self.editor.give_up().await;
                LineInput::Signal(signal)
            }
            () = settled => {
                self.editor.give_up().await;
                LineInput::Settled
            }
        }
    }

    /// Sends the answer. Returns whether the elicitation is done; a rejected answer is reported,
    /// and can be given again.
    async fn respond(&mut self, id: &str, answer: ElicitationAnswer) -> bool {
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
