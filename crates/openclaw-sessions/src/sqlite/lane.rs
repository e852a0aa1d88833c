//! Connections to one database that take turns: one for writing, a few for reading.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::fault::Fault;
use super::files::Identity;

/// Nobody waits longer than this for others of this process.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// Some connections, made when they are needed.
#[derive(Debug)]
pub(super) struct Lane {
    options: SqliteConnectOptions,
    permits: Semaphore,
    idle: Mutex<Vec<(Identity, SqliteConnection)>>,
    /// Whether connections are kept for the next one.
    keeps: bool,
}

/// A connection for a while. It is closed when this is dropped, which ends whatever it was doing;
/// only one that is known to be fine is given back.
#[derive(Debug)]
pub(super) struct Borrowed<'a> {
    lane: &'a Lane,
    identity: Identity,
    connection: SqliteConnection,
    is_new: bool,
    _permit: SemaphorePermit<'a>,
}

impl Lane {
    pub(super) fn new(options: SqliteConnectOptions, width: usize) -> Self {
        Self { options, permits: Semaphore::new(width), idle: Mutex::default(), keeps: true }
    }

    /// One connection at a time, made anew for each use: it keeps everybody else out while it lives.
    pub(super) fn alone(options: SqliteConnectOptions) -> Self {
        Self { keeps: false, ..Self::new(options, 1) }
    }

    /// A connection to the file that stands there now. If it was replaced, connections to the old one
    /// are closed: nobody would find what they write.
    pub(super) async fn borrow(&self, identity: Identity) -> Result<Borrowed<'_>, Fault> {
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
        Ok(Borrowed { lane: self, identity, connection, is_new, _permit: permit })
    }

    /// Closes the connections that nobody uses.
    pub(super) async fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, connection) in idle {
            // An error is that its thread is gone already.
            let _ = connection.close().await;
        }
    }
}

impl Borrowed<'_> {
    /// Whether it was made just now.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Closes the connection, and waits until that is done.
    pub(super) async fn close(self) {
        // An error is that its thread is gone already.
        let _ = self.connection.close().await;
    }

    /// Keeps the connection for the next one.
    pub(super) fn give_back(self) {
        if !self.lane.keeps {
            return;
        }
        let mut idle = self.lane.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((self.identity, self.connection));
    }
}

impl Deref for Borrowed<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
