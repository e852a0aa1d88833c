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

use crate::content::chunk;
use crate::outbox::WriteBacklog;

/// Bytes of updates that wait for a client that does not read. What comes after them is dropped.
const BACKLOG: usize = 1024 * 1024;
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
        let Some(size) = size(&update) else { return };
        let mut backlog = self.lock();
        if backlog.waiting.is_empty() && self.outbox.has_room() {
            return self.hand_over(update, size);
        }
        if backlog.bytes > BACKLOG {
            backlog.has_dropped = true;
            return;
        }
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

    /// Waits until the client reads, for senders of many updates.
    pub(crate) async fn room(&self) {
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
    use super::*;

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
