//! `/call TOOL {JSON}` with a real model: the tool is called directly, without the model.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Instant;

use openclaw_protocol::mcp::ProgressEvent;
use openclaw_protocol::tools::{InvokeParams, InvokeResult};
use openclaw_protocol::{Event, EventReceiver, Received, RequestError, ask, names, rpc};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Chat;
use super::dialogue::{AfterQuestion, Dialogue, GatewayQuestion};
use super::editor::Editor;
use super::turn::{ChatTurnEnd, wait_for_servers};
use crate::commands::talk::{
    EventFilter, ShownCall, ShownMessage, TurnEvent, TurnOutput, TurnStatus, fresh_key,
};
use crate::error::CommandError;
use crate::output::Output;
use crate::signals::{SignalAction, Signals};

/// Calls a tool, and shows the result.
pub(super) async fn invoke(
    chat: &Chat<'_>,
    tool: &str,
    args: &str,
    editor: Option<&mut Editor>,
    signals: &mut Signals,
    output: &mut Output,
) -> ChatTurnEnd {
    let args = if args.is_empty() { "{}" } else { args };
    let args: Box<RawValue> = match serde_json::from_str::<Value>(args) {
        Ok(value) if value.is_object() => {
            serde_json::value::to_raw_value(&value).unwrap_or_default()
        }
        _ => {
            let error = CommandError::usage("the arguments must be a JSON object");
            output.error(&error.hint("use `/call TOOL {\"name\": \"value\"}`"));
            return ChatTurnEnd::Over(TurnStatus::Failed);
        }
    };
    // Also the token of the progress of the call.
    let token = fresh_key();
    let params = InvokeParams {
        name: tool.to_owned(),
        args: Some(args),
        session_key: Some(chat.session.clone()),
        agent_id: Some(chat.whom.agent.clone()),
        // The user typed the call, so it needs no further approval. Without a terminal, nobody did.
        confirm: editor.is_some().then_some(true),
        workspace: chat
            .workspace
            .as_deref()
            .and_then(|folder| folder.to_str())
            .map(ToOwned::to_owned),
        idempotency_key: Some(token.clone()),
        conversation_read_origin: Some("direct-operator".to_owned()),
    };
    let mut call = ShownCall {
        name: tool.to_owned(),
        args: params.args.as_ref().and_then(|args| serde_json::from_str(args.get()).ok()),
        ..ShownCall::default()
    };
    let mut view = TurnOutput::new(editor.as_ref().is_some_and(|editor| editor.can_draw()));
    if editor.is_some() {
        view.number_from(chat.results.next());
    }
    // The tool may belong to a server that is starting.
    if let Some(end) = wait_for_servers(chat, &mut view, signals, output).await {
        return end;
    }
    view.called(&call, output);
    let started = Instant::now();
    // Subscribed before the call: the server may elicit immediately.
    let events = chat.surface.events();
    let calling = ask::<rpc::ToolsInvoke>(chat.surface, params);
    let events = CallEvents { events, token, call: call.clone() };
    let under_way = PendingInvocation { events, held: VecDeque::new() };
    let answer = match under_way.follow(chat, calling, editor, &mut view, signals, output).await {
        Ok(answer) => answer,
        Err(signal) => {
            call.duration_ms = Some(started.elapsed().as_secs_f64() * 1_000.0);
            call.is_error = true;
            call.text = Some("The call was cancelled by the user.".to_owned());
            view.returned(&call, output);
            chat.results.add(&chat.session, view.take_results());
            return match signal {
                SignalAction::Interrupt => ChatTurnEnd::Over(TurnStatus::Cancelled),
                SignalAction::End | SignalAction::HangUp => ChatTurnEnd::Leave,
            };
        }
    };
    call.duration_ms = Some(started.elapsed().as_secs_f64() * 1_000.0);
    match answer {
        Ok(answer) => {
            call.is_error = !answer.ok;
            let failed = answer.error.map(|error| error.message);
            let text = || answer.output.as_deref().map(|raw| text_of(raw.get()));
            call.media =
                answer.output.as_deref().map(|raw| media_of(raw.get())).unwrap_or_default();
            call.text = failed.or_else(text);
        }
        Err(error) => {
            call.is_error = true;
            call.text = Some(error.to_string());
        }
    }
    view.returned(&call, output);
    chat.results.add(&chat.session, view.take_results());
    ChatTurnEnd::Over(if call.is_error { TurnStatus::Failed } else { TurnStatus::Done })
}

type Answered = Result<InvokeResult, RequestError>;

/// A running call, during which the server may elicit.
struct PendingInvocation {
    events: CallEvents,
    /// Elicitations and decisions that arrived during a prompt.
    held: VecDeque<TurnEvent>,
}

impl PendingInvocation {
    /// Waits for the result, or returns the signal that interrupted it.
    async fn follow(
        mut self,
        chat: &Chat<'_>,
        calling: impl Future<Output = Answered>,
        mut editor: Option<&mut Editor>,
        view: &mut TurnOutput,
        signals: &mut Signals,
        output: &mut Output,
    ) -> Result<Answered, SignalAction> {
        let mut calling = pin!(calling);
        loop {
            let step = match self.held.pop_front() {
                Some(step) => step,
                None => tokio::select! {
                    biased;
                    signal = signals.next() => return Err(signal),
                    answer = &mut calling => return Ok(answer),
                    step = self.events.next() => step,
                    () = view.due() => {
                        view.tick(output);
                        continue;
                    }
                },
            };
            if let TurnEvent::Advanced(call) = &step {
                view.runs(call, output);
            }
            let (TurnEvent::Elicited(elicitation), Some(editor)) = (step, editor.as_deref_mut())
            else {
                continue;
            };
            let question = GatewayQuestion::Elicitation(elicitation);
            let is_settled =
                |step: &TurnEvent| matches!(step, TurnEvent::Decided(id) if id == question.id());
            if self.held.iter().any(is_settled) {
                continue;
            }
            let mut answered = None;
            let settled = async {
                while !self.held.back().is_some_and(is_settled) {
                    tokio::select! {
                        biased;
                        answer = &mut calling => {
                            answered = Some(answer);
                            return;
                        }
                        step = self.events.next() => {
                            // Nothing is drawn during a prompt.
                            if !matches!(step, TurnEvent::Advanced(_)) {
                                self.held.push_back(step);
                            }
                        }
                    }
                }
            };
            let (surface, session) = (chat.surface, chat.session.as_str());
            let mut dialogue = Dialogue { surface, session, editor, view, signals, output };
            if let AfterQuestion::Cancel(signal) = dialogue.lead(&question, settled).await {
                return Err(signal);
            }
            if let Some(answer) = answered {
                return Ok(answer);
            }
        }
    }
}

/// The events of a running call.
struct CallEvents {
    events: EventReceiver,
    /// The token of its progress.
    token: String,
    call: ShownCall,
}

impl CallEvents {
    /// Waits for the next progress or elicitation, or for the decision of one. Cancel-safe.
    async fn next(&mut self) -> TurnEvent {
        // No run has an empty id: events of turns are ignored.
        let concern = EventFilter { run: "", session: "", all_questions: false };
        loop {
            match self.events.next().await {
                Some(Received::Event(event)) if &*event.event == names::MCP_PROGRESS => {
                    if let Some(call) = self.advanced(&event) {
                        return TurnEvent::Advanced(call);
                    }
                }
                Some(Received::Event(event)) => {
                    let step = TurnEvent::of(&event, concern);
                    if let Some(step @ (TurnEvent::Elicited(_) | TurnEvent::Decided(_))) = step {
                        return step;
                    }
                }
                Some(Received::Lagged(_)) => {}
                // The connection is closed, so the call itself fails.
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the call with its progress, if the event is about it.
    fn advanced(&self, event: &Event) -> Option<ShownCall> {
        let progress: ProgressEvent = event.read()?;
        let is_ours = progress.token == self.token;
        is_ours.then(|| ShownCall { progress: Some(progress.into()), ..self.call.clone() })
    }
}

/// Returns the text of a tool's output: the text of its parts, a string, or anything else as JSON.
fn text_of(output: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(output) else { return output.to_owned() };
    match &value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("content") => {
            ShownMessage::of(&value).unwrap_or_default().text()
        }
        other => other.to_string(),
    }
}

/// Returns the parts of a tool's output that are not text.
fn media_of(output: &str) -> Vec<Value> {
    let output: Value = serde_json::from_str(output).unwrap_or_default();
    let parts = output.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    parts.into_iter().filter(|part| part.get("data").is_some()).collect()
}
