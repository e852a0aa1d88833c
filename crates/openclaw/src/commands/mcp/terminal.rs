//! Prompts the user for requests of servers, on stderr and stdin (T11).

use std::sync::Arc;

use openclaw_mcp_client::host::ElicitationAnswer;
use openclaw_protocol::approvals::Approval;
use openclaw_protocol::mcp::elicitation::Elicitation;
use tokio::sync::Mutex;

use super::screen::Screen;
use crate::commands::elicitation::{ElicitationDialogue, Next, is_yes};
use crate::commands::talk::InputLines;
use crate::commands::talk::approve::{ApprovalPrompt, TypedChoice, UserDecision};
use crate::prompt::{OpenQuestion, say};

/// The width of a sampling request, and the maximum number of times that it is asked.
const WIDTH: u16 = 80;
const MAX_TRIES: usize = 3;

/// The terminal of the user. Clones share it.
#[derive(Clone)]
pub(super) struct Terminal {
    screen: Screen,
    /// The lines of stdin, once there was a prompt; locked for the time of a prompt.
    typed: Arc<Mutex<Option<InputLines>>>,
}

/// Keeps the status lines erased until it is dropped.
struct Asking<'a>(&'a Screen);

impl<'a> Asking<'a> {
    fn begin(screen: &'a Screen) -> Self {
        screen.begin_asking();
        Self(screen)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.end_asking();
    }
}

impl Terminal {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen, typed: Arc::default() }
    }

    /// Asks a yes-or-no question; no answer means no.
    pub(super) async fn confirm(&self, question: &str) -> bool {
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        let answer = answer_to(&format!("{question} [y/N] "), &mut typed).await;
        answer.is_some_and(|answer| is_yes(&answer))
    }

    /// Asks a yes-or-no question; an empty line means yes, the end of stdin means no.
    pub(super) async fn agree(&self, question: &str) -> bool {
        let answer = self.line(&format!("{question} [Y/n] ")).await;
        answer.is_some_and(|answer| answer.trim().is_empty() || is_yes(&answer))
    }

    /// Asks for a line; `None` at the end of stdin. Cancel-safe.
    pub(super) async fn line(&self, question: &str) -> Option<String> {
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        answer_to(question, &mut typed).await
    }

    /// Asks whether a server may use the agent's model; no answer means no. Cancel-safe.
    pub(super) async fn decide(&self, approval: &Approval) -> UserDecision {
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        let mut request = ApprovalPrompt::new(approval, WIDTH);
        say(&format!("\n{}\n", request.lines().join("\n")));
        for _ in 0..MAX_TRIES {
            let line = answer_to(&format!("  {} ", request.choices()), &mut typed).await;
            let Some(line) = line else { break };
            match request.meaning(&line) {
                Some(TypedChoice::Decision(decision)) => return decision,
                Some(TypedChoice::ShowAll) => {
                    request.show_all();
                    say(&format!("{}\n", request.lines().join("\n")));
                }
                None => say(&format!("{}\n", request.wrong_answer())),
            }
        }
        UserDecision::DENY
    }

    /// Prompts the user for an elicitation. Cancel-safe.
    pub(super) async fn answer(&self, question: &Elicitation) -> ElicitationAnswer {
        // One at a time: two servers may elicit concurrently.
        let mut typed = self.typed.lock().await;
        let _asking = Asking::begin(&self.screen);
        let mut dialogue = ElicitationDialogue::of(question);
        say(&format!("\n{}\n", dialogue.introduction().join("\n")));
        // The number of fields and of attempts for each is bounded.
        loop {
            let line = answer_to(&format!("  {} ", dialogue.question()), &mut typed).await;
            let Some(line) = line else { return ElicitationAnswer::Cancel };
            match dialogue.typed(&line) {
                Next::Ask => {}
                Next::Again(why) => say(&format!("    {why}\n")),
                Next::Done(answer) => return answer,
            }
        }
    }
}

/// Shows a prompt, and waits for the next line; `None` at the end of stdin. Input typed before the
/// prompt is discarded. Cancel-safe: a line that arrives later is dropped.
async fn answer_to(question: &str, typed: &mut Option<InputLines>) -> Option<String> {
    let typed = typed.get_or_insert_with(InputLines::of_stdin);
    // Before the prompt is shown, so that a quick answer is not discarded.
    typed.forget();
    say(question);
    let open = OpenQuestion::new();
    let line = typed.next().await.ok().flatten();
    if line.is_some() {
        open.answered();
    }
    line
}
