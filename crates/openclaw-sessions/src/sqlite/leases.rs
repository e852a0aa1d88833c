//! Leases as rows.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use sqlx::{Connection as _, SqliteConnection};

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
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        let grant = grant(&mut transaction, key, owner, micros(ttl)).await?;
        transaction.commit().await?;
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

async fn grant(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    owner: &str,
    ttl: i64,
) -> Result<Grant, Fault> {
    let now = to_micros(SystemTime::now());
    sqlx::query("DELETE FROM leases WHERE expires_at <= ?")
        .bind(now)
        .execute(&mut *connection)
        .await?;
    // If the clock was set back, the lease of a dead owner must not hold for that long.
    sqlx::query("UPDATE leases SET expires_at = ?1 + ttl WHERE expires_at > ?1 + ttl")
        .bind(now)
        .execute(&mut *connection)
        .await?;
    let token: Option<i64> = sqlx::query_scalar(
        "INSERT INTO leases (key, owner, token, ttl, expires_at)
         VALUES (?1, ?2, random(), ?3, ?4 + ?3) ON CONFLICT (key) DO NOTHING RETURNING token",
    )
    .bind(key.as_str())
    .bind(owner)
    .bind(ttl)
    .bind(now)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(token) = token {
        return Ok(Grant::Granted { token });
    }
    let (by, expires_at): (String, i64) =
        sqlx::query_as("SELECT owner, expires_at FROM leases WHERE key = ?")
            .bind(key.as_str())
            .fetch_one(&mut *connection)
            .await?;
    let remaining = u64::try_from(expires_at - now).unwrap_or_default();
    Ok(Grant::Held { by, remaining: Duration::from_micros(remaining) })
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
