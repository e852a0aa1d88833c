//! A chat without a terminal: each line of stdin is a message, answers and calls go to stdout, all else to
//! stderr.

use super::commands::{self, Line};
use super::speak::{Spoken, speak};
use super::{Chat, invoke};
use crate::commands::talk::{Ending, Lines};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;

/// Talks until the input ends. A turn that failed is remembered, and the others go on.
pub(super) async fn run(chat: &mut Chat<'_>, signals: &mut Signals, output: &mut Output) -> Exit {
    let mut lines = Lines::of_stdin();
    let mut exit = Exit::Ok;
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            _ = signals.next() => return Exit::Interrupted,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => return exit,
            Err(error) => {
                output.problem(&format!("stdin cannot be read: {error}"), None);
                return Exit::Failed;
            }
        };
        let spoken = match commands::take(chat, &line, output).await {
            Line::Empty | Line::Done => continue,
            Line::Exit => return exit,
            Line::Call(tool, args) => {
                Box::pin(invoke::invoke(chat, tool, args, None, signals, output)).await
            }
            Line::Say(said) => Box::pin(speak(chat, said, None, signals, output)).await,
        };
        match spoken {
            Spoken::Over(Ending::Done) => {}
            // Nothing else can be said then.
            Spoken::Over(Ending::Gone) => return Exit::Unavailable,
            Spoken::Over(_) => exit = Exit::Failed,
            Spoken::Leave => return Exit::Interrupted,
        }
    }
}
