//! Reads a line that answers a question on the terminal. Blocks: for commands that do not handle
//! signals yet.

use std::io::{self, BufRead as _, Read as _, Write as _};

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
    let read = io::stdin().lock().take(MAX_ANSWER).read_line(&mut answer);
    match read.context("cannot read the answer")? {
        0 => Err(CommandError::Interrupted),
        _ => Ok(answer.trim().to_owned()),
    }
}
