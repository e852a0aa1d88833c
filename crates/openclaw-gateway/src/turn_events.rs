//! Sends the events of a turn to callers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use openclaw_agent::{Ended, Event, Observer, TurnResult};
use openclaw_models::{Part, Usage};
use openclaw_protocol::chat::{AgentEvent, ChatEvent, ChatState, ErrorKind};
use openclaw_protocol::names;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::gateway::{Gateway, now_ms};
use crate::runs::Run;

/// Text is sent immediately if nothing was sent for this long; otherwise it is buffered.
const GATHER: Duration = Duration::from_millis(25);
const GATHER_BYTES: usize = 2_048;
/// Maximum characters of a tool result in an event; models see all of it.
const SHOWN: usize = 4_000;

/// Sends the events of a turn.
pub(crate) struct TurnEvents {
    gateway: std::sync::Weak<Gateway>,
    run: String,
    session: String,
    agent: String,
    state: Mutex<PendingText>,
    /// Notified when text was buffered.
    gathered: Notify,
}

#[derive(Default)]
struct PendingText {
    chat: u64,
    agent: u64,
    /// Buffered text, and whether it is reasoning.
    text: String,
    is_thought: bool,
    last: Option<Instant>,
}

impl TurnEvents {
    pub(crate) fn new(gateway: &Arc<Gateway>, run: &Run, agent: &str) -> Self {
        Self {
            gateway: Arc::downgrade(gateway),
            run: run.id.clone(),
            session: run.session.clone(),
            agent: agent.to_owned(),
            state: Mutex::default(),
            gathered: Notify::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PendingText> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn chat(&self, state: ChatState) {
        let Some(gateway) = self.gateway.upgrade() else { return };
        let seq = {
            let mut told = self.lock();
            told.chat += 1;
            told.chat
        };
        let event = ChatEvent {
            run_id: self.run.clone(),
            session_key: self.session.clone(),
            agent_id: Some(self.agent.clone()),
            spawned_by: None,
            seq,
            state,
        };
        gateway.callers.tell_followers(&self.session, names::CHAT, &event);
    }

    pub(crate) fn agent(&self, stream: &str, data: Value) {
        let Some(gateway) = self.gateway.upgrade() else { return };
        let seq = {
            let mut told = self.lock();
            told.agent += 1;
            told.agent
        };
        let event = AgentEvent {
            run_id: self.run.clone(),
            seq,
            stream: stream.to_owned(),
            ts: now_ms(),
            spawned_by: None,
            is_heartbeat: None,
            data,
        };
        gateway.callers.tell_followers(&self.session, names::AGENT, &event);
    }

    /// Buffers text briefly, to avoid an event for every few characters.
    fn text(&self, text: &str, is_thought: bool) {
        if self.lock().is_thought != is_thought {
            self.flush();
        }
        let is_due = {
            let mut told = self.lock();
            told.is_thought = is_thought;
            told.text.push_str(text);
            let is_due = told.last.is_none_or(|last| last.elapsed() >= GATHER);
            is_due || told.text.len() >= GATHER_BYTES
        };
        if is_due {
            self.flush();
        } else {
            self.gathered.notify_one();
        }
    }

    /// Flushes buffered text even if no more text follows.
    pub(crate) async fn flush_what_waits(&self) -> Infallible {
        loop {
            self.gathered.notified().await;
            tokio::time::sleep(GATHER).await;
            self.flush();
        }
    }

    /// Sends the buffered text.
    pub(crate) fn flush(&self) {
        let (text, is_thought) = {
            let mut told = self.lock();
            told.last = Some(Instant::now());
            (std::mem::take(&mut told.text), told.is_thought)
        };
        if text.is_empty() {
            return;
        }
        if is_thought {
            return self.agent("reasoning", json!({ "delta": text }));
        }
        self.agent("assistant", json!({ "delta": text }));
        let delta_text = text;
        self.chat(ChatState::Delta { message: None, delta_text, replace: None, usage: None });
    }

    /// Reports the start, with the message: the sender may be another client.
    pub(crate) fn started(&self, message: &str) {
        let data = json!({
            "phase": "start",
            "startedAt": now_ms(),
            "sessionKey": self.session,
            "message": shown(message),
        });
        self.agent("lifecycle", data);
    }

    pub(crate) fn answered(&self, answer: &TurnResult) {
        let message = message(&answer.text, &answer.parts);
        let (usage, stop) = (usage(answer.usage), answer.ended.name().to_owned());
        let (message, usage, stop_reason) = (Some(message), Some(usage), Some(stop));
        self.chat(ChatState::Final { message, usage, stop_reason });
    }

    /// Sends an answer that was not written by a model.
    pub(crate) fn said(&self, text: &str) {
        let message = Some(message(text, &[]));
        let stop_reason = Some(Ended::Done.name().to_owned());
        self.chat(ChatState::Final { message, usage: None, stop_reason });
    }

    pub(crate) fn aborted(&self, text: &str, reason: &str) {
        self.chat(ChatState::Aborted {
            message: (!text.is_empty()).then(|| message(text, &[])),
            error_message: None,
            stop_reason: Some(reason.to_owned()),
        });
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
    fn see(&self, event: Event) {
        match event {
            Event::Text(text) => return self.text(&text, false),
            Event::Reasoning(text) => return self.text(&text, true),
            _ => self.flush(),
        }
        match event {
            Event::Text(_) | Event::Reasoning(_) | Event::Part(_) => {}
            Event::CallStarted(call) => self.agent(
                "tool",
                json!({
                    "phase": "start",
                    "toolCallId": call.id,
                    "name": call.name,
                    "label": call.label,
                    "args": serde_json::from_str::<Value>(&call.arguments)
                        .unwrap_or(Value::String(call.arguments)),
                }),
            ),
            Event::CallProgress(call) => self.agent(
                "tool",
                json!({
                    "phase": "update",
                    "toolCallId": call.id,
                    "name": call.name,
                    "progress": {
                        "done": call.progress.done,
                        "percent": call.progress.percent(),
                        "message": call.progress.message,
                    },
                }),
            ),
            Event::CallEnded(call) => self.agent(
                "tool",
                json!({
                    "phase": "result",
                    "toolCallId": call.id,
                    "name": call.name,
                    "isError": call.is_error,
                    "text": shown(&call.text),
                    "untrusted": call.untrusted,
                    "durationMs": call.duration.as_secs_f64() * 1_000.0,
                    "failure": call.failure.map(openclaw_tools::Failure::name),
                    "findings": call.findings,
                    "keptIn": call.kept_in,
                }),
            ),
            Event::Usage { usage: used, window } => {
                let mut data = usage(used);
                data["contextTokens"] = json!(window);
                self.agent("usage", data);
            }
            Event::Notice(text) => self.agent("notice", json!({ "text": text })),
        }
    }
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

fn usage(usage: Usage) -> Value {
    serde_json::to_value(usage).unwrap_or_default()
}

/// Truncates a result for display.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
