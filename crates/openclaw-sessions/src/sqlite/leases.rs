//! Leases as rows.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::database::Database;
use super::fault::DatabaseError;
use super::rows::to_micros;
use crate::error::StoreError;
use crate::holder::ProcessIdentity;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError, LeaseKeeper};
use crate::limits::{MAX_LEASE, MIN_LEASE, check_name};

/// Number of attempts to take over the lease of a dead process, before it counts as busy: others
/// may be faster.
const TRIES: usize = 3;

/// Owner of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    /// Name shown to users.
    pub(super) name: &'a str,
    /// The process, where known.
    pub(super) holder: Option<&'a ProcessIdentity>,
}

/// Result of requesting a lease.
enum Grant {
    Granted { token: i64 },
    Held { by: String, holder: Option<String>, token: i64, remaining: Duration },
}

/// Takes the lease of a session, if it is free.
pub(super) async fn take(
    database: &Arc<Database>,
    key: &SessionKey,
    owner: Owner<'_>,
    ttl: Duration,
) -> Result<Lease, LeaseError> {
    check_name("the owner of a lease", owner.name)?;
    let ttl = ttl.clamp(MIN_LEASE, MAX_LEASE);
    let grant = grant_or_free(database, key, owner, micros(ttl)).await;
    match grant.map_err(|fault| database.explain(fault))? {
        Grant::Held { by, remaining, .. } => {
            Err(LeaseError::Busy { key: key.clone(), by, remaining })
        }
        Grant::Granted { token } => {
            let keeper =
                GrantedLease { database: Arc::clone(database), key: key.clone(), token, ttl };
            Ok(Lease::granted(key.clone(), ttl, Arc::new(keeper)))
        }
    }
}

/// Requests a lease, and frees one held by a dead process.
async fn grant_or_free(
    database: &Database,
    key: &SessionKey,
    owner: Owner<'_>,
    ttl: i64,
) -> Result<Grant, DatabaseError> {
    let mut writer = database.writer().await?;
    let mut granted = grant(&mut writer, key, owner, ttl).await?;
    for _ in 0..TRIES {
        let Grant::Held { by, holder: Some(holder), token, .. } = &granted else { break };
        if !holder.parse().is_ok_and(|holder: ProcessIdentity| holder.is_gone()) {
            break;
        }
        tracing::info!(session = %key, by, "freeing the lease of an exited process");
        // Match the token: another process may have taken the lease in the meantime.
        free(&mut writer, key, *token).await?;
        granted = grant(&mut writer, key, owner, ttl).await?;
    }
    writer.give_back();
    Ok(granted)
}

/// Requests a lease. After an error the connection must not be reused: closing it rolls back the
/// transaction.
async fn grant(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    owner: Owner<'_>,
    ttl: i64,
) -> Result<Grant, DatabaseError> {
    let now = to_micros(SystemTime::now());
    // One round trip, as with entries. Expired leases are deleted. If the clock was set back, the
    // lease of a dead owner must not last that much longer.
    let held: Vec<(String, Option<String>, i64, i64, bool)> = sqlx::query_as(
        "BEGIN IMMEDIATE;
         DELETE FROM leases WHERE expires_at <= ?;
         UPDATE leases SET expires_at = ? + ttl WHERE expires_at > ? + ttl;
         INSERT INTO leases (key, owner, holder, token, ttl, expires_at)
         VALUES (?, ?, ?, random(), ?, ?) ON CONFLICT (key) DO NOTHING;
         SELECT owner, holder, token, expires_at, changes() FROM leases WHERE key = ?;
         COMMIT",
    )
    .bind(now)
    .bind(now)
    .bind(now)
    .bind(key.as_str())
    .bind(owner.name)
    .bind(owner.holder.map(ToString::to_string))
    .bind(ttl)
    .bind(now.saturating_add(ttl))
    .bind(key.as_str())
    .fetch_all(connection)
    .await?;
    match held.into_iter().next() {
        Some((_, _, token, _, true)) => Ok(Grant::Granted { token }),
        Some((by, holder, token, expires_at, false)) => {
            let remaining = u64::try_from(expires_at - now).unwrap_or_default();
            let remaining = Duration::from_micros(remaining);
            Ok(Grant::Held { by, holder, token, remaining })
        }
        None => Err(sqlx::Error::RowNotFound.into()),
    }
}

/// Frees a lease, unless it was replaced.
async fn free(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    token: i64,
) -> Result<(), DatabaseError> {
    let query = sqlx::query("DELETE FROM leases WHERE key = ? AND token = ?");
    query.bind(key.as_str()).bind(token).execute(connection).await?;
    Ok(())
}

/// A granted lease: the token distinguishes it from later ones.
#[derive(Debug)]
struct GrantedLease {
    database: Arc<Database>,
    key: SessionKey,
    token: i64,
    ttl: Duration,
}

impl GrantedLease {
    async fn try_renew(&self) -> Result<bool, DatabaseError> {
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

    async fn try_release(&self) -> Result<(), DatabaseError> {
        let mut writer = self.database.writer().await?;
        free(&mut writer, &self.key, self.token).await?;
        writer.give_back();
        Ok(())
    }
}

#[async_trait]
impl LeaseKeeper for GrantedLease {
    async fn renew(&self) -> Result<bool, StoreError> {
        self.try_renew().await.map_err(|fault| self.database.explain(fault))
    }

    async fn release(&self) -> Result<(), StoreError> {
        self.try_release().await.map_err(|fault| self.database.explain(fault))
    }
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)
}
