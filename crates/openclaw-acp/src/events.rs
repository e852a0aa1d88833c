//! Events of the gateway as updates for the client.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{ContentBlock, ContentChunk, SessionUpdate, UsageUpdate};
use openclaw_protocol::agent_event::{AgentData, AgentEvent};
use openclaw_protocol::approvals::{self, Approval};
use openclaw_protocol::chat::{ChatEvent, ChatState};
use openclaw_protocol::mcp::elicitation::{self, Elicitation};
use openclaw_protocol::tools::InvokeRequestEvent;
use openclaw_protocol::{EventReceiver, Received, Shutdown, names};
use serde_json::Value;

use crate::calls;
use crate::content::{block, chunk, preformatted, text_block};
use crate::current_turn::{ShownText, TurnEnd};
use crate::session::AcpSession;

/// Handles the events of a session's connection in order, until it is lost.
pub(crate) async fn follow(session: Arc<AcpSession>, mut events: EventReceiver) {
    while let Some(event) = events.next().await {
        on_event(&session, event);
    }
    session.lose_gateway().await;
}

/// Handles an event. It must not wait: a slow listener loses some.
fn on_event(session: &AcpSession, received: Received) {
    let event = match received {
        Received::Event(event) => event,
        Received::Lagged(missed) => {
            tracing::warn!(session = %session.gateway.key, missed, "events were lost");
            session.turn.with_shown(|shown| shown.has_gap = true);
            return;
        }
    };
    // An event that cannot be parsed is from a newer gateway, and is ignored.
    match &*event.event {
        names::CHAT => event.read().into_iter().for_each(|event| on_chat(session, event)),
        names::AGENT => event.read().into_iter().for_each(|event| on_agent(session, event)),
        names::APPROVAL_REQUESTED => {
            let approval: Option<Approval> = event.read();
            if let Some(approval) = approval.filter(|it| is_about_this(session, it)) {
                session.permissions.ask(approval);
            }
        }
        names::APPROVAL_RESOLVED => {
            if let Some(resolved) = event.read::<approvals::ResolvedEvent>() {
                session.questions.close(&resolved.id);
            }
        }
        names::MCP_ELICITATION_REQUESTED => {
            let asked: Option<Elicitation> = event.read();
            if let Some(asked) = asked.filter(|it| it.session_keys.contains(&session.gateway.key)) {
                session.elicitations.forward(asked);
            }
        }
        names::MCP_ELICITATION_RESOLVED => {
            if let Some(resolved) = event.read::<elicitation::ResolvedEvent>() {
                session.questions.close(&resolved.id);
            }
        }
        names::NODE_INVOKE_REQUEST => {
            if let Some(call) = event.read::<InvokeRequestEvent>() {
                session.lent_calls.invoke(call);
            }
        }
        names::MCP_SERVER => session.commands.refresh(),
        names::SHUTDOWN => {
            if let Some(shutdown) = event.read::<Shutdown>() {
                session.client.note(&format!("Message from the gateway: {}", shutdown.reason));
            }
        }
        _ => {}
    }
}

/// Whether the user of this client decides. A turn of another client, also of the same conversation,
/// may use the tools of that client.
fn is_about_this(session: &AcpSession, approval: &Approval) -> bool {
    match approval.run_id.as_deref() {
        Some(run) => session.turn.is_running(run),
        None => approval.session_key.as_deref() == Some(session.gateway.key.as_str()),
    }
}

fn on_chat(session: &AcpSession, event: ChatEvent) {
    let turn = &session.turn;
    if !turn.is_running(&event.run_id) {
        return;
    }
    match event.state {
        ChatState::Status { .. } => {}
        ChatState::Delta { delta_text, .. } => {
            if !delta_text.is_empty() {
                turn.with_shown(|shown| shown.text.push_str(&delta_text));
                session.client.say(delta_text);
            }
        }
        ChatState::Final { message, stop_reason, .. } => {
            show_rest(session, message.as_ref());
            turn.finish(TurnEnd::Stopped(stop_reason));
        }
        ChatState::Aborted { error_message: Some(error), stop_reason, .. }
            if stop_reason.as_deref() != Some("cancelled") =>
        {
            turn.finish(TurnEnd::Failed(error));
        }
        ChatState::Aborted { stop_reason: Some(reason), .. } if reason == "timeout" => {
            turn.finish(TurnEnd::Failed("the turn timed out".to_owned()));
        }
        ChatState::Aborted { .. } => turn.finish(TurnEnd::cancelled()),
        ChatState::Error { error_message, .. } => {
            let error = error_message.unwrap_or_else(|| "the turn failed".to_owned());
            turn.finish(TurnEnd::Failed(error));
        }
    }
}

/// Shows what was not streamed: the output of a command, images and audio, and text of events that
/// were lost.
fn show_rest(session: &AcpSession, message: Option<&Value>) {
    let shown = session.turn.with_shown(|shown| {
        let text = std::mem::take(&mut shown.text);
        ShownText { text, ..*shown }
    });
    let Some(shown) = shown else { return };
    let content = message.and_then(|it| it.get("content")?.as_array());
    for block in content.into_iter().flatten().filter_map(block) {
        let block = match block {
            ContentBlock::Text(text) => match rest(&text.text, &shown.text, shown.has_gap) {
                Some(rest) if shown.is_command => text_block(preformatted(rest)),
                Some(rest) => text_block(rest),
                None => continue,
            },
            block => block,
        };
        session.client.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)));
    }
}

fn on_agent(session: &AcpSession, event: AgentEvent) {
    if !session.turn.is_running(&event.run_id) {
        return;
    }
    let client = &session.client;
    let thought = |text| client.send(SessionUpdate::AgentThoughtChunk(chunk(text)));
    match event.data {
        AgentData::Tool(phase) => {
            session.turn.with_shown(|shown| shown.text.clear());
            calls::on_tool(phase, &session.calls, &session.describer, client);
        }
        AgentData::Reasoning(text) if text.delta.is_empty() => {}
        AgentData::Reasoning(text) => thought(text.delta),
        AgentData::Notice(notice) => thought(format!("{}\n", notice.text)),
        AgentData::Usage(usage) => {
            let used = usage.input_tokens.saturating_add(usage.output_tokens);
            let update = UsageUpdate::new(used, usage.context_tokens);
            client.send(SessionUpdate::UsageUpdate(update));
        }
        AgentData::Lifecycle(_)
        | AgentData::Assistant(_)
        | AgentData::Approval(_)
        | AgentData::Other { .. } => {}
    }
}

/// Returns what is left of a text after `sent`. If events were lost in the middle of it, that is all
/// of it, again.
fn rest(text: &str, sent: &str, has_gap: bool) -> Option<String> {
    let rest = match text.strip_prefix(sent) {
        Some(rest) if has_gap || sent.is_empty() => rest.to_owned(),
        None if has_gap => format!("\n\n{text}"),
        _ => return None,
    };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_sent_is_shown_in_the_end() {
        for (sent, has_gap, expected) in [
            ("", false, Some("one two")),
            ("one two", false, None),
            // A provider may change the text in the end: what was streamed stands.
            ("one 2", false, None),
            ("one", true, Some(" two")),
            ("one two", true, None),
            ("two", true, Some("\n\none two")),
        ] {
            assert_eq!(rest("one two", sent, has_gap).as_deref(), expected, "{sent} {has_gap}");
        }
    }
}
