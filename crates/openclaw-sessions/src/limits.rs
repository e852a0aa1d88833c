//! How much of everything there may be, and the checks of that.

use std::time::Duration;

use serde_json::Value;

use crate::entry::NewEntry;
use crate::error::StoreError;

/// An entry's body has at most this many bytes, as JSON.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// An entry's body is nested at most this deep: what is deeper could not be read again.
pub const MAX_BODY_DEPTH: usize = 127;
/// So many entries are appended at once at most.
pub const MAX_ENTRIES_AT_ONCE: usize = 1_000;
/// One listing has at most this many sessions.
pub const MAX_LISTED: usize = 1_000;
/// One reading has at most this many entries.
pub const MAX_READ: usize = 10_000;
/// One reading ends after about this many bytes of bodies.
pub const MAX_READ_BYTES: usize = 64 * 1024 * 1024;
/// A title has at most this many bytes.
pub const MAX_TITLE_BYTES: usize = 4_096;
/// The name of an agent, model, run or owner has at most this many bytes.
pub const MAX_NAME_BYTES: usize = 512;
/// A shorter lease is made this long.
pub const MIN_LEASE: Duration = Duration::from_millis(50);
/// A longer lease is made this short.
pub const MAX_LEASE: Duration = Duration::from_secs(3_600);

/// Refuses a name that is too long.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    check_size(what, name.len(), MAX_NAME_BYTES)
}

/// Refuses what is too long.
pub(crate) fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLong { what, bytes, limit }) } else { Ok(()) }
}

/// The bodies of entries as JSON, if all of them may be stored.
pub(crate) fn encode(entries: &[NewEntry]) -> Result<Vec<String>, StoreError> {
    if entries.len() > MAX_ENTRIES_AT_ONCE {
        let (count, limit) = (entries.len(), MAX_ENTRIES_AT_ONCE);
        return Err(StoreError::TooMany { count, limit });
    }
    entries.iter().map(encode_one).collect()
}

fn encode_one(entry: &NewEntry) -> Result<String, StoreError> {
    if let Some(run) = &entry.run {
        check_name("the name of a run", run)?;
    }
    if deeper_than(&entry.body, MAX_BODY_DEPTH) {
        return Err(StoreError::TooDeep { limit: MAX_BODY_DEPTH });
    }
    let body = entry.body.to_string();
    check_size("the body of an entry", body.len(), MAX_BODY_BYTES)?;
    Ok(body)
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    let mut inside: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return false,
    };
    match levels.checked_sub(1) {
        None => true,
        Some(levels) => inside.any(|value| deeper_than(value, levels)),
    }
}
