//! The updates of a session, sent in order and no faster than the client reads them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionId, SessionNotification, SessionUpdate,
};
use serde::Serialize;
use tokio::sync::Notify;

use crate::content::{chunk, text_content};
use crate::outbox::WriteBacklog;

/// Bytes of updates that wait for a client that does not read. Text that comes after them is dropped.
const MAX_TEXT: usize = 1024 * 1024;
/// Calls that come after so many bytes are sent without their content. Several results with pictures
/// may come at once.
const MAX_CONTENT: usize = 8 * 1024 * 1024;
/// What comes after so many bytes is dropped in any case.
const MAX_BACKLOG: usize = 16 * 1024 * 1024;
const OMITTED: &str = "[Not shown: the editor did not read the output in time.]";
const DROPPED: &str = "\n\n[Some output is missing here: the editor did not read it in time.]\n\n";

/// Sends the updates of a session.
pub(crate) struct Updates {
    session: SessionId,
    cx: ConnectionTo<Client>,
    outbox: Arc<WriteBacklog>,
    backlog: Mutex<Backlog>,
    /// Notified when something waits.
    queued: Notify,
    /// Notified when nothing waits any more.
    emptied: Notify,
}

#[derive(Default)]
struct Backlog {
    waiting: VecDeque<(SessionUpdate, usize)>,
    bytes: usize,
    has_dropped: bool,
}

impl Updates {
    pub(crate) fn new(
        session: SessionId,
        cx: ConnectionTo<Client>,
        outbox: Arc<WriteBacklog>,
    ) -> Self {
        Self {
            session,
            cx,
            outbox,
            backlog: Mutex::default(),
            queued: Notify::new(),
            emptied: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an update, at once if the client reads.
    pub(crate) fn send(&self, update: SessionUpdate) {
        let Some(bytes) = size(&update) else { return };
        let mut backlog = self.lock();
        if backlog.waiting.is_empty() && self.outbox.has_room() {
            return self.hand_over(update, bytes);
        }
        let is_call =
            matches!(update, SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_));
        let kept = if backlog.bytes <= (if is_call { MAX_CONTENT } else { MAX_TEXT }) {
            Some((update, bytes))
        } else {
            let short = shortened(update).filter(|_| backlog.bytes <= MAX_BACKLOG);
            short.and_then(|update| size(&update).map(|bytes| (update, bytes)))
        };
        let Some((update, size)) = kept else {
            backlog.has_dropped = true;
            return;
        };
        backlog.bytes += size;
        let last = backlog.waiting.back_mut();
        match last.filter(|(last, _)| is_continued(last, &update)) {
            Some((last, bytes)) => {
                append(last, update);
                *bytes += size;
            }
            None => backlog.waiting.push_back((update, size)),
        }
        drop(backlog);
        self.queued.notify_one();
    }

    /// Waits until an update can be sent at once, for senders of many.
    pub(crate) async fn room(&self) {
        self.flushed().await;
        self.outbox.room().await;
    }

    /// Waits until nothing waits here any more, so that a later frame does not overtake an update.
    pub(crate) async fn flushed(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.lock().waiting.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// Sends what waits as soon as the client reads. Does not end.
    pub(crate) async fn keep_sending(&self) {
        loop {
            self.queued.notified().await;
            loop {
                self.outbox.room().await;
                let mut backlog = self.lock();
                let Some((update, size)) = backlog.waiting.pop_front() else { break };
                backlog.bytes -= size;
                self.hand_over(update, size);
                if backlog.waiting.is_empty() && std::mem::take(&mut backlog.has_dropped) {
                    let note = SessionUpdate::AgentMessageChunk(chunk(DROPPED));
                    self.hand_over(note, DROPPED.len());
                }
            }
            self.emptied.notify_waiters();
        }
    }

    fn hand_over(&self, update: SessionUpdate, size: usize) {
        self.outbox.hands_over(size);
        // It fails only if the client is gone.
        let _ = self.cx.send_notification(SessionNotification::new(self.session.clone(), update));
    }
}

/// An update without its content; `None` if there is nothing else in it. The end of a call must arrive:
/// the client would show it as running.
fn shortened(update: SessionUpdate) -> Option<SessionUpdate> {
    match update {
        SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::AgentMessageChunk(_)
        | SessionUpdate::AgentThoughtChunk(_) => None,
        SessionUpdate::ToolCall(mut call) => {
            call.content.clear();
            call.raw_input = None;
            Some(SessionUpdate::ToolCall(call))
        }
        SessionUpdate::ToolCallUpdate(mut update) => {
            let fields = &mut update.fields;
            (fields.raw_input, fields.raw_output) = (None, None);
            if fields.content.is_some() {
                fields.content = Some(vec![text_content(OMITTED)]);
            }
            Some(SessionUpdate::ToolCallUpdate(update))
        }
        other => Some(other),
    }
}

/// Whether an update continues the text of the one before.
fn is_continued(last: &SessionUpdate, next: &SessionUpdate) -> bool {
    let is_text = |chunk: &ContentChunk| matches!(chunk.content, ContentBlock::Text(_));
    match (last, next) {
        (SessionUpdate::AgentMessageChunk(last), SessionUpdate::AgentMessageChunk(next))
        | (SessionUpdate::AgentThoughtChunk(last), SessionUpdate::AgentThoughtChunk(next)) => {
            is_text(last) && is_text(next)
        }
        _ => false,
    }
}

/// Appends the text of an update.
fn append(last: &mut SessionUpdate, next: SessionUpdate) {
    let (
        SessionUpdate::AgentMessageChunk(last) | SessionUpdate::AgentThoughtChunk(last),
        SessionUpdate::AgentMessageChunk(next) | SessionUpdate::AgentThoughtChunk(next),
    ) = (last, next)
    else {
        return;
    };
    if let (ContentBlock::Text(last), ContentBlock::Text(next)) = (&mut last.content, next.content)
    {
        last.text.push_str(&next.text);
    }
}

/// The size of an update as JSON; `None` if it has none.
fn size(update: &impl Serialize) -> Option<usize> {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, update).ok()?;
    Some(count.0)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    #[test]
    fn the_end_of_a_call_is_kept_without_its_content() {
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::Completed)
            .content(vec![text_content("x".repeat(100))])
            .raw_output(serde_json::json!("x"));
        let update = SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("1", fields));
        let Some(SessionUpdate::ToolCallUpdate(short)) = shortened(update) else { panic!() };
        assert_eq!(short.fields.status, Some(ToolCallStatus::Completed));
        assert_eq!(short.fields.content, Some(vec![text_content(OMITTED)]));
        assert_eq!(short.fields.raw_output, None);
        assert_eq!(shortened(SessionUpdate::AgentMessageChunk(chunk("text"))), None);
    }

    #[test]
    fn waiting_text_is_joined_and_thoughts_are_kept_apart() {
        let message = |text: &str| SessionUpdate::AgentMessageChunk(chunk(text));
        let mut last = message("one ");
        assert!(is_continued(&last, &message("two")));
        append(&mut last, message("two"));
        assert_eq!(last, message("one two"));
        assert!(!is_continued(&last, &SessionUpdate::AgentThoughtChunk(chunk("hm"))));
    }
}
