//! Titles and last messages of sessions that are listed.

use openclaw_agent::MessageRecord;
use openclaw_content::{Untrusted, clean_line};
use openclaw_models::{Message, Part};
use openclaw_protocol::sessions::Row;
use openclaw_sessions::{ReadFilter, SessionKey, SessionStore};

use super::titles::without_marks;

/// Maximum length of a title derived from a message, in characters.
const TITLE: usize = 80;
/// Maximum length of the text that a title is derived from, in characters.
const TITLE_SOURCE: usize = 1_000;
/// Maximum length of the beginning of a message, in characters.
const PREVIEW: usize = 160;

/// What a caller wants to see of the messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Previews {
    pub(super) title: bool,
    pub(super) last_message: bool,
}

impl Previews {
    pub(super) fn new(title: Option<bool>, last_message: Option<bool>) -> Self {
        Self { title: title == Some(true), last_message: last_message == Some(true) }
    }

    /// Returns the text of the first message of a session, which its title is derived from.
    pub(super) async fn first_text(store: &dyn SessionStore, key: &SessionKey) -> Option<String> {
        let first = ReadFilter { from_seq: 1, limit: 1, last: false };
        let message = read(store, key, first).await?;
        text_of(&message).map(ToOwned::to_owned)
    }

    /// Adds what is wanted to a row.
    pub(super) async fn add(self, store: &dyn SessionStore, row: &mut Row) {
        let Ok(key) = SessionKey::new(row.key.as_str()) else { return };
        if self.title {
            // Of the first message, if it is the user's.
            let first = ReadFilter { from_seq: 1, limit: 1, last: false };
            let message = read(store, &key, first).await;
            let title = message.filter(|it| matches!(it, Message::User { .. }));
            row.derived_title = title.as_ref().and_then(title_of);
        }
        if self.last_message {
            let last = ReadFilter { from_seq: 1, limit: 1, last: true };
            let message = read(store, &key, last).await;
            let text = message.as_ref().and_then(text_of);
            row.last_message_preview = text.and_then(|text| beginning(text, PREVIEW));
        }
    }
}

async fn read(store: &dyn SessionStore, key: &SessionKey, filter: ReadFilter) -> Option<Message> {
    let entry = store.read(key, filter).await.ok()?.into_iter().next()?;
    let record: MessageRecord = serde_json::from_value(entry.body).ok()?;
    Some(record.message)
}

/// A title derived from a message.
fn title_of(message: &Message) -> Option<String> {
    let text: String = text_of(message)?.chars().take(TITLE_SOURCE).collect();
    beginning(&without_marks(&text), TITLE)
}

fn text_of(message: &Message) -> Option<&str> {
    match message {
        Message::User { parts } => Some(parts.iter().find_map(Part::as_text)?.expose()),
        Message::Assistant { text, .. } => Some(text),
        Message::Tool { .. } => None,
    }
}

/// The beginning of a text in one line.
fn beginning(text: &str, length: usize) -> Option<String> {
    let line = clean_line(Untrusted::new(text), length);
    (!line.is_empty()).then_some(line)
}
