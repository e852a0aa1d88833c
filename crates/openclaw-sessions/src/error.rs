//! Errors of a session store.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::key::SessionKey;

/// Why an operation on a store failed. Unless stated otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another task of this one, held the lock.
    #[error(
        "{} was locked by another process for more than {waited:?}; retry, or stop the process that \
         holds it open",
        .path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long the lock was awaited.
        waited: Duration,
    },
    /// The disk is full.
    #[error("cannot write {}: the disk is full; free some space and retry", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error(
        "{} cannot be written; the file and its folder must be writable by this user, and the \
         disk must not be mounted read-only",
        .path.display()
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "{} was written by a newer version of this program (format {found}; this one supports up to \
         {known}); use that version, or another state folder",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format version of the file.
        found: i64,
        /// Newest supported format version.
        known: i64,
    },
    /// The file is a database of another program.
    #[error(
        "{} is a database of another program; move it elsewhere, or use another state folder",
        .path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged; restart the program: the file is then checked, and moved aside if unusable",
        .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The session does not exist.
    #[error("session `{key}` not found")]
    NoSession {
        /// Session key.
        key: SessionKey,
    },
    /// The session belongs to another agent.
    #[error("session `{key}` belongs to agent `{agent}`; use that agent or another session")]
    OtherAgent {
        /// Session key.
        key: SessionKey,
        /// Agent that owns the session.
        agent: String,
    },
    /// A value is too long.
    #[error("{what} has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// The value.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body of an entry is nested too deeply.
    #[error("the body of an entry is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Too many entries in one append.
    #[error("{count} entries in one append; the limit is {limit}")]
    TooMany {
        /// Number of entries.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A file or directory could not be created, moved or accessed.
    #[error("{action} {}", .path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// Any other error.
    #[error("the session store {} cannot be used", .path.display())]
    Other {
        /// The file, or another location of the store.
        path: PathBuf,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
