//! Pictures and recordings that a provider refuses. It would refuse the whole conversation over one of them,
//! from then on: so words take their place, in memory first, and for good once that has helped.

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_models::{Message, ModelError, Part, ToolResult};
use openclaw_sessions::{Entry, EntryKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::Said;

/// Of which messages models do not see pictures and recordings any more: a note in the session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    hidden_media: BTreeSet<u64>,
}

/// What is hidden while it is tried whether that helps: messages as they were, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Hiding {
    whole: Vec<(u64, Arc<Message>)>,
}

impl Hiding {
    /// Hides what the model has not answered to yet, or else everything. What was answered to before was
    /// taken before. Whether there was something more to hide.
    pub(crate) fn hide_more(&mut self, said: &mut [Said]) -> bool {
        let is_answer = |said: &Said| matches!(&*said.message, Message::Assistant { .. });
        let new = said.iter().rposition(is_answer).map_or(0, |at| at + 1);
        self.hide(&mut said[new..]) || self.hide(said)
    }

    fn hide(&mut self, said: &mut [Said]) -> bool {
        let before = self.whole.len();
        for said in said {
            if let (Some(seq), Some(words)) = (said.seq, in_words(&said.message)) {
                self.whole.push((seq, std::mem::replace(&mut said.message, Arc::new(words))));
            }
        }
        self.whole.len() > before
    }

    /// It did not help: shows everything again.
    pub(crate) fn undo(self, said: &mut [Said]) {
        for (seq, message) in self.whole {
            if let Some(said) = said.iter_mut().find(|said| said.seq == Some(seq)) {
                said.message = message;
            }
        }
    }

    /// It helped: what is to be kept in the session, if anything was hidden.
    pub(crate) fn note(self) -> Option<Value> {
        let hidden_media: BTreeSet<u64> = self.whole.into_iter().map(|(seq, _)| seq).collect();
        if hidden_media.is_empty() {
            return None;
        }
        serde_json::to_value(Note { hidden_media }).ok()
    }
}

/// The messages whose pictures and recordings are hidden for good.
pub(crate) fn hidden(entries: &[Entry]) -> BTreeSet<u64> {
    let notes = entries.iter().filter(|entry| entry.kind == EntryKind::Note);
    let notes = notes.filter_map(|entry| Note::deserialize(&entry.body).ok());
    notes.flat_map(|note| note.hidden_media).collect()
}

/// Whether a provider may mean a picture. Few have a code for it; some that have no model that sees say that
/// there is no such model.
pub(crate) const fn may_mean_media(error: &ModelError) -> bool {
    use ModelError::{ContextTooLong, NoSuchModel, Rejected};
    matches!(error, Rejected { .. } | ContextTooLong | NoSuchModel { .. })
}

/// The message with words for pictures and recordings; none if there are none in it.
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
        Part::Image { .. } => Part::ours("(A picture stood here. It could not be shown to you.)"),
        Part::Audio { .. } => {
            Part::ours("(A recording stood here. It could not be played to you.)")
        }
    }
}
