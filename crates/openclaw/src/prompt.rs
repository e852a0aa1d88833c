//! Reads a line that answers a question on the terminal. Blocks: for commands that do not handle
//! signals yet.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use crate::error::{CommandError, Context as _};
use crate::typed_ahead;

/// The maximum length of an answer, in bytes.
const MAX_ANSWER: u64 = 16 * 1024;

/// Asks a question, and returns the answer without surrounding spaces. What was typed before is
/// discarded.
///
/// # Errors
/// [`CommandError::Interrupted`] at the end of stdin.
pub(crate) fn line(question: &str) -> Result<String, CommandError> {
    typed_ahead::forget();
    let mut stderr = io::stderr();
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let mut answer = String::new();
    let open = OpenQuestion::new();
    let read = io::stdin().lock().take(MAX_ANSWER).read_line(&mut answer);
    match read.context("cannot read the answer")? {
        0 => Err(CommandError::Interrupted),
        _ => {
            open.answered();
            Ok(answer.trim().to_owned())
        }
    }
}

/// Shows a text beside a question, on stderr. Nothing can be done if the terminal is gone.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// A question without an answer yet. If it never gets one, because of Ctrl-C or Ctrl-D, its line is
/// ended: what follows, such as the prompt of the shell, begins a new one.
#[must_use]
pub(crate) struct OpenQuestion {
    is_answered: bool,
}

impl OpenQuestion {
    pub(crate) fn new() -> Self {
        Self { is_answered: false }
    }

    /// The line was ended by the user.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if !self.is_answered && io::stderr().is_terminal() {
            // Nothing else can be done if the terminal is gone.
            let _ = io::stderr().write_all(b"\n");
        }
    }
}
