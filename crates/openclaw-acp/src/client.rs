//! The client of a session: what it supports, requests and updates to it, messages to its user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    ClientCapabilities, Notice, NoticeSeverity, SessionId, SessionUpdate, ToolCallId,
    ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::v1::{ConnectionTo, SentRequest};
use agent_client_protocol::{Client, JsonRpcRequest};

use crate::content::chunk;
use crate::outbox::WriteBacklog;
use crate::updates::Updates;

/// The client of one session.
pub(crate) struct SessionClient {
    pub(crate) session: SessionId,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) updates: Updates,
    cx: ConnectionTo<Client>,
    notes: Mutex<Notes>,
}

/// Messages of this program.
#[derive(Default)]
struct Notes {
    /// Whether a turn is running that can show them.
    has_place: bool,
    /// Those for the start of the next turn.
    waiting: Vec<String>,
}

impl SessionClient {
    pub(crate) fn new(
        session: SessionId,
        capabilities: ClientCapabilities,
        cx: ConnectionTo<Client>,
        outbox: Arc<WriteBacklog>,
    ) -> Self {
        let updates = Updates::new(session.clone(), cx.clone(), outbox);
        Self { session, capabilities, updates, cx, notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn send_request<R: JsonRpcRequest>(&self, request: R) -> SentRequest<R::Response> {
        self.cx.send_request(request)
    }

    /// Sends an update.
    pub(crate) fn send(&self, update: SessionUpdate) {
        self.updates.send(update);
    }

    /// Changes a call that the client knows.
    pub(crate) fn update_call(&self, id: ToolCallId, fields: ToolCallUpdateFields) {
        self.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
    }

    /// Sends a piece of the agent's answer.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.send(SessionUpdate::AgentMessageChunk(chunk(text)));
    }

    /// Shows a message of this program: now if the client has a place for it or a turn is running,
    /// otherwise at the start of the next turn.
    pub(crate) fn note(&self, text: &str) {
        tracing::info!(session = %self.session.0, "{text}");
        if self.capabilities.session.as_ref().is_some_and(|it| it.notices.is_some()) {
            let (title, more) = text.split_once('\n').unwrap_or((text, ""));
            let more = (!more.is_empty()).then(|| more.to_owned());
            let notice = Notice::new(NoticeSeverity::Warning, title).description(more);
            return self.send(SessionUpdate::Notice(notice));
        }
        let mut notes = self.notes();
        if notes.has_place {
            drop(notes);
            self.say(format!("\n\n{text}\n\n"));
        } else {
            notes.waiting.push(text.to_owned());
        }
    }

    /// Shows the messages that wait for a turn, and from now on at once.
    pub(crate) fn show_notes(&self) {
        let waiting = {
            let mut notes = self.notes();
            notes.has_place = true;
            std::mem::take(&mut notes.waiting)
        };
        for note in waiting {
            self.say(format!("{note}\n\n"));
        }
    }

    /// Keeps messages for the next turn.
    pub(crate) fn keep_notes(&self) {
        self.notes().has_place = false;
    }
}
