//! A chat at a terminal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::mcp::CompleteParams;
use openclaw_protocol::{ask, rpc};
use tokio::time::timeout;

use super::commands::{self, Line};
use super::complete::Vocabulary;
use super::editor::{Ask, Editor, EditorEvent, Typed};
use super::turn::{TurnEnd, run_turn};
use super::watch::{Change, Watch};
use super::{Chat, greeting, invoke};
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::fold::fold;
use crate::output::{FAINT, Output};
use crate::signals::{SignalAction, Signals};

/// How long the values of an argument may take: the user is typing.
const VALUES: Duration = Duration::from_millis(1_500);

/// Runs the chat until the user exits.
pub(super) async fn run(
    chat: &mut Chat<'_>,
    history: &Path,
    signals: &mut Signals,
    output: &mut Output,
) -> CommandResult {
    let vocabulary = Arc::new(Vocabulary::default());
    let mut watch = Watch::begin(chat, Arc::clone(&vocabulary)).await;
    greeting::show(chat, watch.servers(), output).await;
    output.flush();
    let mut editor = Editor::start(history, vocabulary).map_err(terminal_failed)?;
    while let Some(line) = next_line(chat, &mut editor, &mut watch, signals, output).await? {
        let spoken = match commands::take(chat, &line, output).await {
            Line::Empty | Line::Done => continue,
            Line::Exit => break,
            Line::Call(tool, args) => {
                let editor = Some(&mut editor);
                Box::pin(invoke::invoke(chat, tool, args, editor, signals, output)).await
            }
            Line::Say(said) => {
                Box::pin(run_turn(chat, said, Some(&mut editor), signals, output)).await
            }
        };
        output.line("");
        output.flush();
        if spoken == TurnEnd::Leave {
            editor.give_up().await;
            return Err(CommandError::Interrupted);
        }
    }
    Ok(Exit::Ok)
}

/// Reads the next line; `None` at the end. Changes of servers are shown above the prompt.
async fn next_line(
    chat: &Chat<'_>,
    editor: &mut Editor,
    watch: &mut Watch,
    signals: &mut Signals,
    output: &mut Output,
) -> Result<Option<String>, CommandError> {
    watch.learn_sessions(chat).await;
    loop {
        output.flush();
        editor.begin(Ask::Message);
        let typed = loop {
            tokio::select! {
                biased;
                event = editor.event() => match event {
                    EditorEvent::Typed(typed) => break typed,
                    // If the editor no longer waits, the values are not needed.
                    EditorEvent::Values((params, reply)) => {
                        let _ = reply.send(values(chat, params).await);
                    }
                },
                change = watch.changed() => match change {
                    Change::Servers => {
                        for line in watch.news(chat).await {
                            let line = fold(&line, usize::from(output.width()));
                            line.lines().for_each(|line| editor.print(line));
                        }
                    }
                    Change::Gone => {
                        editor.give_up().await;
                        return Err(CommandError::unavailable("the connection to the gateway was lost")
                            .hint("run `openclaw chat` again; the conversation is kept"));
                    }
                },
                signal = signals.next() => {
                    editor.give_up().await;
                    return match signal {
                        SignalAction::HangUp => Ok(None),
                        SignalAction::Interrupt | SignalAction::End => Err(CommandError::Interrupted),
                    };
                }
            }
        };
        match typed {
            Typed::Line(line) => return Ok(Some(line)),
            Typed::Interrupt => output.line(format_args!("{FAINT}Ctrl-D to exit{FAINT:#}")),
            Typed::End => return Ok(None),
            Typed::GivenUp => {}
            Typed::Failed(error) => return Err(terminal_failed(error)),
        }
    }
}

/// Returns the values of an argument; none if its server does not complete it, or not in time.
async fn values(chat: &Chat<'_>, params: CompleteParams) -> Vec<String> {
    let params = CompleteParams { agent_id: Some(chat.whom.agent.clone()), ..params };
    let asked = timeout(VALUES, ask::<rpc::McpComplete>(chat.surface, params)).await;
    asked.ok().and_then(Result::ok).map(|it| it.values).unwrap_or_default()
}

fn terminal_failed(cause: String) -> CommandError {
    CommandError::failed("cannot use the terminal").cause(cause)
}
