//! Leases as rows.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;

use super::database::Database;
use super::fault::Fault;
use super::rows::to_micros;
use crate::error::StoreError;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError, LeaseKeeper};
use crate::limits::{MAX_LEASE, MIN_LEASE, check_name};

/// Who has a lease, or that it was granted.
enum Grant {
    Granted { token: i64 },
    Held { by: String, remaining: Duration },
}

/// Takes the lease of a session, if nobody has it.
pub(super) async fn take(
    database: &Arc<Database>,
    key: &SessionKey,
    owner: &str,
    ttl: Duration,
) -> Result<Lease, LeaseError> {
    check_name("the owner of a lease", owner)?;
    let ttl = ttl.clamp(MIN_LEASE, MAX_LEASE);
    let grant = async {
        let mut writer = database.writer().await?;
        let grant = grant(&mut writer, key, owner, micros(ttl)).await?;
        writer.give_back();
        Ok(grant)
    };
    match grant.await.map_err(|fault| database.explain(fault))? {
        Grant::Held { by, remaining } => Err(LeaseError::Busy { key: key.clone(), by, remaining }),
        Grant::Granted { token } => {
            let keeper = Keeper { database: Arc::clone(database), key: key.clone(), token, ttl };
            Ok(Lease::granted(key.clone(), ttl, Arc::new(keeper)))
        }
    }
}

/// After an error the connection must not be used again: what was begun is undone when it is closed.
async fn grant(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    owner: &str,
    ttl: i64,
) -> Result<Grant, Fault> {
    let now = to_micros(SystemTime::now());
    // All at once, as with entries. Leases that have run out go. If the clock was set back, the lease of a
    // dead owner must not hold for that long.
    let held: Vec<(String, i64, i64, bool)> = sqlx::query_as(
        "BEGIN IMMEDIATE;
         DELETE FROM leases WHERE expires_at <= ?;
         UPDATE leases SET expires_at = ? + ttl WHERE expires_at > ? + ttl;
         INSERT INTO leases (key, owner, token, ttl, expires_at)
         VALUES (?, ?, random(), ?, ?) ON CONFLICT (key) DO NOTHING;
         SELECT owner, token, expires_at, changes() FROM leases WHERE key = ?;
         COMMIT",
    )
    .bind(now)
    .bind(now)
    .bind(now)
    .bind(key.as_str())
    .bind(owner)
    .bind(ttl)
    .bind(now.saturating_add(ttl))
    .bind(key.as_str())
    .fetch_all(connection)
    .await?;
    match held.into_iter().next() {
        Some((_, token, _, true)) => Ok(Grant::Granted { token }),
        Some((by, _, expires_at, false)) => {
            let remaining = u64::try_from(expires_at - now).unwrap_or_default();
            Ok(Grant::Held { by, remaining: Duration::from_micros(remaining) })
        }
        None => Err(sqlx::Error::RowNotFound.into()),
    }
}

/// One lease that was granted: the token tells it from later ones.
#[derive(Debug)]
struct Keeper {
    database: Arc<Database>,
    key: SessionKey,
    token: i64,
    ttl: Duration,
}

impl Keeper {
    async fn try_renew(&self) -> Result<bool, Fault> {
        let mut writer = self.database.writer().await?;
        let renewed = sqlx::query("UPDATE leases SET expires_at = ? WHERE key = ? AND token = ?")
            .bind(to_micros(SystemTime::now()).saturating_add(micros(self.ttl)))
            .bind(self.key.as_str())
            .bind(self.token)
            .execute(&mut *writer)
            .await?;
        writer.give_back();
        Ok(renewed.rows_affected() > 0)
    }

    async fn try_release(&self) -> Result<(), Fault> {
        let mut writer = self.database.writer().await?;
        sqlx::query("DELETE FROM leases WHERE key = ? AND token = ?")
            .bind(self.key.as_str())
            .bind(self.token)
            .execute(&mut *writer)
            .await?;
        writer.give_back();
        Ok(())
    }
}

impl LeaseKeeper for Keeper {
    fn renew(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async { self.try_renew().await.map_err(|fault| self.database.explain(fault)) })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.try_release().await.map_err(|fault| self.database.explain(fault)) })
    }
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)
}
