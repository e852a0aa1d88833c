//! The right to run something in a session: one holder at a time, in all processes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::error::StoreError;
use crate::key::SessionKey;

/// Giving a lease back is not waited for any longer than this; it then runs out.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Somebody has it.
    #[error("session {key} is in use by {by}; wait until that is done, or use another session")]
    Busy {
        /// The session.
        key: SessionKey,
        /// Who has it.
        by: String,
        /// After this time it is free, unless it is renewed.
        remaining: Duration,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a store keeps one lease: the part that differs from store to store.
pub trait LeaseKeeper: Send + Sync + fmt::Debug {
    /// Prolongs it by its whole time. `false`: it belongs to somebody else by now.
    fn renew(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Gives it back, unless it belongs to somebody else by now.
    fn release(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// The right to run something in a session. Dropping it gives it back in the background.
#[derive(Debug)]
pub struct Lease {
    key: SessionKey,
    lost: watch::Receiver<bool>,
    /// When this closes, the task gives the lease back and ends.
    held: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Lease {
    /// A lease that was just granted for `ttl`. Must be called within a Tokio runtime.
    pub fn granted(key: SessionKey, ttl: Duration, keeper: Arc<dyn LeaseKeeper>) -> Self {
        let (held, dropped) = oneshot::channel();
        let (lost_sender, lost) = watch::channel(false);
        let task = tokio::spawn(keep(key.clone(), ttl, keeper, dropped, lost_sender));
        Self { key, lost, held, task }
    }

    /// The session.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Whether somebody else may have it by now: because the machine slept, or the store failed for
    /// too long. Whoever runs under it should stop.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() || self.task.is_finished()
    }

    /// Waits until the lease [is lost](Self::is_lost).
    pub async fn lost(&self) {
        // An error is that the task is gone, and nobody renews any more.
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }

    /// Gives it back, and waits until that is done.
    pub async fn release(self) {
        drop(self.held);
        // An error is that the task was ended together with its runtime.
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
                tracing::warn!(session = %key, %error, "the lease of a session was not renewed");
            }
            Err(_) => {
                tracing::warn!(session = %key, "renewing the lease of a session took too long");
            }
        }
        if Instant::now() >= valid_until {
            lost.send_replace(true);
            break;
        }
    }
    if let Ok(Err(error)) = timeout(RELEASE_TIMEOUT, keeper.release()).await {
        tracing::warn!(session = %key, %error, "the lease of a session was not given back");
    }
}
