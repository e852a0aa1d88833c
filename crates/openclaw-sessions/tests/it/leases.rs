//! One run per session at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use openclaw_sessions::{Lease, LeaseError, LeaseKeeper, SessionStore as _, StoreError};
use tokio::time::timeout;

use crate::support::{PATIENCE, folder, key, raw, store};

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_session_is_leased_to_one_at_a_time() {
    let (_folder, path) = folder();
    let (one, other, k) = (store(&path).await, store(&path).await, key("k"));
    let lease = one.lease(&k, "run 1", LONG).await.unwrap();
    for store in [&one, &other] {
        match store.lease(&k, "run 2", LONG).await {
            Err(LeaseError::Busy { by, remaining, .. }) => {
                assert_eq!(by, "run 1");
                assert!(remaining <= LONG && !remaining.is_zero());
            }
            other => panic!("{other:?}"),
        }
    }
    // Another session is not affected.
    other.lease(&key("another"), "run 2", LONG).await.unwrap();
    assert!(!lease.is_lost());
    lease.release().await;
    other.lease(&k, "run 2", LONG).await.unwrap();
}

#[tokio::test]
async fn a_dropped_lease_is_given_back() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    drop(store.lease(&k, "run 1", LONG).await.unwrap());
    let taken = async {
        loop {
            match store.lease(&k, "run 2", LONG).await {
                Ok(lease) => break lease,
                Err(LeaseError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    timeout(PATIENCE, taken).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_another_took_over_is_lost_and_not_given_back_in_its_place() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    let first = store.lease(&k, "sleeper", Duration::from_millis(300)).await.unwrap();
    // As if the machine had slept: the lease expired, and another owner was faster than the
    // renewal.
    let mut connection = raw(&path).await;
    sqlx::query("UPDATE leases SET token = token + 1, owner = 'quicker', expires_at = ?")
        .bind(i64::MAX)
        .execute(&mut connection)
        .await
        .unwrap();
    timeout(PATIENCE, first.lost()).await.unwrap();
    assert!(first.is_lost());
    first.release().await;
    let owner: String =
        sqlx::query_scalar("SELECT owner FROM leases").fetch_one(&mut connection).await.unwrap();
    assert_eq!(owner, "quicker");
}

#[tokio::test]
async fn a_clock_that_was_set_back_does_not_prolong_a_lease() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    let _lease = store.lease(&k, "run 1", LONG).await.unwrap();
    let mut connection = raw(&path).await;
    sqlx::query("UPDATE leases SET expires_at = expires_at * 2")
        .execute(&mut connection)
        .await
        .unwrap();
    match store.lease(&k, "run 2", LONG).await {
        Err(LeaseError::Busy { remaining, .. }) => assert!(remaining <= LONG, "{remaining:?}"),
        other => panic!("{other:?}"),
    }
}

/// A lease in a store that can be made to fail.
#[derive(Debug, Default)]
struct Breakable {
    broken: AtomicBool,
    renewals: tokio::sync::Notify,
}

#[async_trait]
impl LeaseKeeper for Breakable {
    async fn renew(&self) -> Result<bool, StoreError> {
        self.renewals.notify_one();
        if self.broken.load(Ordering::SeqCst) {
            return Err(StoreError::Full { path: "sessions.db".into() });
        }
        Ok(true)
    }

    async fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_for_as_long_as_it_is_held_and_lost_when_that_fails_for_its_whole_time()
{
    let keeper = Arc::new(Breakable::default());
    let lease = Lease::granted(key("k"), LONG, Arc::clone(&keeper) as Arc<dyn LeaseKeeper>);
    for _ in 0..10 {
        keeper.renewals.notified().await;
    }
    assert!(!lease.is_lost());
    keeper.broken.store(true, Ordering::SeqCst);
    // One failure does not lose the lease.
    keeper.renewals.notified().await;
    assert!(!lease.is_lost());
    lease.lost().await;
    assert!(lease.is_lost());
}
