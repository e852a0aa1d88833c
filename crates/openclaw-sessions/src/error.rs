//! What can go wrong with a store, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::key::SessionKey;

/// Why a store could not do what was asked. Nothing was changed then, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another program, or another task of this one, kept it locked.
    #[error(
        "{} was locked by another program for more than {waited:?}; try again, and if that does not \
         help, end the program that holds it open",
        .path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// For how long it was waited.
        waited: Duration,
    },
    /// There is no room left.
    #[error("{} cannot grow: the disk is full; make room and try again", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It must not be written to.
    #[error(
        "{} cannot be written; the file and its folder must be writable for this user, and the disk \
         not mounted read-only",
        .path.display()
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A newer version of this program made it.
    #[error(
        "{} was written by a newer version of this program (format {found}; this one knows {known}); \
         use that version, or another file",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that is understood.
        known: i64,
    },
    /// It is a database, but of something else.
    #[error("{} is a database of another program; name another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is damaged.
    #[error(
        "{} is damaged; start again: it is then examined, and set aside if it cannot be used",
        .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no such session.
    #[error("there is no session {key}")]
    NoSession {
        /// The key.
        key: SessionKey,
    },
    /// The session belongs to another agent.
    #[error("session {key} belongs to agent {agent}; use that agent or another session")]
    OtherAgent {
        /// The key.
        key: SessionKey,
        /// Whose it is.
        agent: String,
    },
    /// Something is too long.
    #[error("{what} has {bytes} bytes; at most {limit} can be kept")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The body of an entry is nested too deep.
    #[error("the body of an entry is nested more than {limit} deep")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// Too many entries at once.
    #[error("{count} entries at once; append at most {limit}")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A file or folder could not be made, moved or looked at.
    #[error("{action} {}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something else.
    #[error("the sessions in {} cannot be used", .path.display())]
    Other {
        /// The file, or where else they are.
        path: PathBuf,
        /// What was said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
