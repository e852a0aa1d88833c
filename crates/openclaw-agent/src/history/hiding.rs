//! Images and audio that a provider rejects. It would reject the whole session because of one
//! of them from then on, so placeholders replace them: in memory first, and permanently once that
//! has helped.

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_models::{Message, ModelError, Part, ToolResult};
use openclaw_sessions::{Entry, EntryKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HistoryMessage;

/// A session note: the messages whose media are no longer shown to models.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    hidden_media: BTreeSet<u64>,
}

/// Messages whose media are hidden tentatively: the originals, by sequence number.
#[derive(Debug, Default)]
pub(crate) struct HiddenMedia {
    whole: Vec<(u64, Arc<Message>)>,
}

impl HiddenMedia {
    /// Hides the media the model has not responded to yet, or else all of it: what it has responded
    /// to, it has accepted before. Returns whether there was anything left to hide.
    pub(crate) fn hide_more(&mut self, said: &mut [HistoryMessage]) -> bool {
        let is_answer = |said: &HistoryMessage| matches!(&*said.message, Message::Assistant { .. });
        let new = said.iter().rposition(is_answer).map_or(0, |at| at + 1);
        self.hide(&mut said[new..]) || self.hide(said)
    }

    fn hide(&mut self, said: &mut [HistoryMessage]) -> bool {
        let before = self.whole.len();
        for said in said {
            if let (Some(seq), Some(words)) = (said.seq, in_words(&said.message)) {
                self.whole.push((seq, std::mem::replace(&mut said.message, Arc::new(words))));
            }
        }
        self.whole.len() > before
    }

    /// Restores everything, because hiding did not help.
    pub(crate) fn undo(self, said: &mut [HistoryMessage]) {
        for (seq, message) in self.whole {
            if let Some(said) = said.iter_mut().find(|said| said.seq == Some(seq)) {
                said.message = message;
            }
        }
    }

    /// Returns the note to store after hiding helped, if anything was hidden.
    pub(crate) fn note(self) -> Option<Value> {
        let hidden_media: BTreeSet<u64> = self.whole.into_iter().map(|(seq, _)| seq).collect();
        if hidden_media.is_empty() {
            return None;
        }
        serde_json::to_value(Note { hidden_media }).ok()
    }
}

/// The messages whose media are hidden permanently.
pub(crate) fn hidden(entries: &[Entry]) -> BTreeSet<u64> {
    let notes = entries.iter().filter(|entry| entry.kind == EntryKind::Note);
    let notes = notes.filter_map(|entry| Note::deserialize(&entry.body).ok());
    notes.flat_map(|note| note.hidden_media).collect()
}

/// Whether an error may be about media. Few providers have an error code for it, and some without a
/// vision model report that the model does not exist.
pub(crate) const fn may_mean_media(error: &ModelError) -> bool {
    use ModelError::{ContextTooLong, NoSuchModel, Rejected};
    matches!(error, Rejected { .. } | ContextTooLong | NoSuchModel { .. })
}

/// Returns the message with placeholders for its media, or `None` if it has none.
pub(crate) fn in_words(message: &Message) -> Option<Message> {
    let is_media = |part: &Part| part.as_text().is_none();
    let any = |parts: &[Part]| parts.iter().any(is_media);
    match message {
        Message::User { parts } if any(parts) => {
            Some(Message::User { parts: parts.iter().map(part_in_words).collect() })
        }
        Message::Assistant { text, reasoning, tool_uses, parts } if any(parts) => {
            Some(Message::Assistant {
                text: text.clone(),
                reasoning: reasoning.clone(),
                tool_uses: tool_uses.clone(),
                parts: parts.iter().map(part_in_words).collect(),
            })
        }
        Message::Tool { results } if results.iter().any(|result| any(&result.parts)) => {
            let in_words = |result: &ToolResult| ToolResult {
                parts: result.parts.iter().map(part_in_words).collect(),
                ..result.clone()
            };
            Some(Message::Tool { results: results.iter().map(in_words).collect() })
        }
        _ => None,
    }
}

fn part_in_words(part: &Part) -> Part {
    match part {
        Part::Text(_) => part.clone(),
        Part::Image { .. } => Part::ours("(An image was here. It could not be shown to you.)"),
        Part::Audio { .. } => {
            Part::ours("(An audio clip was here. It could not be played to you.)")
        }
        Part::File { text: Some(text), .. } => Part::Text(text.clone()),
        Part::File { .. } => Part::ours("(A file was here. It could not be shown to you.)"),
    }
}
