//! A database: created at the first write, checked when it is opened.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteLockingMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::fault::DatabaseError;
use super::files::{CreationLock, FileIdentity, Files, file_error};
use super::lane::{ConnectionPool, PooledConnection};
use super::schema::{DatabaseState, bring_up_to_date, inspect};
use crate::error::StoreError;

/// Number of reading connections.
const READERS: usize = 4;
/// Number of rows buffered ahead: each may be as large as an entry.
const ROWS_AHEAD: usize = 16;
/// Larger databases are checked in full only if damage is suspected: it would take too long.
const CHECKED_BYTES: i64 = 2 * 1024 * 1024;
/// Number of attempts to check a database that is replaced during the check.
const LOOKS: usize = 3;
/// Size that the write-ahead log is truncated to after a burst.
const LOG_BYTES: &str = "16777216";

/// A database with its connections.
#[derive(Debug)]
pub(super) struct Database {
    files: Files,
    options: SqliteConnectOptions,
    patience: Duration,
    writing: ConnectionPool,
    reading: ConnectionPool,
    /// Used when the disk has no room for the shared index of the log (`-shm`): the index is kept
    /// in memory then, which locks all other connections out.
    alone: ConnectionPool,
    is_alone: AtomicBool,
}

impl Database {
    /// Describes the database at a path; creates and opens nothing yet.
    pub(super) fn at(path: &Path, patience: Duration) -> Result<Self, StoreError> {
        let files = Files::at(path)?;
        let options = SqliteConnectOptions::new()
            .filename(files.path())
            .busy_timeout(patience)
            // With a write-ahead log, nothing is lost when a process dies. After a power failure
            // the last commits may be lost, but the database stays consistent.
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .pragma("journal_size_limit", LOG_BYTES)
            // Overwrites deleted content.
            .pragma("secure_delete", "ON")
            .row_buffer_size(ROWS_AHEAD)
            .thread_name(|number| format!("sessions-{number}"))
            .disable_statement_logging();
        let writing = ConnectionPool::new(options.clone(), 1);
        let reading = ConnectionPool::new(options.clone().pragma("query_only", "ON"), READERS);
        let alone =
            ConnectionPool::alone(options.clone().locking_mode(SqliteLockingMode::Exclusive));
        let is_alone = AtomicBool::new(false);
        Ok(Self { files, options, patience, writing, reading, alone, is_alone })
    }

    /// Converts a fault for the caller. Damage is recorded for the next start.
    pub(super) fn explain(&self, fault: DatabaseError) -> StoreError {
        if fault.is_corruption() {
            self.files.suspect();
        }
        fault.explain(self.files.path(), self.patience)
    }

    /// Checks an existing database. A damaged one is moved aside; returns a note about that.
    pub(super) async fn examine(&self) -> Result<Option<String>, DatabaseError> {
        self.files.check_companions()?;
        self.files.make_private();
        let mut checked = self.check().await;
        if matches!(&checked, Err(fault) if fault.is_no_room_for_index()) {
            tracing::warn!(file = %self.files.path().display(), "the disk is full");
            self.is_alone.store(true, Ordering::Relaxed);
            checked = self.check().await;
        }
        match checked {
            Err(fault) if fault.is_corruption() => {}
            checked => return checked.map(|()| None),
        }
        let turn = self.files.take_turn(self.patience).await?;
        // Another process may have moved it aside in the meantime, and this is its successor.
        match self.check().await {
            Err(fault) if fault.is_corruption() => {
                let reason = std::error::Error::source(&self.explain(fault))
                    .map_or_else(String::new, |source| format!(" ({source})"));
                let aside = self.files.set_aside(&turn)?;
                Ok(Some(note(self.files.path(), &aside, &reason)))
            }
            checked => checked.map(|()| None),
        }
    }

    /// Checks the database, again if it is replaced during the check: the failure is not its
    /// successor's.
    async fn check(&self) -> Result<(), DatabaseError> {
        let mut looks = 0;
        loop {
            let Some(identity) = self.files.identity()? else { return Ok(()) };
            looks += 1;
            match self.check_one(identity).await {
                Err(_) if looks < LOOKS && self.files.identity()? != Some(identity) => {}
                checked => return checked,
            }
        }
    }

    async fn check_one(&self, identity: FileIdentity) -> Result<(), DatabaseError> {
        let mut writer = self.lane_to_write().borrow(identity).await?;
        match self.check_with(&mut writer).await {
            Ok(()) => writer.give_back(),
            Err(fault) => {
                writer.close().await;
                return Err(fault);
            }
        }
        Ok(())
    }

    async fn check_with(&self, connection: &mut SqliteConnection) -> Result<(), DatabaseError> {
        bring_up_to_date(connection, &self.files).await?;
        let bytes: i64 = sqlx::query_scalar(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        )
        .fetch_one(&mut *connection)
        .await?;
        let suspect = self.files.is_suspect();
        if bytes > CHECKED_BYTES && !suspect {
            return Ok(());
        }
        let found: String =
            sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *connection).await?;
        if found != "ok" {
            let path = self.files.path().to_owned();
            return Err(StoreError::Corrupt { path, source: found.into() }.into());
        }
        if suspect {
            self.files.clear_suspicion();
        }
        Ok(())
    }

    fn lane_to_write(&self) -> &ConnectionPool {
        if self.is_alone.load(Ordering::Relaxed) { &self.alone } else { &self.writing }
    }

    /// Returns a connection for writing. Creates the database if it does not exist.
    pub(super) async fn writer(&self) -> Result<PooledConnection<'_>, DatabaseError> {
        let identity = match self.files.identity()? {
            Some(identity) => identity,
            None => self.create().await?,
        };
        let mut writer = self.lane_to_write().borrow(identity).await?;
        if writer.is_new() {
            bring_up_to_date(&mut writer, &self.files).await?;
        }
        Ok(writer)
    }

    /// Returns a connection for reading, or `None` if there is no database.
    pub(super) async fn reader(&self) -> Result<Option<PooledConnection<'_>>, DatabaseError> {
        let Some(identity) = self.files.identity()? else { return Ok(None) };
        if self.is_alone.load(Ordering::Relaxed) {
            return self.writer().await.map(Some);
        }
        let mut reader = self.reading.borrow(identity).await?;
        if reader.is_new() && inspect(&mut reader, &self.files).await? != DatabaseState::Current {
            self.writer().await?.give_back();
        }
        Ok(Some(reader))
    }

    /// Creates the database under a temporary name and moves it into place once complete, so that
    /// no process sees it half finished.
    async fn create(&self) -> Result<FileIdentity, DatabaseError> {
        self.files.make_folder()?;
        let turn = self.files.take_turn(self.patience).await?;
        if let Some(identity) = self.files.identity()? {
            return Ok(identity);
        }
        self.create_in_turn(&turn).await?;
        self.files.identity()?.ok_or_else(|| {
            let error = std::io::ErrorKind::NotFound.into();
            file_error("cannot find", self.files.path(), error).into()
        })
    }

    async fn create_in_turn(&self, turn: &CreationLock) -> Result<(), DatabaseError> {
        let cannot = |error| file_error("cannot create", self.files.path(), error);
        let workshop = tempfile::Builder::new()
            .prefix(".sessions-")
            .tempdir_in(self.files.make_folder()?)
            .map_err(cannot)?;
        // Private from the first byte, and closed before SQLite opens it.
        let made = tempfile::NamedTempFile::new_in(&workshop).map_err(cannot)?.into_temp_path();
        let mut connection = self.options.clone().filename(&made).connect().await?;
        bring_up_to_date(&mut connection, &self.files).await?;
        connection.close().await?;
        self.files.put_in_place(made, turn)?;
        Ok(())
    }

    /// Closes idle connections.
    pub(super) async fn close_idle(&self) {
        self.reading.close_idle().await;
        self.writing.close_idle().await;
    }

    pub(super) fn path(&self) -> PathBuf {
        self.files.path().to_owned()
    }
}

fn note(path: &Path, aside: &Path, reason: &str) -> String {
    let (path, aside) = (path.display(), aside.display());
    format!("{path} was damaged{reason}; it was moved to {aside}, and a new store was started")
}
