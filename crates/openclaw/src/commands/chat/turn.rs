//! One turn of a chat: its output is streamed, approvals and elicitations prompt the user, and
//! Ctrl-C cancels it.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::EventReceiver;
use openclaw_protocol::servers_settled;
use openclaw_trace::SpanKind;
use tokio::time::timeout;

use super::Chat;
use super::attach::{self, AttachedFiles};
use super::commands::{self, ChatInput};
use super::dialogue::{AfterQuestion, Dialogue, GatewayQuestion};
use super::editor::Editor;
use super::inbox::RunElsewhere;
use crate::commands::talk::{
    FollowedTurn, JoinedRun, OutgoingMessage, TurnEvent, TurnOutcome, TurnOutput, TurnStatus,
    approve, is_starting, servers,
};
use crate::output::Output;
use crate::signals::{SignalAction, Signals};
use openclaw_terminal::style::FAINT;

/// How long to wait for servers before a turn starts without them.
pub(super) const SERVERS: Duration = Duration::from_secs(20);
/// The timeout of the request that aborts a turn.
const GOODBYE: Duration = Duration::from_secs(5);
/// The maximum length of a line of another client's message.
const LINE_CHARS: usize = 2_000;

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatTurnEnd {
    /// It is over.
    Over(TurnStatus),
    /// The chat must exit.
    Leave,
}

/// Sends a message, and shows the turn. Without an editor, the user is not prompted.
pub(super) async fn run_turn(
    chat: &Chat<'_>,
    said: ChatInput<'_>,
    editor: Option<&mut Editor>,
    signals: &mut Signals,
    output: &mut Output,
) -> ChatTurnEnd {
    let mut view = view_of(chat, editor.as_deref());
    view.is_plain = commands::is_mcp(said);
    // A command that is known needs no further servers.
    if !commands::is_known(chat, said).await
        && let Some(spoken) = wait_for_servers(chat, &mut view, signals, output).await
    {
        return spoken;
    }
    // Checked after the servers have started: their prompts are commands.
    if let ChatInput::Message(message) = said
        && let Some(error) = commands::unknown(chat, message).await
    {
        view.new_line(output);
        output.error(&error);
        return ChatTurnEnd::Over(TurnStatus::Failed);
    }
    view.thinking(output);
    // Only what was typed: the text of a script may come from anywhere.
    let mut attached = AttachedFiles::default();
    if editor.is_some() && !commands::is_command_line(said) {
        attached = attach::read(said.text(), &chat.roots);
        attached.files.extend(chat.pasted.take());
        attached.notes.iter().for_each(|note| view.notice(note, output));
        view.thinking(output);
    }
    let words = OutgoingMessage {
        session: chat.session.clone(),
        agent: chat.whom.named_for(&chat.session),
        message: said.text().to_owned(),
        is_plain: matches!(said, ChatInput::Text(_)),
        timeout: None,
        workspace: chat.workspace.clone(),
        attachments: attached.files,
        span: chat.tracer.start("openclaw chat", SpanKind::Internal, None),
    };
    let begun = tokio::select! {
        begun = FollowedTurn::begin(chat.surface, words) => begun,
        signal = signals.next() => return interrupted(signal, &mut view, output),
    };
    let turn = match begun {
        Ok(turn) => turn,
        Err(error) => {
            let answer = TurnOutcome::refused(&error);
            view.over(&answer, output);
            return ChatTurnEnd::Over(answer.ending);
        }
    };
    chat.ran(&turn.run);
    ChatTurn::new(turn, view, editor).run(chat, signals, output).await
}

/// Returns the view of a turn.
fn view_of(chat: &Chat<'_>, editor: Option<&Editor>) -> TurnOutput {
    let mut view = TurnOutput::new(editor.is_some_and(Editor::can_draw));
    if editor.is_some() {
        view.shows_usage = !chat.whom.is_offline();
        view.pictures = chat.pictures.clone();
        view.number_from(chat.results.next());
    }
    view
}

/// Shows a turn of the same conversation that another client runs. `events` has what follows.
pub(super) async fn join_turn(
    chat: &Chat<'_>,
    run: RunElsewhere,
    events: EventReceiver,
    editor: &mut Editor,
    signals: &mut Signals,
    output: &mut Output,
) -> ChatTurnEnd {
    let mut view = view_of(chat, Some(editor));
    if let Some(message) = &run.message {
        view.line(&format!("{FAINT}· from another client:{FAINT:#}"), output);
        for line in message.lines() {
            let line = clean_line(Untrusted::new(line), LINE_CHARS);
            view.line(&format!("{FAINT}›{FAINT:#} {line}"), output);
        }
    }
    view.thinking(output);
    let RunElsewhere { id, message: _, events: so_far, has_gap } = run;
    // So that its later events are not taken for those of another turn.
    chat.ran(&id);
    let session = chat.session.clone();
    let agent = chat.whom.named_for(&session);
    let joined = JoinedRun { id, session, agent, so_far, has_gap };
    let turn = FollowedTurn::join(chat.surface, joined, events);
    ChatTurn::new(turn, view, Some(editor)).run(chat, signals, output).await
}

/// Waits for starting servers, whose tools would be missing in the turn. Ctrl-C skips the wait.
pub(super) async fn wait_for_servers(
    chat: &Chat<'_>,
    view: &mut TurnOutput,
    signals: &mut Signals,
    output: &mut Output,
) -> Option<ChatTurnEnd> {
    let agent = Some(chat.whom.agent.as_str());
    let servers = servers(chat.surface, agent).await.unwrap_or_default();
    let starting = servers.iter().filter(|server| is_starting(server));
    let starting: Vec<&str> = starting.map(|server| server.name.as_str()).collect();
    if starting.is_empty() {
        return None;
    }
    // The names last: they may not fit the line.
    view.draft(&format!("waiting (Ctrl-C to skip) for {}", starting.join(", ")), output);
    let mut settled = pin!(servers_settled(chat.surface, agent, SERVERS));
    loop {
        tokio::select! {
            () = &mut settled => return None,
            signal = signals.next() => return match signal {
                SignalAction::Interrupt => None,
                SignalAction::End | SignalAction::HangUp => Some(ChatTurnEnd::Leave),
            },
            () = view.due() => view.tick(output),
        }
    }
}

fn interrupted(signal: SignalAction, view: &mut TurnOutput, output: &mut Output) -> ChatTurnEnd {
    view.new_line(output);
    match signal {
        SignalAction::Interrupt => ChatTurnEnd::Over(TurnStatus::Cancelled),
        SignalAction::End | SignalAction::HangUp => ChatTurnEnd::Leave,
    }
}

/// A running turn.
struct ChatTurn<'a, 'e> {
    turn: FollowedTurn<'a>,
    view: TurnOutput,
    editor: Option<&'e mut Editor>,
    /// Events that arrived during a prompt.
    held: VecDeque<TurnEvent>,
    /// The ids of requests that are settled.
    decided: BTreeSet<String>,
    /// Whether the turn was aborted.
    is_ending: bool,
    /// Whether the gateway is stopping.
    gateway_stops: bool,
}

impl<'a, 'e> ChatTurn<'a, 'e> {
    fn new(turn: FollowedTurn<'a>, view: TurnOutput, editor: Option<&'e mut Editor>) -> Self {
        let turn = if editor.is_some() { turn.with_all_questions() } else { turn };
        let (held, decided) = (VecDeque::new(), BTreeSet::new());
        Self { turn, view, editor, held, decided, is_ending: false, gateway_stops: false }
    }

    /// Follows the turn to its end. What it has shown can be shown again.
    async fn run(
        mut self,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> ChatTurnEnd {
        let end = self.follow(chat, signals, output).await;
        chat.results.add(&chat.session, self.view.take_results());
        end
    }

    async fn follow(
        &mut self,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> ChatTurnEnd {
        loop {
            let step = match self.held.pop_front() {
                Some(step) => step,
                None => tokio::select! {
                    biased;
                    signal = signals.next() => {
                        if self.end(signal, output).await {
                            return ChatTurnEnd::Leave;
                        }
                        continue;
                    }
                    step = self.turn.next() => step,
                    () = self.view.due() => {
                        self.view.tick(output);
                        continue;
                    }
                },
            };
            match step {
                TurnEvent::Text(text) => self.view.text(&text, output),
                TurnEvent::Replaced(text) => self.view.replaced(&text, output),
                TurnEvent::Thought => self.view.thinking(output),
                TurnEvent::Called(call) => self.view.called(&call, output),
                TurnEvent::Advanced(call) => self.view.runs(&call, output),
                TurnEvent::Returned(call) => self.view.returned(&call, output),
                TurnEvent::Notice(text) => self.view.notice(&text, output),
                // The question itself follows.
                TurnEvent::Waits(_) => {}
                TurnEvent::Asked(approval) => {
                    let question = GatewayQuestion::Approval(approval);
                    if self.asked(&question, chat, signals, output).await {
                        return ChatTurnEnd::Leave;
                    }
                }
                TurnEvent::Elicited(elicitation) => {
                    let question = GatewayQuestion::Elicitation(elicitation);
                    if self.asked(&question, chat, signals, output).await {
                        return ChatTurnEnd::Leave;
                    }
                }
                TurnEvent::Decided(id) => drop(self.decided.insert(id)),
                TurnEvent::EndingServer(reason) => {
                    self.gateway_stops = true;
                    self.view.notice(&format!("the gateway is stopping: {reason}"), output);
                }
                TurnEvent::Over(answer) => {
                    self.view.over(&answer, output);
                    // A gateway that stops cancels its turns.
                    let is_lost = self.gateway_stops && !self.is_ending;
                    return ChatTurnEnd::Over(match answer.ending {
                        TurnStatus::Cancelled if is_lost => TurnStatus::Gone,
                        ending => ending,
                    });
                }
            }
        }
    }

    /// Aborts the turn. Returns whether the chat must exit, too: on a signal other than Ctrl-C, or
    /// on a second Ctrl-C.
    async fn end(&mut self, signal: SignalAction, output: &mut Output) -> bool {
        let is_last = signal != SignalAction::Interrupt || self.is_ending;
        if !self.is_ending {
            self.is_ending = true;
            let words = if is_last { "cancelling" } else { "cancelling; Ctrl-C again to exit" };
            self.view.note(&format!("{FAINT}{words}{FAINT:#}"), output);
            // Errors do not matter: the turn is not waited for.
            let _ = timeout(GOODBYE, self.turn.abort()).await;
        }
        is_last
    }

    /// Prompts the user for a question. Returns whether the chat must exit.
    async fn asked(
        &mut self,
        question: &GatewayQuestion,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> bool {
        let Self { turn, view, editor, held, decided, is_ending, .. } = self;
        let Some(editor) = editor.as_deref_mut() else { return false };
        // It may have been answered elsewhere during another prompt.
        let is_settled = |step: &TurnEvent| match step {
            TurnEvent::Decided(id) => id == question.id(),
            TurnEvent::Over(_) => true,
            _ => false,
        };
        if *is_ending || decided.contains(question.id()) || held.iter().any(is_settled) {
            return false;
        }
        // "Always" also settles earlier requests for the same tool.
        if let GatewayQuestion::Approval(approval) = question
            && !approve::is_open(chat.surface, &approval.id).await
        {
            return false;
        }
        let settled = async {
            loop {
                held.push_back(turn.next().await);
                if held.back().is_some_and(is_settled) {
                    return;
                }
            }
        };
        let (surface, session) = (chat.surface, chat.session.as_str());
        let mut dialogue = Dialogue { surface, session, editor, view, signals, output };
        match dialogue.lead(question, settled).await {
            AfterQuestion::Continue => false,
            AfterQuestion::Cancel(signal) => self.end(signal, output).await,
        }
    }
}
