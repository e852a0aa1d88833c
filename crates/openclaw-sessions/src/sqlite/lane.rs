//! Small connection pools of one database: one connection for writing, a few for reading.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::fault::DatabaseError;
use super::files::FileIdentity;

/// Maximum time to wait for a connection that other tasks of this process use.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// A pool of connections, created on demand.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    options: SqliteConnectOptions,
    permits: Semaphore,
    idle: Mutex<Vec<(FileIdentity, SqliteConnection)>>,
    /// Whether idle connections are kept for reuse.
    keeps: bool,
}

/// A borrowed connection. Dropping it closes the connection, which aborts its work; only a
/// connection known to be intact is given back.
#[derive(Debug)]
pub(super) struct PooledConnection<'a> {
    lane: &'a ConnectionPool,
    identity: FileIdentity,
    connection: SqliteConnection,
    is_new: bool,
    _permit: SemaphorePermit<'a>,
}

impl ConnectionPool {
    pub(super) fn new(options: SqliteConnectOptions, width: usize) -> Self {
        Self { options, permits: Semaphore::new(width), idle: Mutex::default(), keeps: true }
    }

    /// Creates a lane with one connection at a time, opened for each use: it locks all others out
    /// while it is open.
    pub(super) fn alone(options: SqliteConnectOptions) -> Self {
        Self { keeps: false, ..Self::new(options, 1) }
    }

    /// Returns a connection to the current file. If the file was replaced, connections to the old
    /// one are closed: their writes would be lost.
    pub(super) async fn borrow(
        &self,
        identity: FileIdentity,
    ) -> Result<PooledConnection<'_>, DatabaseError> {
        let permit = match timeout(QUEUE_TIMEOUT, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) | Err(_) => return Err(sqlx::Error::PoolTimedOut.into()),
        };
        let idle = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|(of, _)| *of == identity);
            idle.pop()
        };
        let is_new = idle.is_none();
        let connection = match idle {
            Some((_, connection)) => connection,
            None => self.options.connect().await?,
        };
        Ok(PooledConnection { lane: self, identity, connection, is_new, _permit: permit })
    }

    /// Closes idle connections.
    pub(super) async fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, connection) in idle {
            // An error means that its thread is gone already.
            let _ = connection.close().await;
        }
    }
}

impl PooledConnection<'_> {
    /// Returns whether the connection was just opened.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Closes the connection and waits until that is done.
    pub(super) async fn close(self) {
        // An error means that its thread is gone already.
        let _ = self.connection.close().await;
    }

    /// Returns the connection to the lane for reuse.
    pub(super) fn give_back(self) {
        if !self.lane.keeps {
            return;
        }
        let mut idle = self.lane.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((self.identity, self.connection));
    }
}

impl Deref for PooledConnection<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for PooledConnection<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
