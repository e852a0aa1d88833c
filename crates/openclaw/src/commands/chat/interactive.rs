//! A chat at a terminal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::approvals::Approval;
use openclaw_protocol::mcp::CompleteParams;
use openclaw_protocol::{ask, rpc};
use tokio::time::timeout;

use super::commands::{self, TypedLine};
use super::complete::Vocabulary;
use super::conversation::{self, ChatStart};
use super::dialogue::{AfterQuestion, Dialogue, GatewayQuestion};
use super::editor::{Ask, Editor, EditorEvent, Typed};
use super::inbox::InboxItem;
use super::turn::{ChatTurnEnd, join_turn, run_turn};
use super::watch::Watch;
use super::{Chat, greeting, invoke};
use crate::commands::link::Relink;
use crate::commands::talk::{TurnOutput, TurnStatus, approve};
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, printable};
use crate::signals::{SignalAction, Signals};
use openclaw_terminal::style::{FAINT, GOOD, WARNING};
use openclaw_terminal::wrap::wrap;

/// How long the values of an argument may take: the user is typing.
const VALUES: Duration = Duration::from_millis(1_500);
/// The command that continues without the gateway.
const LOCAL: &str = "/local";

/// Runs the chat until the user exits. Without a history file, prompts are plain lines.
pub(super) async fn run(
    chat: &mut Chat<'_>,
    relink: Option<&mut Relink<'_>>,
    begin: Begin<'_>,
    signals: &mut Signals,
    output: &mut Output,
) -> CommandResult {
    let vocabulary = Arc::new(Vocabulary::default());
    let Begin { start, mut prompt, history } = begin;
    let watch = Watch::begin(chat, Arc::clone(&vocabulary)).await;
    let editor = match history {
        Some(file) => {
            let (roots, pictures) = (chat.roots.clone(), chat.pictures.clone());
            Editor::start(file, vocabulary, roots, pictures, output.mark())
                .map_err(terminal_failed)?
        }
        None => Editor::plain(output.mark()),
    };
    greeting::show(chat, &start, watch.servers(), output).await;
    output.flush();
    let mut desk = Desk { relink, editor, watch, lost: None, signals, output };
    match start {
        ChatStart::New => {}
        ChatStart::Resume(row) => conversation::resumed(chat, &row, desk.output).await,
        ChatStart::Choose => {
            if !desk.choose(chat).await? {
                return Ok(Exit::Ok);
            }
        }
    }
    loop {
        let line = match prompt.take() {
            Some(prompt) => {
                let mark = desk.output.mark();
                desk.output.line(format_args!("{mark}{}", printable(&prompt)));
                prompt
            }
            None => match desk.next_line(chat).await? {
                Some(line) => line,
                None => break,
            },
        };
        let Some(line) = desk.wait_for_gateway(chat, line).await? else { continue };
        let Desk { editor, signals, output, .. } = &mut desk;
        let spoken = match commands::take(chat, &line, output).await {
            TypedLine::Empty | TypedLine::Done | TypedLine::Failed => continue,
            TypedLine::Exit => break,
            TypedLine::Choose => {
                desk.choose(chat).await?;
                continue;
            }
            TypedLine::Call(tool, args) => {
                Box::pin(invoke::invoke(chat, tool, args, Some(editor), signals, output)).await
            }
            TypedLine::Say(said) => {
                let spoken = Box::pin(run_turn(chat, said, Some(editor), signals, output)).await;
                if spoken == ChatTurnEnd::Over(TurnStatus::Gone) {
                    desk.put_back(&line);
                }
                spoken
            }
        };
        desk.finish(chat, spoken).await?;
    }
    conversation::farewell(chat, desk.output).await;
    Ok(Exit::Ok)
}

/// How a chat begins.
pub(super) struct Begin<'a> {
    pub(super) start: ChatStart,
    /// The first message.
    pub(super) prompt: Option<String>,
    /// The file of the history; without one, prompts are plain lines.
    pub(super) history: Option<&'a Path>,
}

/// The prompt, and what else is going on while it is shown.
struct Desk<'a, 'r> {
    /// Connects again when the gateway is lost; `None` if it is in this process.
    relink: Option<&'a mut Relink<'r>>,
    editor: Editor,
    watch: Watch,
    /// The message of a turn that was lost with the gateway.
    lost: Option<String>,
    signals: &'a mut Signals,
    output: &'a mut Output,
}

impl Desk<'_, '_> {
    /// Has the user choose a conversation, and switches to it. Returns whether one was chosen.
    async fn choose(&mut self, chat: &mut Chat<'_>) -> Result<bool, CommandError> {
        let Self { editor, signals, output, .. } = self;
        let choices = conversation::choices(chat).await?;
        if choices.is_empty() {
            output.line("No other sessions.");
            return Ok(false);
        }
        output.flush();
        editor.begin(Ask::Pick("Resume a session", choices));
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

    /// Reads the next line; `None` at the end. Changes of servers are shown above the prompt;
    /// questions, and turns of other clients, instead of it. What is typed is kept.
    async fn next_line(&mut self, chat: &mut Chat<'_>) -> Result<Option<String>, CommandError> {
        self.watch.learn_sessions(chat).await;
        self.watch.follow(chat).await;
        let mut interrupts = 0;
        loop {
            self.output.flush();
            self.editor.begin(Ask::Message);
            let typed = match self.prompt(chat).await? {
                AtPrompt::Typed(typed) => typed,
                AtPrompt::Signal(SignalAction::HangUp) => {
                    // At once: until the chat ends, approvals wait for it.
                    self.editor.abandon();
                    return Ok(None);
                }
                AtPrompt::Signal(SignalAction::End) => {
                    self.editor.give_up().await;
                    return Err(CommandError::Interrupted);
                }
                // Ctrl-C just before the prompt.
                AtPrompt::Signal(SignalAction::Interrupt) => {
                    self.editor.give_up().await;
                    Typed::Interrupt
                }
                AtPrompt::Changed(change) => {
                    let typed = self.editor.give_up().await;
                    self.show(chat, change).await?;
                    typed
                }
                AtPrompt::Asked(approvals) => {
                    let typed = self.editor.give_up().await;
                    for approval in approvals {
                        // It may have been answered elsewhere during another question.
                        if approve::is_open(chat.surface, &approval.id).await {
                            self.ask(chat, &GatewayQuestion::Approval(Box::new(approval))).await?;
                        }
                    }
                    typed
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
                    self.output.line(format_args!("{FAINT}{words}{FAINT:#}"));
                }
                Typed::End => return Ok(None),
                Typed::GivenUp => {}
                Typed::Failed(error) => return Err(terminal_failed(error)),
            }
        }
    }

    /// Waits for input, or for something that is shown instead of the prompt.
    async fn prompt(&mut self, chat: &Chat<'_>) -> Result<AtPrompt, CommandError> {
        let Self { relink, editor, watch, signals, output, .. } = self;
        loop {
            let is_lost = relink.as_ref().is_some_and(|relink| relink.is_lost());
            tokio::select! {
                biased;
                event = editor.event() => match event {
                    EditorEvent::Typed(typed) => return Ok(AtPrompt::Typed(typed)),
                    // If the editor no longer waits, the values are not needed.
                    EditorEvent::Values((params, reply)) => {
                        let _ = reply.send(values(chat, params).await);
                    }
                },
                change = watch.changed(chat), if !is_lost => match (change, relink.as_mut()) {
                    (InboxItem::Servers, _) => print_news(chat, watch, editor, output).await,
                    (InboxItem::Approvals, _) => {
                        let approvals = watch.approvals(chat).await;
                        if !approvals.is_empty() {
                            return Ok(AtPrompt::Asked(approvals));
                        }
                    }
                    (InboxItem::Gone, Some(relink)) => {
                        relink.lose();
                        let words = match relink.can_stay() {
                            true => format!(
                                "gateway lost, reconnecting; {LOCAL} continues in this process"
                            ),
                            false => "gateway lost, reconnecting".to_owned(),
                        };
                        print(&format!("{WARNING}·{WARNING:#} {words}"), editor, output);
                    }
                    (InboxItem::Gone, None) => {
                        editor.give_up().await;
                        return Err(CommandError::unavailable("the gateway has stopped")
                            .hint("run `openclaw chat` again; the session is kept"));
                    }
                    (change, _) => return Ok(AtPrompt::Changed(change)),
                },
                () = reconnected(relink), if is_lost => {
                    print(&format!("{GOOD}·{GOOD:#} connected to the gateway again"), editor, output);
                    watch.resume(chat).await;
                    print_news(chat, watch, editor, output).await;
                }
                signal = signals.next() => return Ok(AtPrompt::Signal(signal)),
            }
        }
    }

    /// Shows an elicitation, or a turn of another client.
    async fn show(&mut self, chat: &mut Chat<'_>, change: InboxItem) -> Result<(), CommandError> {
        match change {
            InboxItem::Elicited(elicitation) => {
                self.ask(chat, &GatewayQuestion::Elicitation(elicitation)).await
            }
            InboxItem::Turn(run) => {
                let events = self.watch.hand_over(chat);
                let Self { editor, signals, output, .. } = self;
                let joined = Box::pin(join_turn(chat, run, events, editor, signals, output)).await;
                self.finish(chat, joined).await
            }
            InboxItem::Servers | InboxItem::Approvals | InboxItem::Gone => Ok(()),
        }
    }

    async fn ask(
        &mut self,
        chat: &Chat<'_>,
        question: &GatewayQuestion,
    ) -> Result<(), CommandError> {
        let Self { editor, watch, signals, output, .. } = self;
        let settled = watch.settled(chat, question.id());
        let (surface, session) = (chat.surface, chat.session.as_str());
        let view = &mut TurnOutput::new(editor.can_draw());
        let mut dialogue = Dialogue { surface, session, editor, view, signals, output };
        match Box::pin(dialogue.lead(question, settled)).await {
            AfterQuestion::Continue | AfterQuestion::Cancel(SignalAction::Interrupt) => {
                view.new_line(self.output);
                Ok(())
            }
            AfterQuestion::Cancel(_) => Err(CommandError::Interrupted),
        }
    }

    /// After a turn that was lost with the gateway: offers to send the message again.
    fn put_back(&mut self, message: &str) {
        let words = match self.editor.put_back(message) {
            true => "the turn was interrupted; the message is in the prompt: Enter sends it again",
            false => "the turn was interrupted; send the message again if you want",
        };
        self.output.folded(format_args!("{WARNING}·{WARNING:#} {words}"));
        self.lost = Some(message.to_owned());
    }

    /// After a turn or a call.
    async fn finish(
        &mut self,
        chat: &mut Chat<'_>,
        spoken: ChatTurnEnd,
    ) -> Result<(), CommandError> {
        self.output.line("");
        self.output.flush();
        match spoken {
            ChatTurnEnd::Over(TurnStatus::Done) => conversation::request_title(chat).await,
            ChatTurnEnd::Over(TurnStatus::Cancelled) => self.editor.hold_back(),
            ChatTurnEnd::Over(_) => {}
            ChatTurnEnd::Leave => {
                self.editor.give_up().await;
                return Err(CommandError::Interrupted);
            }
        }
        Ok(())
    }

    /// Keeps a line until the gateway is connected. Returns `None` if it needs no further handling:
    /// it continues without the gateway, or the user does not want to wait.
    async fn wait_for_gateway(
        &mut self,
        chat: &mut Chat<'_>,
        line: String,
    ) -> Result<Option<String>, CommandError> {
        let Self { relink: Some(relink), watch, signals, output, lost, .. } = self else {
            return Ok(Some(line));
        };
        // A message that is sent, or replaced by another, is no longer lost.
        let lost = lost.take();
        let word = line.trim();
        if !relink.is_lost() || word.is_empty() || commands::is_exit(word) {
            return Ok(Some(line));
        }
        if let Some(unsent) = before_local(word, lost.as_deref()).filter(|_| relink.can_stay()) {
            match Box::pin(relink.stay_here(output)).await {
                Ok(()) => {
                    chat.is_remote = false;
                    output.line(format_args!("{GOOD}·{GOOD:#} continuing in this process"));
                    watch.resume(chat).await;
                }
                Err(error) => output.error(&error),
            }
            if !unsent.is_empty() {
                self.editor.put_back(unsent);
            }
            return Ok(None);
        }
        let mut view = TurnOutput::new(self.editor.can_draw());
        let words = "waiting for the gateway, then the message is sent (Ctrl-C to cancel)";
        view.draft(words, output);
        let signal = tokio::select! {
            () = relink.reconnect() => None,
            signal = signals.next() => Some(signal),
        };
        view.new_line(output);
        match signal {
            None => {
                watch.resume(chat).await;
                Ok(Some(line))
            }
            Some(SignalAction::Interrupt) => {
                let more = match relink.can_stay() {
                    true => format!(", {LOCAL} continues in this process"),
                    false => String::new(),
                };
                let words = format!("not sent; press Up to edit it{more}");
                output.folded(format_args!("{FAINT}{words}{FAINT:#}"));
                Ok(None)
            }
            Some(SignalAction::End | SignalAction::HangUp) => Err(CommandError::Interrupted),
        }
    }
}

/// Returns the message to send after `/local`: the text before it, or else the lost message. `None`
/// if a line does not end with the command. After the lost message, which is in the prompt, it needs
/// no blank.
fn before_local<'a>(line: &'a str, lost: Option<&'a str>) -> Option<&'a str> {
    let before = line.strip_suffix(LOCAL)?;
    match before.is_empty() {
        true => Some(lost.unwrap_or_default()),
        false => {
            let is_apart = before.ends_with(char::is_whitespace) || lost == Some(before);
            is_apart.then(|| before.trim_end())
        }
    }
}

/// What happens while the prompt is shown.
enum AtPrompt {
    Typed(Typed),
    Signal(SignalAction),
    Changed(InboxItem),
    Asked(Vec<Approval>),
}

/// Waits until the gateway is connected again.
async fn reconnected(relink: &mut Option<&mut Relink<'_>>) {
    match relink {
        Some(relink) => relink.reconnect().await,
        None => std::future::pending().await,
    }
}

/// Prints the changes of servers above the prompt.
async fn print_news(chat: &Chat<'_>, watch: &mut Watch, editor: &Editor, output: &Output) {
    watch.news(chat).await.iter().for_each(|line| print(line, editor, output));
}

/// Prints a line above the prompt.
fn print(line: &str, editor: &Editor, output: &Output) {
    let line = wrap(line, usize::from(output.width()));
    line.lines().for_each(|line| editor.print(line));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_before_the_local_command_is_kept() {
        assert_eq!(before_local("/local", None), Some(""));
        assert_eq!(before_local("/local", Some("hello")), Some("hello"));
        assert_eq!(before_local("hello/local", Some("hello")), Some("hello"));
        assert_eq!(before_local("hello /local", None), Some("hello"));
        assert_eq!(before_local("hello, world /local", Some("hello")), Some("hello, world"));
        for other in ["look at /usr/local", "hello/local", "/local please", "hello"] {
            assert_eq!(before_local(other, Some("other")), None, "{other}");
        }
    }
}
