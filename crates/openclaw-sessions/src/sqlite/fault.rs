//! Classifies SQLite errors by their result codes, never by their messages.

use std::path::Path;
use std::time::Duration;

use super::lane::QUEUE_TIMEOUT;
use crate::error::StoreError;

/// `SQLITE_IOERR_SHMSIZE`: a full disk has no room for the index of the log.
const NO_ROOM_FOR_INDEX: i32 = 4874;

/// An internal error.
#[derive(Debug)]
pub(super) enum DatabaseError {
    /// Reported by the database.
    Database(sqlx::Error),
    /// Detected by this crate.
    Store(StoreError),
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for DatabaseError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl DatabaseError {
    /// Returns whether the database is damaged, or not a database.
    pub(super) fn is_corruption(&self) -> bool {
        match self {
            Self::Database(error) => {
                matches!(code_of(error).map(|code| code & 0xff), Some(11 | 26))
            }
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. }),
        }
    }

    /// Returns whether there is no room for the index of the log, which even readers must create.
    pub(super) fn is_no_room_for_index(&self) -> bool {
        matches!(self, Self::Database(error) if code_of(error) == Some(NO_ROOM_FOR_INDEX))
    }

    /// Converts the fault for the caller. <https://www.sqlite.org/rescode.html>
    pub(super) fn explain(self, path: &Path, patience: Duration) -> StoreError {
        let corrupt = self.is_corruption();
        let error = match self {
            Self::Store(error) => return error,
            Self::Database(error) => error,
        };
        let code = code_of(&error);
        let is_queue_full = matches!(error, sqlx::Error::PoolTimedOut);
        // `sqlx` would say it twice, with the code.
        let words = error.as_database_error().map(|it| it.message().to_owned());
        let source: Box<dyn std::error::Error + Send + Sync> = match words {
            Some(words) => words.into(),
            None => Box::new(error),
        };
        let path = path.to_owned();
        match code.map(|code| (code & 0xff, code)) {
            _ if corrupt => StoreError::Corrupt { path, source },
            _ if is_queue_full => StoreError::Locked { path, waited: QUEUE_TIMEOUT },
            // SQLITE_BUSY, SQLITE_LOCKED
            Some((5 | 6, _)) => StoreError::Locked { path, waited: patience },
            // SQLITE_FULL
            Some((13, _) | (_, NO_ROOM_FOR_INDEX)) => StoreError::Full { path },
            // SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN
            Some((3 | 8 | 14, _)) => StoreError::NotWritable { path, source },
            _ => StoreError::Other { path, source },
        }
    }
}

/// Returns the extended result code.
fn code_of(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}
