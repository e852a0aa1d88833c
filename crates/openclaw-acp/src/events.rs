//! Events of the gateway as updates for the client.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{ContentBlock, ContentChunk, SessionUpdate, UsageUpdate};
use openclaw_protocol::approvals::{self, Approval};
use openclaw_protocol::chat::{AgentEvent, ChatEvent, ChatState};
use openclaw_protocol::mcp::elicitation::{self, Elicitation};
use openclaw_protocol::tools::InvokeRequestEvent;
use openclaw_protocol::{Received, Shutdown, names};
use serde_json::Value;

use crate::content::{block, chunk, preformatted, text_block};
use crate::session::{AcpSession, TurnEnd};
use crate::{calls, elicit, lending, permission};

impl AcpSession {
    /// Handles an event. It must not wait: events are handled in order, and a slow listener loses
    /// some.
    pub(crate) fn on_event(self: &Arc<Self>, received: Received) {
        let event = match received {
            Received::Event(event) => event,
            Received::Lagged(missed) => {
                tracing::warn!(session = %self.key, missed, "events were lost");
                if let Some(turn) = &mut self.lock().turn {
                    turn.has_gap = true;
                }
                return;
            }
        };
        // An event that cannot be parsed is from a newer gateway, and is ignored.
        match &*event.event {
            names::CHAT => event.read().into_iter().for_each(|event| self.on_chat(event)),
            names::AGENT => event.read().iter().for_each(|event| self.on_agent(event)),
            names::APPROVAL_REQUESTED => {
                let asked: Option<Approval> = event.read();
                if let Some(asked) = asked.filter(|it| self.is_about_this(it)) {
                    permission::ask(self, asked);
                }
            }
            names::APPROVAL_RESOLVED => {
                if let Some(resolved) = event.read::<approvals::ResolvedEvent>() {
                    self.withdraw(&resolved.id);
                }
            }
            names::MCP_ELICITATION_REQUESTED => {
                let asked: Option<Elicitation> = event.read();
                if let Some(asked) = asked.filter(|it| it.session_keys.contains(&self.key)) {
                    elicit::forward(self, asked);
                }
            }
            names::MCP_ELICITATION_RESOLVED => {
                if let Some(resolved) = event.read::<elicitation::ResolvedEvent>() {
                    self.withdraw(&resolved.id);
                }
            }
            names::NODE_INVOKE_REQUEST => {
                if let Some(call) = event.read::<InvokeRequestEvent>() {
                    lending::invoke(self, call);
                }
            }
            names::MCP_SERVER => self.refresh_commands(),
            names::SHUTDOWN => {
                if let Some(shutdown) = event.read::<Shutdown>() {
                    self.note(&format!("Message from the gateway: {}", shutdown.reason));
                }
            }
            _ => {}
        }
    }

    /// Whether the user of this client decides. A turn of another client, also of the same
    /// conversation, may use the tools of that client.
    fn is_about_this(&self, approval: &Approval) -> bool {
        match approval.run_id.as_deref() {
            Some(run) => self.is_running(run),
            None => approval.session_key.as_deref() == Some(self.key.as_str()),
        }
    }

    fn is_running(&self, run: &str) -> bool {
        self.lock().turn.as_ref().is_some_and(|turn| turn.run == run)
    }

    /// Withdraws a question that was answered elsewhere, or has expired.
    fn withdraw(&self, id: &str) {
        self.lock().open_questions.retain(|(open, withdrawn)| {
            if open == id {
                withdrawn.cancel();
            }
            open != id
        });
    }

    fn on_chat(&self, event: ChatEvent) {
        if !self.is_running(&event.run_id) {
            return;
        }
        match event.state {
            ChatState::Status { .. } => {}
            ChatState::Delta { delta_text, .. } => {
                if !delta_text.is_empty() {
                    if let Some(turn) = &mut self.lock().turn {
                        turn.text.push_str(&delta_text);
                    }
                    self.say(delta_text);
                }
            }
            ChatState::Final { message, stop_reason, .. } => {
                self.show_rest(message.as_ref());
                self.finish_turn(TurnEnd::Stopped(stop_reason));
            }
            ChatState::Aborted { error_message: Some(error), stop_reason, .. }
                if stop_reason.as_deref() != Some("cancelled") =>
            {
                self.finish_turn(TurnEnd::Failed(error));
            }
            ChatState::Aborted { stop_reason: Some(reason), .. } if reason == "timeout" => {
                self.finish_turn(TurnEnd::Failed("the turn timed out".to_owned()));
            }
            ChatState::Aborted { .. } => {
                self.finish_turn(TurnEnd::Stopped(Some("cancelled".to_owned())));
            }
            ChatState::Error { error_message, .. } => {
                let error = error_message.unwrap_or_else(|| "the turn failed".to_owned());
                self.finish_turn(TurnEnd::Failed(error));
            }
        }
    }

    /// Shows what was not streamed: the output of a command, images and audio, and text of events
    /// that were lost.
    fn show_rest(&self, message: Option<&Value>) {
        let (sent, has_gap, is_command) = match &mut self.lock().turn {
            Some(turn) => (std::mem::take(&mut turn.text), turn.has_gap, turn.is_command),
            None => return,
        };
        let content = message.and_then(|it| it.get("content")?.as_array());
        for block in content.into_iter().flatten().filter_map(block) {
            let block = match block {
                ContentBlock::Text(text) => match rest(&text.text, &sent, has_gap) {
                    Some(rest) if is_command => text_block(preformatted(rest)),
                    Some(rest) => text_block(rest),
                    None => continue,
                },
                block => block,
            };
            self.updates.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(block)));
        }
    }

    fn on_agent(&self, event: &AgentEvent) {
        if !self.is_running(&event.run_id) {
            return;
        }
        let text = |name: &str| event.data.get(name).and_then(Value::as_str);
        match event.stream.as_str() {
            "tool" => {
                if let Some(turn) = &mut self.lock().turn {
                    turn.text.clear();
                }
                calls::on_tool(self, &event.data);
            }
            "reasoning" => {
                if let Some(delta) = text("delta") {
                    self.updates.send(SessionUpdate::AgentThoughtChunk(chunk(delta)));
                }
            }
            "notice" => {
                if let Some(notice) = text("text") {
                    self.updates
                        .send(SessionUpdate::AgentThoughtChunk(chunk(format!("{notice}\n"))));
                }
            }
            "usage" => {
                let count = |name: &str| event.data.get(name).and_then(Value::as_u64);
                let tokens = count("inputTokens").zip(count("outputTokens"));
                if let (Some((input, output)), Some(size)) = (tokens, count("contextTokens")) {
                    let usage = UsageUpdate::new(input + output, size);
                    self.updates.send(SessionUpdate::UsageUpdate(usage));
                }
            }
            _ => {}
        }
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
