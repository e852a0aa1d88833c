//! The tokens that a session has used, from its stored messages (`/usage`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use openclaw_agent::MessageRecord;
use openclaw_models::Usage;
use openclaw_sessions::{EntryKind, ReadFilter, Session, SessionKey, StoreError};

use crate::agents::AgentRuntime;
use crate::gateway::Gateway;

/// The number of entries that are read at a time.
const PAGE: usize = 500;

/// The usage of one model.
#[derive(Debug, Default)]
struct ModelUsage {
    requests: u64,
    sum: Usage,
}

/// Describes the usage of a session for the user.
pub(crate) async fn of_session(
    gateway: &Gateway,
    service: &AgentRuntime,
    key: &SessionKey,
) -> String {
    let (by_model, last) = match read(gateway, key).await {
        Ok(read) => read,
        Err(error) => return error.to_string(),
    };
    let Some((model, last)) = last else {
        return "No tokens were used in this conversation yet.".to_owned();
    };
    let mut text = String::new();
    for (model, ModelUsage { requests, sum }) in &by_model {
        let requests =
            if *requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
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
    let context = last.input_tokens.saturating_add(last.output_tokens);
    let _ = match service.window(&model).filter(|window| *window > 0) {
        Some(window) => write!(
            text,
            "Context: {context} of {window} tokens ({} %)",
            context.saturating_mul(100) / window
        ),
        None => write!(text, "Context: {context} tokens"),
    };
    text
}

/// Entries at the end of a session in which its last usage is looked for: an answer, and what was sent
/// after it.
const LAST: usize = 4;

/// Returns the usage of the last request, if it is among the last entries.
pub(crate) async fn last(gateway: &Gateway, session: &Session) -> Option<Usage> {
    if session.entries == 0 {
        return None;
    }
    let filter = ReadFilter { from_seq: 1, limit: LAST, last: true };
    let entries = gateway.store.read(&session.key, filter).await.ok()?;
    let records = entries.into_iter().rev().filter(|entry| entry.kind == EntryKind::Message);
    let mut records =
        records.filter_map(|it| serde_json::from_value::<MessageRecord>(it.body).ok());
    records.find_map(|record| record.usage)
}

type Read = (BTreeMap<String, ModelUsage>, Option<(String, Usage)>);

/// Sums up the usage by model. Returns the last request, too.
async fn read(gateway: &Gateway, key: &SessionKey) -> Result<Read, StoreError> {
    let (mut by_model, mut last) = (BTreeMap::<String, ModelUsage>::new(), None);
    let mut from_seq = 1;
    loop {
        let filter = ReadFilter { from_seq, limit: PAGE, last: false };
        let entries = gateway.store.read(key, filter).await?;
        let Some(end) = entries.last() else { return Ok((by_model, last)) };
        from_seq = end.seq + 1;
        let messages = entries.into_iter().filter(|entry| entry.kind == EntryKind::Message);
        for record in
            messages.filter_map(|it| serde_json::from_value::<MessageRecord>(it.body).ok())
        {
            let (Some(model), Some(usage)) = (record.model, record.usage) else { continue };
            let known = by_model.entry(model.clone()).or_default();
            known.requests += 1;
            known.sum += usage;
            last = Some((model, usage));
        }
    }
}
