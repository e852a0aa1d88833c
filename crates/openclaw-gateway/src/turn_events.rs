//! Sends the events of a turn to callers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_agent::{EndReason, LoopEvent, Observer, TurnResult};
use openclaw_models::{Part, Usage};
use openclaw_protocol::agent_event::{
    AgentData, AgentEvent, ApprovalPhase, Notice, RequestedApproval, RunPhase, RunUsage, TextDelta,
    ToolPhase, ToolProgress, ToolResult, ToolStart, ToolUpdate,
};
use openclaw_protocol::approvals::Approval;
use openclaw_protocol::approvals::published::ExecDetails;
use openclaw_protocol::chat::{ChatEvent, ChatState, ErrorKind};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::callers::Callers;
use crate::clock::now_ms;
use crate::runs::RegisteredRun;

/// Text is sent immediately if nothing was sent for this long; otherwise it is buffered.
const GATHER: Duration = Duration::from_millis(25);
const GATHER_BYTES: usize = 2_048;
/// The same for clients that get the whole text with every delta: the interval grows with the text,
/// so that the cost of a long answer stays proportional to its length.
const GATHER_WHOLE: Duration = Duration::from_millis(100);
/// The interval is extended by its own length per this many bytes of text.
const WHOLE_STEP: usize = 16 * 1024;
/// Maximum characters of a tool result in an event; models see all of it.
const SHOWN: usize = 4_000;

/// Sends the events of a turn.
pub(crate) struct TurnEvents {
    callers: Arc<Callers>,
    run: String,
    session: String,
    agent: String,
    state: Mutex<PendingText>,
    /// Notified when text was buffered, for the two kinds of followers.
    gathered: Notify,
    gathered_whole: Notify,
}

#[derive(Default)]
struct PendingText {
    chat: u64,
    agent: u64,
    /// Buffered text, and whether it is reasoning.
    text: String,
    is_thought: bool,
    last: Option<Instant>,
    whole: WholeText,
}

/// The text of the turn so far, for clients that do not assemble it themselves.
#[derive(Default)]
struct WholeText {
    chat: u64,
    text: String,
    /// How much of it was sent.
    sent: usize,
    last: Option<Instant>,
    /// Whether a call was made after the last text: the next one begins a paragraph.
    is_interrupted: bool,
}

impl WholeText {
    fn push(&mut self, text: &str) {
        if std::mem::take(&mut self.is_interrupted) && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    /// How long text is buffered.
    fn interval(&self) -> Duration {
        let steps = u32::try_from(self.text.len() / WHOLE_STEP).unwrap_or(u32::MAX);
        GATHER_WHOLE.saturating_mul(steps.saturating_add(1))
    }

    /// Takes the delta if it is due, or if it has to be sent in any case.
    fn take(&mut self, in_any_case: bool) -> Option<ChatState> {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= self.interval());
        if self.sent == self.text.len() || !(is_due || in_any_case) {
            return None;
        }
        let delta_text = self.text[self.sent..].to_owned();
        self.sent = self.text.len();
        self.last = Some(Instant::now());
        let message = Some(message(&self.text, &[]));
        Some(ChatState::Delta { message, delta_text, replace: None, usage: None })
    }
}

impl std::fmt::Debug for TurnEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnEvents").field("run", &self.run).finish_non_exhaustive()
    }
}

impl TurnEvents {
    pub(crate) fn new(callers: &Arc<Callers>, run: &RegisteredRun, agent: &str) -> Self {
        Self {
            callers: Arc::clone(callers),
            run: run.id.clone(),
            session: run.session.clone(),
            agent: agent.to_owned(),
            state: Mutex::default(),
            gathered: Notify::new(),
            gathered_whole: Notify::new(),
        }
    }

    pub(crate) fn chat(&self, state: ChatState) {
        self.chat_to(true, state.clone());
        self.chat_to(false, state);
    }

    /// Sends a chat event to the followers that assemble deltas, or to the others. Their events are
    /// counted separately.
    fn chat_to(&self, assembles: bool, state: ChatState) {
        let seq = {
            let mut told = self.state.lock();
            let seq = if assembles { &mut told.chat } else { &mut told.whole.chat };
            *seq += 1;
            *seq
        };
        let event = ChatEvent {
            run_id: self.run.clone(),
            session_key: self.session.clone(),
            agent_id: Some(self.agent.clone()),
            spawned_by: None,
            seq,
            state,
        };
        self.callers.send_chat(&self.session, assembles, event);
    }

    fn agent(&self, data: AgentData) {
        self.agent_except(None, data);
    }

    /// Like [`agent`](Self::agent), but not for one caller.
    fn agent_except(&self, caller: Option<u64>, data: AgentData) {
        let seq = {
            let mut told = self.state.lock();
            told.agent += 1;
            told.agent
        };
        let event = AgentEvent {
            run_id: self.run.clone(),
            seq,
            ts: now_ms(),
            session_key: Some(self.session.clone()),
            spawned_by: None,
            is_heartbeat: None,
            data,
        };
        self.callers.send_to_followers(&self.session, caller, event);
    }

    fn tool(&self, phase: ToolPhase) {
        self.agent(AgentData::Tool(phase));
    }

    /// Buffers text briefly, to avoid an event for every few characters.
    fn text(&self, text: &str, is_thought: bool) {
        if self.state.lock().is_thought != is_thought {
            self.send_text();
        }
        let is_due = {
            let mut told = self.state.lock();
            told.is_thought = is_thought;
            told.text.push_str(text);
            if !is_thought {
                told.whole.push(text);
            }
            let is_due = told.last.is_none_or(|last| last.elapsed() >= GATHER);
            is_due || told.text.len() >= GATHER_BYTES
        };
        if is_due {
            self.send_text();
        } else {
            self.gathered.notify_one();
        }
        self.send_whole(false);
    }

    /// Flushes buffered text even if no more text follows.
    pub(crate) async fn flush_what_waits(&self) -> Infallible {
        let short = async {
            loop {
                self.gathered.notified().await;
                tokio::time::sleep(GATHER).await;
                self.send_text();
            }
        };
        let whole = async {
            loop {
                self.gathered_whole.notified().await;
                let interval = self.state.lock().whole.interval();
                tokio::time::sleep(interval).await;
                self.send_whole(false);
            }
        };
        futures_util::future::select(std::pin::pin!(short), std::pin::pin!(whole))
            .await
            .factor_first()
            .0
    }

    /// Sends all buffered text.
    pub(crate) fn flush(&self) {
        self.send_text();
        self.send_whole(true);
    }

    /// Sends the buffered text to the followers that assemble deltas.
    fn send_text(&self) {
        let (text, is_thought) = {
            let mut told = self.state.lock();
            told.last = Some(Instant::now());
            (std::mem::take(&mut told.text), told.is_thought)
        };
        if text.is_empty() {
            return;
        }
        if is_thought {
            return self.agent(AgentData::Reasoning(TextDelta { delta: text }));
        }
        self.agent(AgentData::Assistant(TextDelta { delta: text.clone() }));
        let delta_text = text;
        let state = ChatState::Delta { message: None, delta_text, replace: None, usage: None };
        self.chat_to(true, state);
    }

    /// Sends the text so far to the others, if it is due.
    fn send_whole(&self, in_any_case: bool) {
        // Without such a follower, the text is only kept.
        if !self.callers.has_chat_follower(&self.session, false) {
            return;
        }
        let delta = self.state.lock().whole.take(in_any_case);
        match delta {
            Some(delta) => self.chat_to(false, delta),
            None if in_any_case => {}
            None => self.gathered_whole.notify_one(),
        }
    }

    /// Reports the start, with the message: the sender may be another client.
    pub(crate) fn started(&self, message: &str) {
        self.agent(self.start(message));
    }

    fn start(&self, message: &str) -> AgentData {
        AgentData::Lifecycle(RunPhase::Start {
            started_at: Some(now_ms()),
            session_key: Some(self.session.clone()),
            message: Some(shown(message)),
        })
    }

    /// Reports the end.
    pub(crate) fn ended(&self) {
        self.agent(end());
    }

    /// Reports a call that waits for approval, for clients that show approvals as part of the turn. The
    /// kind is the only one that they know.
    pub(crate) fn approval_requested(&self, asked: &Approval) {
        let details = ExecDetails::from(asked);
        self.agent(AgentData::Approval(ApprovalPhase::Requested(RequestedApproval {
            kind: Some("exec".to_owned()),
            status: Some("pending".to_owned()),
            approval_id: Some(details.id),
            title: asked.title.clone(),
            command: Some(details.command_text),
        })));
    }

    pub(crate) fn answered(&self, answer: &TurnResult) {
        let message = message(&answer.text, &answer.parts);
        let usage = serde_json::to_value(answer.usage).unwrap_or_default();
        let stop = answer.ended.name().to_owned();
        let (message, usage, stop_reason) = (Some(message), Some(usage), Some(stop));
        self.chat(ChatState::Final { message, usage, stop_reason });
    }

    /// Sends the answer to a command, and the command to the other clients. Its sender is not told that a
    /// run begins: the TUI of the Node OpenClaw would wait for its end for ever if that arrived together
    /// with the response that accepts the message.
    pub(crate) fn command_answered(&self, sender: u64, command: &str, text: &str) {
        self.agent_except(Some(sender), self.start(command));
        self.agent_except(Some(sender), end());
        let message = Some(message(text, &[]));
        let stop_reason = Some(EndReason::Done.name().to_owned());
        self.chat(ChatState::Final { message, usage: None, stop_reason });
    }

    pub(crate) fn aborted(&self, text: &str, reason: &str) {
        self.chat(ChatState::Aborted {
            message: (!text.is_empty()).then(|| message(text, &[])),
            error_message: None,
            stop_reason: Some(reason.to_owned()),
        });
    }

    /// Reports that a run that had begun has failed.
    pub(crate) fn run_failed(&self, message: String, kind: ErrorKind) {
        let (error, ended_at) = (Some(message.clone()), Some(now_ms()));
        self.agent(AgentData::Lifecycle(RunPhase::Error { error, ended_at }));
        self.failed(message, kind);
    }

    pub(crate) fn failed(&self, words: String, kind: ErrorKind) {
        self.chat(ChatState::Error {
            message: None,
            error_message: Some(words),
            error_kind: Some(kind),
            error_detail: None,
            usage: None,
            stop_reason: None,
        });
    }
}

impl Observer for TurnEvents {
    fn see(&self, event: LoopEvent) {
        match event {
            LoopEvent::Text(text) => return self.text(&text, false),
            LoopEvent::Reasoning(text) => return self.text(&text, true),
            _ => self.flush(),
        }
        match event {
            LoopEvent::Text(_) | LoopEvent::Reasoning(_) | LoopEvent::Part(_) => {}
            LoopEvent::CallStarted(call) => {
                self.state.lock().whole.is_interrupted = true;
                let args = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| Value::String(call.arguments));
                self.tool(ToolPhase::Start(ToolStart {
                    tool_call_id: call.id,
                    name: call.name,
                    label: Some(call.label),
                    args: Some(args),
                }));
            }
            LoopEvent::CallProgress(call) => {
                let percent = call.progress.percent();
                let message = call.progress.message;
                self.tool(ToolPhase::Update(ToolUpdate {
                    tool_call_id: call.id,
                    name: call.name,
                    partial_result: Some(result(message.as_deref().unwrap_or_default())),
                    progress: Some(ToolProgress { done: call.progress.done, percent, message }),
                }));
            }
            LoopEvent::CallEnded(call) => {
                let text = shown(&call.text);
                self.tool(ToolPhase::Result(ToolResult {
                    tool_call_id: call.id,
                    name: call.name,
                    is_error: call.is_error,
                    result: Some(result(&text)),
                    text,
                    untrusted: call.untrusted,
                    duration_ms: Some(call.duration.as_secs_f64() * 1_000.0),
                    failure: call.failure.map(|failure| failure.name().to_owned()),
                    refused_by: call.refused.map(|check| check.name().to_owned()),
                    findings: call.findings,
                    kept_in: call.kept_in.map(|path| path.to_string_lossy().into_owned()),
                }));
            }
            LoopEvent::Usage { usage, window } => {
                let Usage { input_tokens, output_tokens, cached_tokens, cost_usd } = usage;
                self.agent(AgentData::Usage(RunUsage {
                    input_tokens,
                    output_tokens,
                    cached_tokens,
                    cost_usd,
                    context_tokens: window,
                }));
            }
            LoopEvent::Notice(text) => self.agent(AgentData::Notice(Notice { text })),
        }
    }
}

fn end() -> AgentData {
    AgentData::Lifecycle(RunPhase::End { ended_at: Some(now_ms()) })
}

/// A message in the format of the protocol.
fn message(text: &str, parts: &[Part]) -> Value {
    let mut content = Vec::new();
    if !text.is_empty() || parts.is_empty() {
        content.push(json!({ "type": "text", "text": text }));
    }
    let media = parts.iter().filter(|part| part.as_text().is_none());
    content.extend(media.map(|part| serde_json::to_value(part).unwrap_or_default()));
    json!({ "role": "assistant", "content": content, "timestamp": now_ms() })
}

/// A tool's result in the format of the protocol.
fn result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Truncates a result for display.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… ({more} more characters)", &text[..end])
        }
    }
}
