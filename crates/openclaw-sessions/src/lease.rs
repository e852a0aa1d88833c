//! Leases: the exclusive right to run in a session, across processes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::error::StoreError;
use crate::key::SessionKey;

/// Timeout of releasing a lease; after that it is left to expire.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a lease was not granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Another run holds it.
    #[error("session `{key}` is in use by {by}; wait until it finishes, or use another session")]
    Busy {
        /// Session key.
        key: SessionKey,
        /// Owner of the lease.
        by: String,
        /// Time until it expires, unless it is renewed.
        remaining: Duration,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Renews and releases one lease: the part that differs between stores.
#[async_trait]
pub trait LeaseKeeper: Send + Sync + fmt::Debug {
    /// Extends the lease by its full duration. Returns `false` if another owner has it.
    async fn renew(&self) -> Result<bool, StoreError>;

    /// Releases the lease, unless another owner has it.
    async fn release(&self) -> Result<(), StoreError>;
}

/// The exclusive right to run in a session. On drop it is released in the background.
#[derive(Debug)]
pub struct Lease {
    key: SessionKey,
    lost: watch::Receiver<bool>,
    /// When this closes, the task releases the lease and exits.
    held: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Lease {
    /// Wraps a lease that was just granted for `ttl`, and keeps renewing it. Must be called within
    /// a Tokio runtime.
    pub fn granted(key: SessionKey, ttl: Duration, keeper: Arc<dyn LeaseKeeper>) -> Self {
        let (held, dropped) = oneshot::channel();
        let (lost_sender, lost) = watch::channel(false);
        let task = tokio::spawn(keep(key.clone(), ttl, keeper, dropped, lost_sender));
        Self { key, lost, held, task }
    }

    /// Returns the session key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Returns whether another owner may hold the lease by now, because the host slept or the store
    /// failed for too long. The run should stop.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() || self.task.is_finished()
    }

    /// Waits until the lease [is lost](Self::is_lost).
    pub async fn lost(&self) {
        // An error means that the task is gone, and the lease is no longer renewed.
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }

    /// Releases the lease and waits until that is done.
    pub async fn release(self) {
        drop(self.held);
        // An error means that the task was aborted together with its runtime.
        let _ = self.task.await;
    }
}

/// Renews a lease until it is dropped or lost.
async fn keep(
    key: SessionKey,
    ttl: Duration,
    keeper: Arc<dyn LeaseKeeper>,
    mut dropped: oneshot::Receiver<()>,
    lost: watch::Sender<bool>,
) {
    let mut valid_until = Instant::now() + ttl;
    while timeout(ttl / 3, &mut dropped).await.is_err() {
        let begun = Instant::now();
        match timeout(ttl, keeper.renew()).await {
            Ok(Ok(true)) => valid_until = begun + ttl,
            Ok(Ok(false)) => {
                tracing::warn!(session = %key, "another run took over this session");
                lost.send_replace(true);
                return;
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %key, %error, "failed to renew the session lease");
            }
            Err(_) => {
                tracing::warn!(session = %key, "renewing the session lease timed out");
            }
        }
        if Instant::now() >= valid_until {
            lost.send_replace(true);
            break;
        }
    }
    if let Ok(Err(error)) = timeout(RELEASE_TIMEOUT, keeper.release()).await {
        tracing::warn!(session = %key, %error, "failed to release the session lease");
    }
}
