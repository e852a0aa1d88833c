//! `openclaw agent`: sends one message and prints the answer.

use std::collections::VecDeque;
use std::io::{ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_protocol::Surface;
use openclaw_protocol::approvals::{Approval, Decision};
use openclaw_protocol::servers_settled;
use openclaw_trace::{SpanKind, Tracer};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use super::link::{ClientRole, GatewayTarget, Need, with_link};
use super::talk::approve::{self, ApprovalPrompt, TypedChoice, UserDecision};
use super::talk::{
    CallFormatter, ChatAgent, FollowedTurn, InputLines, OutgoingMessage, ShownCall, TurnEvent,
    TurnOutcome, TurnOutput, TurnStatus, way_to_allow, whole_stdin,
};
use super::workspace::{self, Conversation};
use crate::cli::TurnArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;
use crate::prompt::{OpenQuestion, say};
use crate::signals::Signals;
use openclaw_terminal::style::FAINT;
use openclaw_terminal::wrap::wrap;

/// How long to wait for servers before the turn starts without them.
const SERVERS: Duration = Duration::from_secs(20);
/// How long to wait for a turn to end after it was aborted.
const GOODBYE: Duration = Duration::from_secs(5);
/// The limit of a turn without `--timeout`.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of times that one question is asked.
const MAX_TRIES: usize = 3;

pub(crate) fn agent(args: &TurnArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let from_stdin = args.message == "-";
    let message = if from_stdin { whole_stdin() } else { Ok(args.message.clone()) };
    let message = message.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => CommandError::usage(error.to_string()),
        _ => CommandError::usage("cannot read stdin").cause(error.to_string()),
    })?;
    if message.trim().is_empty() {
        return Err(CommandError::usage("the message is empty")
            .hint("use `--message TEXT`, or `--message -` to read stdin"));
    }
    let has_user = edge.has_user() && !from_stdin;
    let role = if has_user { ClientRole::User } else { ClientRole::Script };
    let of = Conversation { agent: args.agent.as_deref(), session: args.session.as_deref() };
    let target = GatewayTarget::find(&args.gateway, edge)?;
    let named = args.workspace.as_deref();
    let workspace = workspace::choose(named, of, &target, has_user, edge, output)?;
    let need = Need::agents(role, workspace.clone());
    with_link(&need, &target, edge, output, async |link, signals, output| {
        let mut once = SingleTurn {
            surface: &*link.surface,
            tracer: &edge.tracer,
            workspace,
            typed: has_user.then(|| None),
            shows_calls: args.verbose || std::io::stderr().is_terminal(),
            gave_up: None,
            has_allowed: false,
            held: VecDeque::new(),
            view: (!output.json && output.columns().is_some())
                .then(|| TurnOutput::new(edge.can_draw())),
        };
        once.run(args, message, signals, output).await
    })
}

/// The state of one turn.
struct SingleTurn<'a> {
    surface: &'a dyn Surface,
    tracer: &'a Tracer,
    /// The folder to work in; `None` for the agent's workspace.
    workspace: Option<PathBuf>,
    /// The lines typed on stdin, once there was a prompt; `None` if the user cannot be prompted.
    typed: Option<Option<InputLines>>,
    shows_calls: bool,
    /// Why the turn was aborted.
    gave_up: Option<TurnStatus>,
    /// Whether a tool was always allowed.
    has_allowed: bool,
    /// Events that arrived during a prompt.
    held: VecDeque<TurnEvent>,
    /// The answer on the terminal, which is shown while it streams.
    view: Option<TurnOutput>,
}

impl SingleTurn<'_> {
    async fn run(
        &mut self,
        args: &TurnArgs,
        message: String,
        signals: &mut Signals,
        output: &mut Output,
    ) -> CommandResult {
        let limit = args.timeout.map(|limit| Duration::from_millis(limit.get()));
        let deadline = Instant::now() + limit.unwrap_or(DAY).min(DAY);
        let (agent, session) = (args.agent.as_deref(), args.session.as_deref());
        let whom = ChatAgent::find(self.surface, agent, session).await?;
        tokio::select! {
            () = servers_settled(self.surface, Some(&whom.agent), SERVERS) => {}
            () = sleep_until(deadline) => {}
            _ = signals.next() => return Err(CommandError::Interrupted),
        }
        let session = session.map_or_else(|| whom.new_session(), |named| whom.session(named));
        let words = OutgoingMessage {
            session: session.clone(),
            agent: whom.named_for(&session),
            message,
            is_plain: false,
            timeout: limit,
            workspace: self.workspace.clone(),
            attachments: Vec::new(),
            span: self.tracer.start("openclaw agent", SpanKind::Internal, None),
        };
        if let Some(view) = &mut self.view {
            view.thinking(output);
        }
        let mut turn = FollowedTurn::begin(self.surface, words).await?;
        let answer = self.follow(&mut turn, deadline, signals, output).await;
        let ending = self.gave_up.unwrap_or(answer.ending);
        let timed_out = limit.filter(|_| ending == TurnStatus::TimedOut);
        let error = timed_out.map(|limit| format!("timed out after {} ms", limit.as_millis()));
        let answer = TurnOutcome { ending, error: error.or(answer.error.clone()), ..answer };
        self.show(&answer, &turn.run, &session, args, output);
        match answer.exit() {
            (exit, Some(trouble)) => {
                let error = CommandError::new(exit, trouble);
                let denied = answer.denied_call().filter(|_| exit == Exit::Denied);
                let folder = self.workspace.as_deref().and_then(Path::to_str);
                let folder = folder.or(whom.workspace.as_deref());
                let hint = denied.and_then(|call| way_to_allow(call, agent, folder));
                Err(match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                })
            }
            (exit, None) => Ok(exit),
        }
    }

    /// Waits for the end of the turn. A signal or the deadline aborts it, and leaves [`GOODBYE`].
    async fn follow(
        &mut self,
        turn: &mut FollowedTurn<'_>,
        mut deadline: Instant,
        signals: &mut Signals,
        output: &mut Output,
    ) -> TurnOutcome {
        loop {
            tokio::select! {
                biased;
                step = next(&mut self.held, turn) => match step {
                    TurnEvent::Over(answer) => {
                        // The gateway has the same limit, starts counting later, and reports a
                        // timeout as cancelled.
                        let is_cancelled = answer.ending == TurnStatus::Cancelled;
                        if is_cancelled && self.gave_up.is_none() && Instant::now() >= deadline {
                            self.gave_up = Some(TurnStatus::TimedOut);
                        }
                        return *answer;
                    }
                    TurnEvent::Returned(call) => {
                        self.clear(output);
                        self.print_call(&call, output);
                        self.stream(TurnEvent::Thought, output);
                    }
                    TurnEvent::Notice(text) => {
                        self.clear(output);
                        output.note(&text);
                    }
                    // A script is not asked itself.
                    TurnEvent::Waits(title) if self.typed.is_none() => {
                        self.clear(output);
                        output.note(&format!("waiting for approval in an open chat: {title}"));
                    }
                    TurnEvent::Asked(approval) => {
                        self.clear(output);
                        self.decide(&approval, turn, signals, output).await;
                    }
                    TurnEvent::EndingServer(reason) => {
                        self.clear(output);
                        output.warning(&format!("the gateway is stopping: {reason}"));
                    }
                    step => self.stream(step, output),
                },
                () = due(self.view.as_ref()) => {
                    if let Some(view) = &mut self.view {
                        view.tick(output);
                    }
                }
                _ = signals.next() => {
                    if self.gave_up.is_some() {
                        return turn.given_up(TurnStatus::Cancelled);
                    }
                    self.give_up(TurnStatus::Cancelled, turn).await;
                    deadline = Instant::now() + GOODBYE;
                }
                () = sleep_until(deadline) => {
                    if let Some(ending) = self.gave_up {
                        return turn.given_up(ending);
                    }
                    self.give_up(TurnStatus::TimedOut, turn).await;
                    deadline = Instant::now() + GOODBYE;
                }
            }
        }
    }

    async fn give_up(&mut self, why: TurnStatus, turn: &FollowedTurn<'_>) {
        self.gave_up = Some(why);
        // Errors do not matter: the command exits anyway.
        let _ = timeout(GOODBYE, turn.abort()).await;
    }

    /// Shows more of the answer, or what is running.
    fn stream(&mut self, step: TurnEvent, output: &mut Output) {
        let Some(view) = &mut self.view else { return };
        match step {
            TurnEvent::Text(text) => view.text(&text, output),
            TurnEvent::Replaced(text) => view.replaced(&text, output),
            TurnEvent::Thought => view.thinking(output),
            TurnEvent::Called(call) => view.called(&call, output),
            TurnEvent::Advanced(call) => view.runs(&call, output),
            // No server elicits here: this client does not announce that capability.
            _ => {}
        }
    }

    /// Makes room for lines on stderr.
    fn clear(&mut self, output: &mut Output) {
        if let Some(view) = &mut self.view {
            view.new_line(output);
            output.flush();
        }
    }

    fn print_call(&self, call: &ShownCall, output: &mut Output) {
        if self.shows_calls {
            CallFormatter::call(call).iter().for_each(|line| output.aside(line));
        }
    }

    /// Asks the user for approval. Returns early if the request is decided elsewhere.
    async fn decide(
        &mut self,
        approval: &Approval,
        turn: &mut FollowedTurn<'_>,
        signals: &mut Signals,
        output: &mut Output,
    ) {
        let Self { typed: Some(typed), held, .. } = self else { return };
        let is_settled = |step: &TurnEvent| is_settled(step, &approval.id);
        if held.iter().any(is_settled) {
            return;
        }
        let typed = typed.get_or_insert_with(InputLines::of_stdin);
        // "Always" also settles earlier requests for the same tool.
        if self.has_allowed && !approve::is_open(self.surface, &approval.id).await {
            return;
        }
        let request = ApprovalPrompt::new(approval, output.labelled_width());
        let decision = tokio::select! {
            decision = ask(request, typed, output) => Some(decision),
            _ = signals.next() => None,
            () = until(approval.expires_at_ms) => return,
            () = withdrawn(held, turn, is_settled) => {
                output.aside("  answered elsewhere, or withdrawn");
                return;
            }
        };
        let interrupted = decision.is_none();
        let decision = decision.unwrap_or(UserDecision::DENY);
        self.has_allowed |= decision.decision == Decision::AllowAlways;
        if let Err(error) = approve::respond(self.surface, &approval.id, decision).await {
            output.warning(&error.to_string());
        }
        if interrupted {
            self.give_up(TurnStatus::Cancelled, turn).await;
        }
    }

    fn show(
        &mut self,
        answer: &TurnOutcome,
        run: &str,
        session: &str,
        args: &TurnArgs,
        output: &mut Output,
    ) {
        if output.json {
            let (_, trouble) = answer.exit();
            output.value(&json!({
                "ok": trouble.is_none(),
                "sessionKey": session,
                "runId": run,
                "text": answer.text,
                "parts": answer.content,
                "calls": answer.calls,
                "usage": answer.usage,
                "stopReason": answer.stop_reason,
                "error": trouble,
            }));
            return;
        }
        if let Some(view) = &mut self.view {
            view.complete(answer, output);
            output.flush();
        } else if !answer.text.trim().is_empty() {
            output.answer(&answer.text);
        }
        if answer.is_empty() {
            output.note("the model returned an empty answer");
        }
        if let Some(used) = answer.used().filter(|_| self.shows_calls) {
            output.aside(&format!("{FAINT}· {used}{FAINT:#}"));
        }
        if args.session.is_none() && self.shows_calls {
            output.note(&format!("use `--session {session}` to continue this session"));
        }
    }
}

/// Waits until a temporary line has to be redrawn. Cancel-safe.
async fn due(view: Option<&TurnOutput>) {
    match view {
        Some(view) => view.due().await,
        None => std::future::pending().await,
    }
}

/// Returns the next event, first those that arrived during a prompt. Cancel-safe.
async fn next(held: &mut VecDeque<TurnEvent>, turn: &mut FollowedTurn<'_>) -> TurnEvent {
    match held.pop_front() {
        Some(step) => step,
        None => turn.next().await,
    }
}

/// Waits until a request is settled; events that arrive meanwhile are kept.
async fn withdrawn(
    held: &mut VecDeque<TurnEvent>,
    turn: &mut FollowedTurn<'_>,
    is_settled: impl Fn(&TurnEvent) -> bool,
) {
    loop {
        held.push_back(turn.next().await);
        if held.back().is_some_and(&is_settled) {
            return;
        }
    }
}

/// Whether a request needs no answer any more: it was decided elsewhere, or the turn is over.
fn is_settled(step: &TurnEvent, id: &str) -> bool {
    match step {
        TurnEvent::Decided(decided) => decided == id,
        TurnEvent::Over(_) => true,
        _ => false,
    }
}

/// Prompts on stderr until there is a valid answer. Without one, the call is denied.
async fn ask(
    mut request: ApprovalPrompt<'_>,
    typed: &mut InputLines,
    output: &mut Output,
) -> UserDecision {
    request.lines().iter().for_each(|line| output.aside(line));
    for _ in 0..MAX_TRIES {
        typed.forget();
        say(&wrap(&format!("  {} ", request.choices()), output.labelled_width().into()));
        // Without an answer, also if this is dropped, it ends the line.
        let open = OpenQuestion::new();
        let Ok(Some(line)) = typed.next().await else { break };
        open.answered();
        match request.meaning(&line) {
            Some(TypedChoice::Decision(decision)) => return decision,
            Some(TypedChoice::ShowAll) => {
                request.show_all();
                request.lines().iter().for_each(|line| output.aside(line));
            }
            None => output.aside(&request.wrong_answer()),
        }
    }
    UserDecision::DENY
}

/// Waits until a time in milliseconds since 1970.
async fn until(time_ms: u64) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let left = Duration::from_millis(time_ms).saturating_sub(now.unwrap_or_default());
    tokio::time::sleep(left.min(DAY)).await;
}
