//! A chat at a terminal.

use std::path::Path;
use std::sync::Arc;

use super::commands::{self, Line};
use super::complete::Vocabulary;
use super::editor::{Ask, Editor, Typed};
use super::speak::{Spoken, speak};
use super::watch::{Change, Watch};
use super::{Chat, greeting, invoke};
use crate::exit::Exit;
use crate::fold::fold;
use crate::output::{FAINT, Output};
use crate::signals::{Signals, Wish};

/// Talks until somebody leaves.
pub(super) async fn run(
    chat: &mut Chat<'_>,
    history: &Path,
    signals: &mut Signals,
    output: &mut Output,
) -> Exit {
    let vocabulary = Arc::new(Vocabulary::default());
    let mut watch = Watch::begin(chat, Arc::clone(&vocabulary)).await;
    greeting::show(chat, watch.servers(), output).await;
    output.flush();
    let mut editor = match Editor::start(history, vocabulary) {
        Ok(editor) => editor,
        Err(error) => {
            output.problem(&format!("the terminal cannot be used: {error}"), None);
            return Exit::Failed;
        }
    };
    loop {
        let line = match next_line(chat, &mut editor, &mut watch, signals, output).await {
            Ok(line) => line,
            Err(exit) => return exit,
        };
        let spoken = match commands::take(chat, &line, output).await {
            Line::Empty | Line::Done => continue,
            Line::Exit => return Exit::Ok,
            Line::Call(tool, args) => {
                let editor = Some(&mut editor);
                Box::pin(invoke::invoke(chat, tool, args, editor, signals, output)).await
            }
            Line::Say(said) => {
                Box::pin(speak(chat, said, Some(&mut editor), signals, output)).await
            }
        };
        output.line("");
        output.flush();
        if spoken == Spoken::Leave {
            editor.give_up().await;
            return Exit::Interrupted;
        }
    }
}

/// What is typed next. What becomes of servers meanwhile is told above it.
async fn next_line(
    chat: &Chat<'_>,
    editor: &mut Editor,
    watch: &mut Watch,
    signals: &mut Signals,
    output: &mut Output,
) -> Result<String, Exit> {
    watch.learn_sessions(chat).await;
    loop {
        output.flush();
        editor.begin(Ask::Message);
        let typed = loop {
            tokio::select! {
                biased;
                typed = editor.typed() => break typed,
                change = watch.changed() => match change {
                    Change::Servers => {
                        for line in watch.news(chat).await {
                            let line = fold(&line, usize::from(output.width()));
                            line.lines().for_each(|line| editor.print(line));
                        }
                    }
                    Change::Gone => {
                        editor.give_up().await;
                        let hint = "`openclaw chat` begins anew; what was said is kept";
                        output.problem("the gateway is gone", Some(hint));
                        return Err(Exit::Unavailable);
                    }
                },
                wish = signals.next() => {
                    editor.give_up().await;
                    return Err(match wish {
                        Wish::HangUp => Exit::Ok,
                        Wish::Interrupt | Wish::End => Exit::Interrupted,
                    });
                }
            }
        };
        match typed {
            Typed::Line(line) => return Ok(line),
            Typed::Interrupt => output.line(format_args!("{FAINT}Ctrl-D leaves{FAINT:#}")),
            Typed::End => return Err(Exit::Ok),
            Typed::GivenUp => {}
            Typed::Failed(error) => {
                output.problem(&format!("the terminal cannot be used: {error}"), None);
                return Err(Exit::Failed);
            }
        }
    }
}
