//! The history of a session: read from the store, stored message by message, and repaired where a
//! crash left a gap.

mod hiding;

use std::sync::Arc;

use openclaw_content::{StoredText, Text, Unlabelled};
use openclaw_models::{Message, Part, ToolResult, Usage};
use openclaw_sessions::{
    Entry, EntryKind, MAX_READ, NewEntry, ReadFilter, SessionKey, SessionStore, StoreError,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::tokens;
use hiding::HiddenMedia;
pub(crate) use hiding::may_mean_media;

/// Entries read at first; more are read if the relevant part begins earlier.
const PAGE: usize = 200;

/// A message as stored in a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    /// The message as the model sees it.
    pub message: Message,
    /// Details of the calls, for display. Dropped when history is compacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallNote>,
    /// The model that wrote the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Token usage of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Details of a call, for display.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallNote {
    /// The model's id for the call.
    pub id: String,
    /// How long the call took, in milliseconds.
    pub duration_ms: f64,
    /// Why the tool returned no result of its own, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether it contains content from outside.
    #[serde(default)]
    pub untrusted: bool,
    /// Names of suspicious patterns found in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// A compaction as stored in a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// Replaces everything before `keep_from`.
    #[serde(deserialize_with = "stored_summary")]
    pub summary: Vec<Text>,
    /// What the user wrote before that, verbatim. Later summaries keep it too.
    #[serde(default)]
    pub words: Vec<String>,
    /// Sequence number of the first entry that is still used.
    pub keep_from: u64,
    /// By how many tokens the next request is smaller, estimated; 0 if an earlier version stored it.
    #[serde(default)]
    pub saved_tokens: u64,
}

/// A summary is a list of texts; an earlier version stored a single text with boundaries in it.
fn stored_summary<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Text>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        One(String),
        Several(Vec<StoredText>),
    }
    let texts = match Stored::deserialize(deserializer)? {
        Stored::One(text) => vec![StoredText::unlabelled(text)],
        Stored::Several(texts) => texts,
    };
    Ok(texts.into_iter().flat_map(|text| text.settle(Unlabelled::Ours)).collect())
}

/// A message of the history.
#[derive(Debug, Clone)]
pub struct HistoryMessage {
    /// Its sequence number in the session; `None` if it was not stored as a message.
    pub seq: Option<u64>,
    /// The message.
    pub message: Arc<Message>,
}

/// The history of a session.
#[derive(Debug)]
pub(crate) struct History {
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    run: String,
    said: Vec<HistoryMessage>,
    /// What the user wrote before the first message, if that is a summary.
    words: Option<Vec<String>>,
    /// Media that are tentatively hidden from the model.
    hiding: HiddenMedia,
}

impl History {
    /// Loads everything since the last compaction.
    pub(crate) async fn load(
        store: Arc<dyn SessionStore>,
        key: SessionKey,
        run: String,
    ) -> Result<Self, StoreError> {
        let mut wanted = PAGE;
        let entries = loop {
            let entries = store.read(&key, ReadFilter::last(wanted)).await?;
            let is_all = entries.first().is_none_or(|first| first.seq <= 1);
            if is_all || begins_within(&entries) || wanted >= MAX_READ {
                break entries;
            }
            wanted = wanted.saturating_mul(4).min(MAX_READ);
        };
        let words = last_compaction(&entries).map(|compacted| compacted.words);
        let said = mended(since_compaction(&entries));
        Ok(Self { store, key, run, said, words, hiding: HiddenMedia::default() })
    }

    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        self.said.iter().map(|said| Arc::clone(&said.message)).collect()
    }

    pub(crate) fn said(&self) -> &[HistoryMessage] {
        &self.said
    }

    /// What the user wrote before the first message, verbatim; `None` if that is not a summary.
    pub(crate) fn words_before(&self) -> Option<&[String]> {
        self.words.as_deref()
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.said.iter().map(|said| tokens::of_message(&said.message)).sum()
    }

    /// Adds a message and stores it.
    pub(crate) async fn add(&mut self, record: MessageRecord) -> Result<(), StoreError> {
        let message = Arc::new(record.message.clone());
        let body = serde_json::to_value(record).unwrap_or_default();
        let seq = self.append(EntryKind::Message, body).await?;
        self.said.push(HistoryMessage { seq, message });
        Ok(())
    }

    /// Replaces everything before `keep`, an index into [`History::said`], with a summary.
    pub(crate) async fn compact(
        &mut self,
        summary: Vec<Text>,
        words: Vec<String>,
        keep: usize,
    ) -> Result<(), StoreError> {
        let before = self.tokens();
        let (gone, kept) = self.said.split_at(keep.min(self.said.len()));
        let first = kept.iter().find_map(|said| said.seq);
        let next = || gone.iter().rev().find_map(|said| said.seq).map_or(1, |seq| seq + 1);
        let keep_from = first.unwrap_or_else(next);
        let message = Arc::new(summary_message(&summary));
        let kept_tokens: u64 = kept.iter().map(|said| tokens::of_message(&said.message)).sum();
        let saved_tokens = before.saturating_sub(kept_tokens + tokens::of_message(&message));
        let compacted = Compacted { summary, words: words.clone(), keep_from, saved_tokens };
        let body = serde_json::to_value(compacted).unwrap_or_default();
        let kept = kept.to_vec();
        self.append(EntryKind::Compaction, body).await?;
        self.words = Some(words);
        self.said = std::iter::once(HistoryMessage { seq: None, message }).chain(kept).collect();
        Ok(())
    }

    /// Replaces a message in memory only: the store keeps the original.
    pub(crate) fn replace(&mut self, at: usize, message: Message) {
        if let Some(said) = self.said.get_mut(at) {
            said.message = Arc::new(message);
        }
    }

    /// Replaces media with placeholders in memory, starting with the newest. Returns whether there
    /// were any.
    pub(crate) fn hide_media(&mut self) -> bool {
        self.hiding.hide_more(&mut self.said)
    }

    /// Restores the hidden media.
    pub(crate) fn show_media(&mut self) {
        std::mem::take(&mut self.hiding).undo(&mut self.said);
    }

    /// Hides the hidden media in later turns too. The store keeps the originals.
    pub(crate) async fn keep_hidden(&mut self) -> Result<(), StoreError> {
        match std::mem::take(&mut self.hiding).note() {
            Some(note) => self.append(EntryKind::Note, note).await.map(drop),
            None => Ok(()),
        }
    }

    async fn append(
        &self,
        kind: EntryKind,
        body: serde_json::Value,
    ) -> Result<Option<u64>, StoreError> {
        let entry = NewEntry { run: Some(self.run.clone()), kind, body };
        Ok(self.store.append(&self.key, vec![entry]).await?.first().copied())
    }
}

fn summary_message(summary: &[Text]) -> Message {
    Message::User { parts: summary.iter().cloned().map(Part::Text).collect() }
}

fn last_compaction(entries: &[Entry]) -> Option<Compacted> {
    let mut compactions = entries.iter().rev().filter(|entry| entry.kind == EntryKind::Compaction);
    compactions.find_map(|entry| serde_json::from_value(entry.body.clone()).ok())
}

/// Whether everything since the last compaction is among these entries.
fn begins_within(entries: &[Entry]) -> bool {
    let first = entries.first().map_or(0, |entry| entry.seq);
    last_compaction(entries).is_some_and(|compacted| compacted.keep_from >= first)
}

fn since_compaction(entries: &[Entry]) -> Vec<HistoryMessage> {
    let compacted = last_compaction(entries);
    let from = compacted.as_ref().map_or(0, |compacted| compacted.keep_from);
    let summary = compacted.map(|compacted| HistoryMessage {
        seq: None,
        message: Arc::new(summary_message(&compacted.summary)),
    });
    let hidden = hiding::hidden(entries);
    let messages = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message && entry.seq >= from)
        .filter_map(|entry| match serde_json::from_value::<MessageRecord>(entry.body.clone()) {
            Ok(MessageRecord { message, .. }) => {
                let in_words =
                    hidden.contains(&entry.seq).then(|| hiding::in_words(&message)).flatten();
                let message = Arc::new(in_words.unwrap_or(message));
                Some(HistoryMessage { seq: Some(entry.seq), message })
            }
            Err(error) => {
                tracing::warn!(seq = entry.seq, %error, "skipping an unreadable message");
                None
            }
        });
    summary.into_iter().chain(messages).collect()
}

/// Providers reject a call without a result, and a result without a call. Where the process was
/// terminated in between, this adds a result that says so.
fn mended(said: Vec<HistoryMessage>) -> Vec<HistoryMessage> {
    let mut mended: Vec<HistoryMessage> = Vec::with_capacity(said.len());
    let mut open: Vec<(String, String)> = Vec::new();
    for next in said {
        if let Message::Tool { results } = &*next.message {
            let is_wanted = |result: &&ToolResult| open.iter().any(|(id, _)| *id == result.id);
            let mut wanted: Vec<ToolResult> = results.iter().filter(is_wanted).cloned().collect();
            open.retain(|(id, _)| !wanted.iter().any(|result| result.id == *id));
            wanted.extend(open.drain(..).map(|(id, name)| interrupted(id, name)));
            if !wanted.is_empty() {
                let message = Arc::new(Message::Tool { results: wanted });
                mended.push(HistoryMessage { message, ..next });
            }
            continue;
        }
        close(&mut open, &mut mended);
        if let Message::Assistant { tool_uses, .. } = &*next.message {
            open.extend(tool_uses.iter().map(|it| (it.id.clone(), it.name.clone())));
        }
        mended.push(next);
    }
    close(&mut open, &mut mended);
    mended
}

fn close(open: &mut Vec<(String, String)>, mended: &mut Vec<HistoryMessage>) {
    if !open.is_empty() {
        let results = open.drain(..).map(|(id, name)| interrupted(id, name)).collect();
        mended.push(HistoryMessage { seq: None, message: Arc::new(Message::Tool { results }) });
    }
}

fn interrupted(id: String, name: String) -> ToolResult {
    let text = "The process exited during this call. Whether the call had an effect is unknown.";
    ToolResult { id, name, parts: vec![Part::ours(text)], is_error: true }
}

#[cfg(test)]
mod tests;
