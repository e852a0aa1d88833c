//! One turn of a chat: its output is streamed, approvals and elicitations prompt the user, and
//! Ctrl-C cancels it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use openclaw_protocol::approvals::{Approval, ApprovalKind, Decision};
use openclaw_protocol::mcp::elicitation::Elicitation;
use openclaw_protocol::mcp::servers_settled;
use tokio::time::timeout;

use super::Chat;
use super::attach::{self, AttachedFiles};
use super::commands::{self, ChatInput};
use super::editor::{Ask, Editor, Typed};
use super::elicit::{ElicitationDialogue, ElicitationResult};
use crate::commands::talk::approve::{self, ApprovalPrompt, Choice, Decided};
use crate::commands::talk::{
    Call, OutgoingMessage, Turn, TurnEvent, TurnOutcome, TurnStatus, View, is_starting, servers,
};
use crate::output::{FAINT, Output};
use crate::signals::{SignalAction, Signals};

/// How long to wait for servers before a turn starts without them.
const SERVERS: Duration = Duration::from_secs(20);
/// The maximum number of times that one question is asked.
const MAX_TRIES: usize = 5;
/// The timeout of the request that aborts a turn.
const GOODBYE: Duration = Duration::from_secs(5);

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
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
) -> TurnEnd {
    let mut view = View::new(editor.as_ref().is_some_and(|editor| editor.can_draw()));
    if editor.is_some() {
        view.shows_usage = !chat.whom.is_offline();
        view.pictures = chat.pictures;
        view.number_from(chat.results.next());
    }
    if let Some(spoken) = wait_for_servers(chat, &mut view, signals, output).await {
        return spoken;
    }
    // Checked after the servers have started: their prompts are commands.
    if let ChatInput::Message(message) = said
        && let Some(error) = commands::unknown(chat, message).await
    {
        view.new_line(output);
        output.error(&error);
        return TurnEnd::Over(TurnStatus::Failed);
    }
    view.thinking(output);
    // Only what was typed: the text of a script may come from anywhere.
    let mut attached = AttachedFiles::default();
    if editor.is_some() && !commands::is_command_line(said) {
        attached = attach::read(said.text(), &chat.folder, chat.home.as_deref());
        attached.notes.iter().for_each(|note| view.notice(note, output));
        view.thinking(output);
    }
    let words = OutgoingMessage {
        session: chat.session.clone(),
        agent: chat.whom.named_for(&chat.session),
        message: said.text().to_owned(),
        is_plain: matches!(said, ChatInput::Text(_)),
        timeout: None,
        attachments: attached.files,
    };
    let begun = tokio::select! {
        begun = Turn::begin(chat.surface, words) => begun,
        signal = signals.next() => return interrupted(signal, &mut view, output),
    };
    let turn = match begun {
        Ok(turn) => turn,
        Err(error) => {
            let answer = TurnOutcome::refused(&error);
            view.over(&answer, output);
            return TurnEnd::Over(answer.ending);
        }
    };
    let (held, decided) = (VecDeque::new(), BTreeSet::new());
    let (is_ending, has_allowed) = (false, false);
    let mut chat_turn = ChatTurn { turn, view, editor, held, decided, is_ending, has_allowed };
    let end = chat_turn.follow(chat, signals, output).await;
    chat.results.add(&chat.session, chat_turn.view.take_results());
    end
}

/// Waits for starting servers, whose tools would be missing in the turn. Ctrl-C skips the wait.
async fn wait_for_servers(
    chat: &Chat<'_>,
    view: &mut View,
    signals: &mut Signals,
    output: &mut Output,
) -> Option<TurnEnd> {
    let agent = Some(chat.whom.agent.as_str());
    let servers = servers(chat.surface, agent).await.unwrap_or_default();
    let starting = servers.iter().filter(|server| is_starting(server));
    let starting: Vec<&str> = starting.map(|server| server.name.as_str()).collect();
    if starting.is_empty() {
        return None;
    }
    view.draft(&format!("waiting for {} (Ctrl-C to skip)", starting.join(", ")), output);
    tokio::select! {
        () = servers_settled(chat.surface, agent, SERVERS) => None,
        signal = signals.next() => match signal {
            SignalAction::Interrupt => None,
            SignalAction::End | SignalAction::HangUp => Some(TurnEnd::Leave),
        },
    }
}

fn interrupted(signal: SignalAction, view: &mut View, output: &mut Output) -> TurnEnd {
    view.new_line(output);
    match signal {
        SignalAction::Interrupt => TurnEnd::Over(TurnStatus::Cancelled),
        SignalAction::End | SignalAction::HangUp => TurnEnd::Leave,
    }
}

/// A running turn.
struct ChatTurn<'a, 'e> {
    turn: Turn<'a>,
    view: View,
    editor: Option<&'e mut Editor>,
    /// Events that arrived during a prompt.
    held: VecDeque<TurnEvent>,
    /// The ids of requests that are settled.
    decided: BTreeSet<String>,
    /// Whether the turn was aborted.
    is_ending: bool,
    /// Whether a tool was always allowed.
    has_allowed: bool,
}

impl ChatTurn<'_, '_> {
    async fn follow(
        &mut self,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> TurnEnd {
        loop {
            let step = match self.held.pop_front() {
                Some(step) => step,
                None => tokio::select! {
                    biased;
                    signal = signals.next() => {
                        if self.end(signal, output).await {
                            return TurnEnd::Leave;
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
                TurnEvent::Asked(approval) => {
                    if self.ask(&approval, chat, signals, output).await {
                        return TurnEnd::Leave;
                    }
                }
                TurnEvent::Elicited(elicitation) => {
                    if self.elicited(&elicitation, chat, signals, output).await {
                        return TurnEnd::Leave;
                    }
                }
                TurnEvent::Decided(id) => drop(self.decided.insert(id)),
                TurnEvent::EndingServer(reason) => {
                    self.view.notice(&format!("the gateway is stopping: {reason}"), output);
                }
                TurnEvent::Over(answer) => {
                    self.view.over(&answer, output);
                    return TurnEnd::Over(answer.ending);
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

    /// Asks the user for approval of a call. Returns whether the chat must exit.
    async fn ask(
        &mut self,
        approval: &Approval,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> bool {
        if self.editor.is_none() || self.is_ending || self.decided.contains(&approval.id) {
            return false;
        }
        // "Always" also settles earlier requests for the same tool.
        if self.has_allowed && !approve::is_open(chat.surface, &approval.id).await {
            return false;
        }
        let mut request = ApprovalPrompt::new(approval, output.width());
        self.view.lines(&request.lines(), output);
        for _ in 0..MAX_TRIES {
            let decision = match self.answer(&request, &approval.id, signals).await {
                QuestionInput::Typed(Typed::Line(line)) => match request.meaning(&line) {
                    Some(Choice::Decision(decision)) => decision,
                    Some(Choice::ShowAll) => {
                        request.show_all();
                        self.view.lines(&request.lines(), output);
                        continue;
                    }
                    None => {
                        self.view.line(&request.wrong_answer(), output);
                        continue;
                    }
                },
                QuestionInput::Typed(Typed::Interrupt) => {
                    self.respond(chat, approval, Decided::DENY, output).await;
                    return self.end(SignalAction::Interrupt, output).await;
                }
                QuestionInput::Typed(Typed::End) => Decided::DENY,
                QuestionInput::Typed(Typed::GivenUp | Typed::Failed(_))
                | QuestionInput::NotAsked => return false,
                QuestionInput::Signal(signal) => return self.end(signal, output).await,
            };
            self.respond(chat, approval, decision, output).await;
            return false;
        }
        self.respond(chat, approval, Decided::DENY, output).await;
        false
    }

    /// Prompts the user for an elicitation. Returns whether the chat must exit.
    async fn elicited(
        &mut self,
        elicitation: &Elicitation,
        chat: &Chat<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) -> bool {
        let Self { turn, view, editor, held, decided, is_ending, .. } = self;
        let Some(editor) = editor.as_deref_mut() else { return false };
        // It may have been answered elsewhere during another prompt.
        let is_settled = |step: &TurnEvent| match step {
            TurnEvent::Decided(id) => *id == elicitation.id,
            TurnEvent::Over(_) => true,
            _ => false,
        };
        let is_old = decided.contains(&elicitation.id) || held.iter().any(is_settled);
        if *is_ending || is_old {
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
        let mut desk = ElicitationDialogue { surface: chat.surface, editor, view, signals, output };
        match desk.lead(elicitation, settled).await {
            ElicitationResult::On => false,
            ElicitationResult::Signal(signal) => self.end(signal, output).await,
        }
    }

    /// Prompts for one answer. Events that arrive meanwhile are kept; the prompt is withdrawn if
    /// the request is decided elsewhere.
    async fn answer(
        &mut self,
        request: &ApprovalPrompt<'_>,
        id: &str,
        signals: &mut Signals,
    ) -> QuestionInput {
        let Some(editor) = self.editor.as_deref_mut() else { return QuestionInput::NotAsked };
        editor.begin(Ask::Choice(request.choices()));
        loop {
            let step = tokio::select! {
                biased;
                typed = editor.typed() => return QuestionInput::Typed(typed),
                signal = signals.next() => {
                    editor.give_up().await;
                    return QuestionInput::Signal(signal);
                }
                step = self.turn.next() => step,
            };
            let is_settled = match &step {
                TurnEvent::Decided(decided) => decided == id,
                TurnEvent::Over(_) => true,
                _ => false,
            };
            self.held.push_back(step);
            if is_settled {
                editor.give_up().await;
                return QuestionInput::NotAsked;
            }
        }
    }

    async fn respond(
        &mut self,
        chat: &Chat<'_>,
        approval: &Approval,
        decided: Decided,
        output: &mut Output,
    ) {
        let decision = decided.decision;
        self.has_allowed |= decision == Decision::AllowAlways;
        match approve::respond(chat.surface, &approval.id, decided).await {
            Ok(()) if approval.kind == ApprovalKind::Sampling => {
                let server = approval.server.as_deref().unwrap_or_default();
                match decision {
                    Decision::Deny => {}
                    _ => self.view.draft(&format!("the model is answering {server}"), output),
                }
            }
            Ok(()) if decision != Decision::Deny => {
                let args = approval.args.as_ref();
                let args = args.and_then(|args| serde_json::from_str(args.get()).ok());
                let call = Call { name: approval.tool.clone(), args, ..Call::default() };
                self.view.runs(&call, output);
            }
            Ok(()) => {}
            Err(error) => self.view.notice(&error.to_string(), output),
        }
    }
}

/// The result of a prompt for approval.
enum QuestionInput {
    Typed(Typed),
    Signal(SignalAction),
    /// No answer is needed.
    NotAsked,
}
