//! A chat without a terminal: each line of stdin is a message. Answers and calls go to stdout,
//! everything else to stderr.

use super::commands::{self, TypedLine};
use super::turn::{ChatTurnEnd, run_turn};
use super::{Chat, invoke};
use crate::commands::talk::{InputLines, TurnStatus};
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;

/// Runs the chat until the end of stdin, after a first message. A failed turn sets the exit code, and the chat continues.
pub(super) async fn run(
    chat: &mut Chat<'_>,
    mut prompt: Option<String>,
    signals: &mut Signals,
    output: &mut Output,
) -> CommandResult {
    let mut lines = InputLines::of_stdin();
    let mut exit = Exit::Ok;
    loop {
        let line = match prompt.take() {
            Some(prompt) => Ok(Some(prompt)),
            None => tokio::select! {
                line = lines.next() => line,
                _ = signals.next() => return Err(CommandError::Interrupted),
            },
        };
        let Some(line) = line.context("cannot read stdin")? else { return Ok(exit) };
        let spoken = match commands::take(chat, &line, output).await {
            TypedLine::Empty | TypedLine::Done => continue,
            TypedLine::Exit => return Ok(exit),
            TypedLine::Failed => {
                exit = Exit::Failed;
                continue;
            }
            TypedLine::Choose => {
                let error = CommandError::usage("no terminal to choose a session on");
                output.error(&error.hint("use `/session KEY`; `/sessions` lists the keys"));
                exit = Exit::Failed;
                continue;
            }
            TypedLine::Call(tool, args) => {
                Box::pin(invoke::invoke(chat, tool, args, None, signals, output)).await
            }
            TypedLine::Say(said) => Box::pin(run_turn(chat, said, None, signals, output)).await,
        };
        match spoken {
            ChatTurnEnd::Over(TurnStatus::Done) => {}
            // Without the gateway, no further turn is possible.
            ChatTurnEnd::Over(TurnStatus::Gone) => return Ok(Exit::Unavailable),
            ChatTurnEnd::Over(_) => exit = Exit::Failed,
            ChatTurnEnd::Leave => return Err(CommandError::Interrupted),
        }
    }
}
