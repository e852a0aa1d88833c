//! A question to the user in the middle of a conversation: an approval, or an elicitation of a
//! server. It may belong to a turn of another client, whose session is then named.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::Surface;
use openclaw_protocol::approvals::Approval;
use openclaw_protocol::mcp::elicitation::Elicitation;

use super::editor::{Ask, Editor, Typed};
use crate::commands::talk::TurnOutput;
use crate::output::Output;
use crate::signals::{SignalAction, Signals};
use openclaw_terminal::style::FAINT;

/// The maximum length of a session key.
const KEY_CHARS: usize = 120;

/// A question of the gateway.
#[derive(Debug)]
pub(super) enum GatewayQuestion {
    Approval(Box<Approval>),
    Elicitation(Box<Elicitation>),
}

impl GatewayQuestion {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Approval(approval) => &approval.id,
            Self::Elicitation(elicitation) => &elicitation.id,
        }
    }

    /// Returns the session to name: `None` if the question concerns this one, or none.
    pub(super) fn session_other_than(&self, session: &str) -> Option<&str> {
        match self {
            Self::Approval(approval) => {
                approval.session_key.as_deref().filter(|key| *key != session)
            }
            Self::Elicitation(elicitation) => {
                let keys = &elicitation.session_keys;
                let is_ours = keys.iter().any(|key| key == session);
                keys.first().map(String::as_str).filter(|_| !is_ours)
            }
        }
    }
}

/// What to do after a question.
pub(super) enum AfterQuestion {
    /// It was answered, or is settled; continue.
    Continue,
    /// A signal, or Ctrl-C, that cancels the turn or the call.
    Cancel(SignalAction),
}

/// The input and output of a question.
pub(super) struct Dialogue<'a> {
    pub(super) surface: &'a dyn Surface,
    /// The session of the chat.
    pub(super) session: &'a str,
    pub(super) editor: &'a mut Editor,
    pub(super) view: &'a mut TurnOutput,
    pub(super) signals: &'a mut Signals,
    pub(super) output: &'a mut Output,
}

/// The result of a prompt for one line.
pub(super) enum LineInput {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    Signal(SignalAction),
    /// No answer is needed any more.
    Settled,
}

impl Dialogue<'_> {
    /// Prompts the user. `settled` resolves when no answer is needed any more.
    pub(super) async fn lead(
        &mut self,
        question: &GatewayQuestion,
        settled: impl Future<Output = ()>,
    ) -> AfterQuestion {
        let other = question.session_other_than(self.session);
        if let Some(key) = other {
            let key = clean_line(Untrusted::new(key), KEY_CHARS);
            self.view.line(&format!("{FAINT}· session {key} asks:{FAINT:#}"), self.output);
        }
        let after = match question {
            GatewayQuestion::Approval(approval) => self.approve(approval, settled).await,
            GatewayQuestion::Elicitation(elicitation) => self.elicit(elicitation, settled).await,
        };
        match after {
            // Ctrl-C rejects the question; the turn of another client is left alone.
            AfterQuestion::Cancel(SignalAction::Interrupt) if other.is_some() => {
                AfterQuestion::Continue
            }
            after => after,
        }
    }

    /// Prompts for one line.
    pub(super) async fn ask(
        &mut self,
        words: String,
        settled: impl Future<Output = ()>,
    ) -> LineInput {
        self.editor.begin(Ask::Choice(words));
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

    /// Says that the question needs no answer any more.
    pub(super) fn withdrawn(&mut self) {
        let words = "answered elsewhere, or withdrawn";
        self.view.line(&format!("{FAINT}· {words}{FAINT:#}"), self.output);
    }
}
