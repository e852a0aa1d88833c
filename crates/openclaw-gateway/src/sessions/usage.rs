//! The tokens that a session has used, from its stored messages (`/usage`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use openclaw_agent::{Compacted, MessageRecord};
use openclaw_models::Usage;
use openclaw_sessions::{
    Entry, EntryKind, ReadFilter, Session, SessionKey, SessionStore, StoreError,
};

use super::Sessions;
use crate::agents::AgentRuntime;

/// The number of entries that are read at a time.
const PAGE: usize = 500;

/// The usage of one model.
#[derive(Debug, Default)]
struct ModelUsage {
    requests: u64,
    sum: Usage,
}

impl Sessions {
    /// Describes the usage of a session for the user.
    pub(crate) async fn usage(&self, agent: &AgentRuntime, key: &SessionKey) -> String {
        let (by_model, last) = match read(&*self.store, key).await {
            Ok(read) => read,
            Err(error) => return error.to_string(),
        };
        let Some((model, context)) = last else {
            return "No tokens were used in this session yet.".to_owned();
        };
        let mut text = String::new();
        for (model, ModelUsage { requests, sum }) in &by_model {
            let requests = if *requests == 1 {
                "1 request".to_owned()
            } else {
                format!("{requests} requests")
            };
            let _ = write!(text, "{model}: {requests}, {} tokens in", sum.input_tokens);
            if sum.cached_tokens > 0 {
                let _ = write!(text, " ({} of them cached)", sum.cached_tokens);
            }
            let _ = write!(text, ", {} out", sum.output_tokens);
            if let Some(cost) = sum.cost_usd {
                let _ = write!(text, ", ${cost:.4}");
            }
            text.push('\n');
        }
        let _ = match agent.window(&model).filter(|window| *window > 0) {
            Some(window) => write!(
                text,
                "Context: {context} of {window} tokens ({} %)",
                context.saturating_mul(100) / window
            ),
            None => write!(text, "Context: {context} tokens"),
        };
        text
    }
}

/// Entries at the end of a session in which its last usage is looked for: an answer, and what was sent
/// after it.
const LAST: usize = 4;

/// The usage of the last request of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastUsage {
    pub(super) usage: Usage,
    /// The tokens of the context: those of the request, less what was summarized since, which is an
    /// estimate.
    pub(super) context: u64,
}

/// Returns the usage of the last request, if it is among the last entries.
pub(super) async fn last(store: &dyn SessionStore, session: &Session) -> Option<LastUsage> {
    if session.entries == 0 {
        return None;
    }
    let filter = ReadFilter { from_seq: 1, limit: LAST, last: true };
    let entries = store.read(&session.key, filter).await.ok()?;
    let mut saved = 0;
    entries.into_iter().rev().find_map(|entry| {
        saved += saved_by(&entry);
        let is_message = entry.kind == EntryKind::Message;
        let record = serde_json::from_value::<MessageRecord>(entry.body).ok();
        let usage = record.filter(|_| is_message)?.usage.filter(is_known)?;
        Some(LastUsage { usage, context: context_of(usage).saturating_sub(saved) })
    })
}

/// Whether the provider has told the usage: not if the request was cancelled, for example.
fn is_known(usage: &Usage) -> bool {
    context_of(*usage) > 0
}

/// The tokens of the context after a request.
fn context_of(usage: Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}

/// The estimated tokens that an entry saves: those of a compaction.
fn saved_by(entry: &Entry) -> u64 {
    if entry.kind != EntryKind::Compaction {
        return 0;
    }
    let compacted = serde_json::from_value::<Compacted>(entry.body.clone());
    compacted.map_or(0, |compacted| compacted.saved_tokens)
}

type Read = (BTreeMap<String, ModelUsage>, Option<(String, u64)>);

/// Sums up the usage by model. Returns the last model, too, and the tokens of the context.
async fn read(store: &dyn SessionStore, key: &SessionKey) -> Result<Read, StoreError> {
    let mut by_model = BTreeMap::<String, ModelUsage>::new();
    let mut last: Option<(String, u64)> = None;
    let mut from_seq = 1;
    loop {
        let filter = ReadFilter { from_seq, limit: PAGE, last: false };
        let entries = store.read(key, filter).await?;
        let Some(end) = entries.last() else { return Ok((by_model, last)) };
        from_seq = end.seq + 1;
        for entry in entries {
            if let Some((_, context)) = &mut last {
                *context = context.saturating_sub(saved_by(&entry));
            }
            if entry.kind != EntryKind::Message {
                continue;
            }
            let Ok(record) = serde_json::from_value::<MessageRecord>(entry.body) else { continue };
            let (Some(model), Some(usage)) = (record.model, record.usage) else { continue };
            let known = by_model.entry(model.clone()).or_default();
            known.requests += 1;
            known.sum += usage;
            if is_known(&usage) {
                last = Some((model, context_of(usage)));
            }
        }
    }
}
