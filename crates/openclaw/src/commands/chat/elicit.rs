//! A server wants to know something in the middle of a turn or a call: somebody is led through it (T11).

use openclaw_mcp::connection::client::ElicitationAnswer;
use openclaw_protocol::Surface;
use openclaw_protocol::mcp::elicitation::Elicitation;

use super::editor::{Ask, Editor, Typed};
use crate::commands::inquiry::{Inquiry, Next, Responded, respond};
use crate::commands::talk::View;
use crate::output::{FAINT, Output};
use crate::signals::{Signals, Wish};

/// How often a form may be filled in anew that did not fit as a whole.
const MAX_FORMS: usize = 3;

/// What came of it.
pub(super) enum Led {
    /// It was answered, or needs no answer any more.
    On,
    /// Somebody wants to end what it was asked for.
    Wish(Wish),
}

/// Where it is shown, and what is typed.
pub(super) struct Desk<'a> {
    pub(super) surface: &'a dyn Surface,
    pub(super) editor: &'a mut Editor,
    pub(super) view: &'a mut View,
    pub(super) signals: &'a mut Signals,
    pub(super) output: &'a mut Output,
}

/// What came of one line that was asked for.
enum LineInput {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    Wish(Wish),
    /// It needs no answer any more.
    Settled,
}

impl Desk<'_> {
    /// Leads somebody through a question. `settled` ends when it needs no answer any more.
    pub(super) async fn lead(
        &mut self,
        elicitation: &Elicitation,
        settled: impl Future<Output = ()>,
    ) -> Led {
        let mut settled = std::pin::pin!(settled);
        for _ in 0..MAX_FORMS {
            let inquiry = Inquiry::of(elicitation);
            let (answer, then) = match self.fill_in(inquiry, settled.as_mut()).await {
                Ok(answer) => (answer, Led::On),
                Err(LineInput::Interrupt) => {
                    (ElicitationAnswer::Cancel, Led::Wish(Wish::Interrupt))
                }
                // Who leaves goes from the gateway, too: nobody waits for an answer.
                Err(LineInput::Wish(wish)) => return Led::Wish(wish),
                Err(LineInput::End | LineInput::Line(_)) => (ElicitationAnswer::Cancel, Led::On),
                Err(LineInput::Settled) => {
                    let words = format!("{FAINT}the question was withdrawn{FAINT:#}");
                    self.view.line(&words, self.output);
                    return Led::On;
                }
            };
            if self.respond(&elicitation.id, answer).await {
                return then;
            }
        }
        self.respond(&elicitation.id, ElicitationAnswer::Cancel).await;
        Led::On
    }

    /// Asks question after question. Each is asked a bounded number of times, and their number is bounded.
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
            wish = self.signals.next() => {
                self.editor.give_up().await;
                LineInput::Wish(wish)
            }
            () = settled => {
                self.editor.give_up().await;
                LineInput::Settled
            }
        }
    }

    /// Tells the gateway; whether that was all. What does not fit is told, and can be filled in anew.
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
