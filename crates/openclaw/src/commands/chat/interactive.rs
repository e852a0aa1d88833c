//! A chat at a terminal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::mcp::CompleteParams;
use openclaw_protocol::{ask, rpc};
use tokio::time::timeout;

use super::commands::{self, Line};
use super::complete::Vocabulary;
use super::conversation::{self, Start};
use super::editor::{Ask, Editor, EditorEvent, Typed};
use super::turn::{TurnEnd, run_turn};
use super::watch::{Change, Watch};
use super::{Chat, greeting, invoke};
use crate::commands::talk::TurnStatus;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::fold::fold;
use crate::output::{FAINT, Output, printable};
use crate::signals::{SignalAction, Signals};

/// How long the values of an argument may take: the user is typing.
const VALUES: Duration = Duration::from_millis(1_500);

/// Runs the chat until the user exits. Without a history file, prompts are plain lines.
pub(super) async fn run(
    chat: &mut Chat<'_>,
    start: Start,
    mut prompt: Option<String>,
    history: Option<&Path>,
    signals: &mut Signals,
    output: &mut Output,
) -> CommandResult {
    let vocabulary = Arc::new(Vocabulary::default());
    let mut watch = Watch::begin(chat, Arc::clone(&vocabulary)).await;
    let mut editor = match history {
        Some(file) => Editor::start(file, vocabulary, output.mark()).map_err(terminal_failed)?,
        None => Editor::plain(output.mark()),
    };
    greeting::show(chat, &start, watch.servers(), output).await;
    match start {
        Start::New => {}
        Start::Resume(row) => conversation::resumed(chat, &row, output).await,
        Start::Choose => {
            if !choose(chat, &mut editor, signals, output).await? {
                return Ok(Exit::Ok);
            }
        }
    }
    loop {
        let line = match prompt.take() {
            Some(prompt) => {
                let mark = output.mark();
                output.line(format_args!("{mark}{}", printable(&prompt)));
                prompt
            }
            None => match next_line(chat, &mut editor, &mut watch, signals, output).await? {
                Some(line) => line,
                None => break,
            },
        };
        let spoken = match commands::take(chat, &line, output).await {
            Line::Empty | Line::Done | Line::Failed => continue,
            Line::Exit => break,
            Line::Choose => {
                choose(chat, &mut editor, signals, output).await?;
                continue;
            }
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
        match spoken {
            TurnEnd::Over(TurnStatus::Done) => conversation::request_title(chat).await,
            TurnEnd::Over(TurnStatus::Cancelled) => editor.hold_back(),
            TurnEnd::Over(_) => {}
            TurnEnd::Leave => {
                editor.give_up().await;
                return Err(CommandError::Interrupted);
            }
        }
    }
    conversation::farewell(chat, output).await;
    Ok(Exit::Ok)
}

/// Has the user choose a conversation, and switches to it. Returns whether one was chosen.
async fn choose(
    chat: &mut Chat<'_>,
    editor: &mut Editor,
    signals: &mut Signals,
    output: &mut Output,
) -> Result<bool, CommandError> {
    let choices = conversation::choices(chat).await?;
    if choices.is_empty() {
        output.line("No other conversations.");
        return Ok(false);
    }
    output.flush();
    editor.begin(Ask::Pick("Resume a conversation", choices));
    let typed = tokio::select! {
        typed = editor.typed() => typed,
        _ = signals.next() => {
            editor.give_up().await;
            return Err(CommandError::Interrupted);
        }
    };
    match typed {
        Typed::Line(key) => Ok(conversation::switch(chat, &key, output).await),
        Typed::Failed(error) => Err(terminal_failed(error)),
        Typed::Interrupt | Typed::End | Typed::GivenUp => Ok(false),
    }
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
    let mut interrupts = 0;
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
                    match signal {
                        SignalAction::HangUp => return Ok(None),
                        SignalAction::End => return Err(CommandError::Interrupted),
                        // Ctrl-C just before the prompt.
                        SignalAction::Interrupt => break Typed::Interrupt,
                    }
                }
            }
        };
        match typed {
            Typed::Line(line) => return Ok(Some(line)),
            Typed::Interrupt => {
                interrupts += 1;
                let words = match interrupts {
                    1 => "Ctrl-D, or Ctrl-C twice more, to exit",
                    2 => "Ctrl-C once more to exit",
                    _ => return Ok(None),
                };
                output.line(format_args!("{FAINT}{words}{FAINT:#}"));
            }
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
