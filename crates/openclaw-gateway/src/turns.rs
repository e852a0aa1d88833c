//! A message becomes a turn, and the turn becomes events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use openclaw_agent::{Agent, Answer, Ended, Event, Observer, Turn, TurnError};
use openclaw_models::{ModelError, Part, Usage};
use openclaw_protocol::chat::{AgentEvent, ChatEvent, ChatState, ErrorKind, SendStatus};
use openclaw_protocol::names;
use openclaw_sessions::SessionKey;
use openclaw_tools::{ToolSet, Toolbox};
use serde_json::{Value, json};

use crate::agents::InService;
use crate::briefing;
use crate::gateway::{Gateway, now_ms};
use crate::questions::Asker;
use crate::runs::Run;

/// Text is told at once if nothing was told for so long; otherwise it is gathered a little.
const GATHER: Duration = Duration::from_millis(25);
const GATHER_BYTES: usize = 2_048;
/// What people see of a result in an event; models see it whole.
const SHOWN: usize = 4_000;

/// A turn that is to be run.
pub(crate) struct Wanted {
    pub(crate) run: Run,
    pub(crate) key: SessionKey,
    pub(crate) agent: Arc<InService>,
    pub(crate) message: Vec<Part>,
    pub(crate) who: String,
    pub(crate) timeout: Option<Duration>,
}

/// Runs a turn to its end, and tells those who follow its session.
pub(crate) async fn run(gateway: Arc<Gateway>, mut wanted: Wanted) {
    let teller = Arc::new(Teller::new(&gateway, &wanted.run, wanted.agent.config.id.as_str()));
    let turn = wanted.run.turn().await;
    if turn.is_none() {
        teller.aborted(String::new(), "cancelled");
        return;
    }
    teller.agent("lifecycle", json!({ "phase": "start", "startedAt": now_ms() }));
    let answer = Box::pin(answer(&gateway, &wanted, &teller)).await;
    teller.flush();
    match answer {
        Ok(answer) => {
            wanted.run.ended = SendStatus::Ok;
            teller.agent("lifecycle", json!({ "phase": "end", "endedAt": now_ms() }));
            teller.answered(&answer);
        }
        Err(error) => {
            tracing::warn!(session = %wanted.key, %error, "a turn failed");
            let data = json!({ "phase": "error", "error": error.to_string(), "endedAt": now_ms() });
            teller.agent("lifecycle", data);
            teller.failed(&error);
        }
    }
}

async fn answer(
    gateway: &Arc<Gateway>,
    wanted: &Wanted,
    teller: &Arc<Teller>,
) -> Result<Answer, TurnError> {
    let service = &wanted.agent;
    let id = service.config.id.as_str();
    let agent = Agent {
        id: id.to_owned(),
        models: service.models.open().await?,
        store: Arc::clone(&gateway.store),
        instructions: briefing::instructions(service),
        limits: service.limits,
    };
    let lent = gateway.lent.of(gateway, wanted.key.as_str());
    let tools = Toolbox::new([lent, Arc::clone(&service.tools) as Arc<dyn ToolSet>]);
    let turn = Turn {
        session: wanted.key.clone(),
        run: wanted.run.id.clone(),
        message: wanted.message.clone(),
        who: wanted.who.clone(),
        briefing: briefing::of(gateway, service).await,
        tools: Arc::new(tools),
        approver: Arc::new(Asker {
            gateway: Arc::downgrade(gateway),
            agent: id.to_owned(),
            run: wanted.run.id.clone(),
            patience: service.config.approval.timeout,
        }),
        observer: Arc::clone(teller) as Arc<dyn Observer>,
        cancel: wanted.run.cancel.clone(),
    };
    let Some(timeout) = wanted.timeout else { return agent.answer(&turn).await };
    let mut answering = std::pin::pin!(agent.answer(&turn));
    tokio::select! {
        answer = &mut answering => answer,
        () = tokio::time::sleep(timeout) => {
            turn.cancel.cancel();
            answering.await
        }
    }
}

/// Tells what happens in a turn.
pub(crate) struct Teller {
    gateway: std::sync::Weak<Gateway>,
    run: String,
    session: String,
    agent: String,
    state: Mutex<Told>,
}

struct Told {
    chat: u64,
    agent: u64,
    text: String,
    last: Option<Instant>,
}

impl Teller {
    pub(crate) fn new(gateway: &Arc<Gateway>, run: &Run, agent: &str) -> Self {
        Self {
            gateway: Arc::downgrade(gateway),
            run: run.id.clone(),
            session: run.session.clone(),
            agent: agent.to_owned(),
            state: Mutex::new(Told { chat: 0, agent: 0, text: String::new(), last: None }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Told> {
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

    /// Text is gathered a little: an event for every letter helps nobody.
    fn text(&self, text: &str) {
        let is_due = {
            let mut told = self.lock();
            told.text.push_str(text);
            let is_due = told.last.is_none_or(|last| last.elapsed() >= GATHER);
            is_due || told.text.len() >= GATHER_BYTES
        };
        if is_due {
            self.flush();
        }
    }

    /// Tells the text that was gathered.
    pub(crate) fn flush(&self) {
        let text = {
            let mut told = self.lock();
            told.last = Some(Instant::now());
            std::mem::take(&mut told.text)
        };
        if !text.is_empty() {
            self.agent("assistant", json!({ "delta": text }));
            let delta_text = text;
            self.chat(ChatState::Delta { message: None, delta_text, replace: None, usage: None });
        }
    }

    fn answered(&self, answer: &Answer) {
        let message = message(&answer.text, &answer.parts);
        let (usage, stop) = (usage(answer.usage), answer.ended.name().to_owned());
        if answer.ended == Ended::Cancelled {
            return self.aborted(answer.text.clone(), &stop);
        }
        let (message, usage, stop_reason) = (Some(message), Some(usage), Some(stop));
        self.chat(ChatState::Final { message, usage, stop_reason });
    }

    /// An answer that no model wrote.
    pub(crate) fn said(&self, text: &str) {
        let message = Some(message(text, &[]));
        let stop_reason = Some(Ended::Done.name().to_owned());
        self.chat(ChatState::Final { message, usage: None, stop_reason });
    }

    pub(crate) fn aborted(&self, text: String, reason: &str) {
        self.chat(ChatState::Aborted {
            message: (!text.is_empty()).then(|| message(&text, &[])),
            error_message: None,
            stop_reason: Some(reason.to_owned()),
        });
    }

    fn failed(&self, error: &TurnError) {
        let kind = match error {
            TurnError::Model(ModelError::RateLimited { .. }) => ErrorKind::RateLimit,
            TurnError::Model(ModelError::ContextTooLong) => ErrorKind::ContextLength,
            TurnError::Model(ModelError::Silent(_)) => ErrorKind::Timeout,
            _ => ErrorKind::Unknown,
        };
        self.chat(ChatState::Error {
            message: None,
            error_message: Some(error.to_string()),
            error_kind: Some(kind),
            error_detail: None,
            usage: None,
            stop_reason: None,
        });
    }
}

impl Observer for Teller {
    fn see(&self, event: Event) {
        match event {
            Event::Text(text) => return self.text(&text),
            Event::Reasoning(text) => return self.agent("reasoning", json!({ "delta": text })),
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
            Event::CallEnded(call) => self.agent(
                "tool",
                json!({
                    "phase": "result",
                    "toolCallId": call.id,
                    "name": call.name,
                    "isError": call.is_error,
                    "text": shown(&call.text),
                    "durationMs": call.duration.as_secs_f64() * 1_000.0,
                    "failure": call.failure.map(openclaw_tools::Failure::name),
                    "findings": call.findings,
                    "keptIn": call.kept_in,
                }),
            ),
            Event::Usage(used) => self.agent("usage", usage(used)),
            Event::Notice(text) => self.agent("notice", json!({ "text": text })),
        }
    }
}

/// A message as the protocol has it.
pub(crate) fn message(text: &str, parts: &[Part]) -> Value {
    let mut content = Vec::new();
    if !text.is_empty() || parts.is_empty() {
        content.push(json!({ "type": "text", "text": text }));
    }
    content.extend(parts.iter().map(|part| serde_json::to_value(part).unwrap_or_default()));
    json!({ "role": "assistant", "content": content, "timestamp": now_ms() })
}

fn usage(usage: Usage) -> Value {
    serde_json::to_value(usage).unwrap_or_default()
}

/// What people see of a result: the text itself, without the boundary that is there for models.
fn shown(text: &str) -> String {
    let inner = openclaw_content::unwrap(text).map_or(text, openclaw_content::Untrusted::expose);
    match inner.char_indices().nth(SHOWN) {
        None => inner.to_owned(),
        Some((end, _)) => format!("{}…", &inner[..end]),
    }
}
