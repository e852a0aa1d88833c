//! `/call TOOL {JSON}` where a real model listens: the tool is called without it.

use std::time::Instant;

use openclaw_protocol::tools::{InvokeParams, InvokeResult};
use openclaw_protocol::{AskError, Method, ask};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Chat;
use super::speak::Spoken;
use crate::commands::talk::{Call, Ending, Message, View, fresh_key};
use crate::output::Output;
use crate::signals::{Signals, Wish};

/// Calls a tool, and shows what comes of it.
pub(super) async fn invoke(
    chat: &Chat<'_>,
    tool: &str,
    args: &str,
    can_draw: bool,
    signals: &mut Signals,
    output: &mut Output,
) -> Spoken {
    let args = if args.is_empty() { "{}" } else { args };
    let args: Box<RawValue> = match serde_json::from_str::<Value>(args) {
        Ok(value) if value.is_object() => {
            serde_json::value::to_raw_value(&value).unwrap_or_default()
        }
        _ => {
            output.warning(
                "write `/call TOOL {\"name\": \"value\"}`: the arguments are a JSON object",
            );
            return Spoken::Over(Ending::Failed);
        }
    };
    let params = InvokeParams {
        name: tool.to_owned(),
        args: Some(args),
        session_key: Some(chat.session.clone()),
        agent_id: Some(chat.whom.agent.clone()),
        // Whoever writes the call has decided about it.
        confirm: Some(true),
        idempotency_key: Some(fresh_key()),
        conversation_read_origin: Some("direct-operator".to_owned()),
    };
    let mut call = Call {
        name: tool.to_owned(),
        args: params.args.as_ref().and_then(|args| serde_json::from_str(args.get()).ok()),
        ..Call::default()
    };
    let mut view = View::new(can_draw);
    view.called(&call, output);
    let started = Instant::now();
    let answer: Result<InvokeResult, AskError> = tokio::select! {
        answer = ask(chat.surface, Method::ToolsInvoke, &params) => answer,
        wish = signals.next() => {
            view.new_line(output);
            return match wish {
                Wish::Interrupt => Spoken::Over(Ending::Cancelled),
                Wish::End | Wish::HangUp => Spoken::Leave,
            };
        }
    };
    call.duration_ms = Some(started.elapsed().as_secs_f64() * 1_000.0);
    match answer {
        Ok(answer) => {
            call.is_error = !answer.ok;
            let failed = answer.error.map(|error| error.message);
            let text = || answer.output.as_deref().map(|raw| text_of(raw.get()));
            call.text = failed.or_else(text);
        }
        Err(error) => {
            call.is_error = true;
            call.text = Some(error.to_string());
        }
    }
    view.returned(&call, output);
    Spoken::Over(if call.is_error { Ending::Failed } else { Ending::Done })
}

/// What a tool gave: its texts if it gave parts, a text as it is, anything else as JSON.
fn text_of(output: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(output) else { return output.to_owned() };
    match &value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("content") => {
            Message::of(&value).unwrap_or_default().text()
        }
        other => other.to_string(),
    }
}
