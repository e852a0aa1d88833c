//! Limits of a store, and their checks.

use std::time::Duration;

use crate::error::StoreError;

/// Maximum size of an entry's body as JSON, in bytes.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Maximum nesting depth of an entry's body: deeper JSON could not be parsed again.
pub const MAX_BODY_DEPTH: usize = 127;
/// Maximum number of entries per append.
pub const MAX_ENTRIES_AT_ONCE: usize = 1_000;
/// Maximum number of sessions per listing.
pub const MAX_LISTED: usize = 1_000;
/// Maximum number of entries per read.
pub const MAX_READ: usize = 10_000;
/// Approximate maximum size of the bodies per read, in bytes.
pub const MAX_READ_BYTES: usize = 64 * 1024 * 1024;
/// Maximum length of a title, in bytes.
pub const MAX_TITLE_BYTES: usize = 4_096;
/// Maximum length of a folder's path in bytes.
pub(crate) const MAX_FOLDER_BYTES: usize = 4_096;
/// Maximum length of the name of an agent, model, run or owner, in bytes.
pub const MAX_NAME_BYTES: usize = 512;
/// Minimum duration of a lease; shorter ones are extended.
pub const MIN_LEASE: Duration = Duration::from_millis(50);
/// Maximum duration of a lease; longer ones are shortened.
pub const MAX_LEASE: Duration = Duration::from_secs(3_600);

/// Rejects a name that is too long.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    check_size(what, name.len(), MAX_NAME_BYTES)
}

/// Rejects a value that is too long.
pub(crate) fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), StoreError> {
    if bytes > limit { Err(StoreError::TooLong { what, bytes, limit }) } else { Ok(()) }
}
