//! Sessions and entries as rows.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt as _;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::fault::DatabaseError;
use crate::entry::{Entry, EntryKind, NewEntry, ReadFilter};
use crate::error::StoreError;
use crate::key::SessionKey;
use crate::limits::{MAX_LISTED, MAX_READ, MAX_READ_BYTES};
use crate::session::{ListFilter, Session, SessionField};

type SessionRow =
    (String, String, Option<String>, Option<String>, Option<String>, Option<String>, i64, i64, i64);
type EntryRow = (i64, i64, Option<String>, String, String);

/// Creates a session unless it exists, and returns it.
pub(super) async fn make(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    agent: &str,
) -> Result<Option<Session>, DatabaseError> {
    let now = to_micros(SystemTime::now());
    let rows: Vec<SessionRow> = sqlx::query_as(
        "INSERT INTO sessions (key, agent, created_at, updated_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (key) DO NOTHING;
         SELECT key, agent, title, model, permission, folder, created_at, updated_at, last_seq
         FROM sessions WHERE key = ?",
    )
    .bind(key.as_str())
    .bind(agent)
    .bind(now)
    .bind(now)
    .bind(key.as_str())
    .fetch_all(connection)
    .await?;
    rows.into_iter().next().map(session).transpose()
}

pub(super) async fn get(
    connection: &mut SqliteConnection,
    key: &SessionKey,
) -> Result<Option<Session>, DatabaseError> {
    let row: Option<SessionRow> = sqlx::query_as(
        "SELECT key, agent, title, model, permission, folder, created_at, updated_at, last_seq
         FROM sessions WHERE key = ?",
    )
    .bind(key.as_str())
    .fetch_optional(connection)
    .await?;
    row.map(session).transpose()
}

pub(super) async fn list(
    connection: &mut SqliteConnection,
    filter: &ListFilter,
) -> Result<Vec<Session>, DatabaseError> {
    // Two statements, so that each uses its index.
    let query = match &filter.agent {
        None => sqlx::query_as::<_, SessionRow>(
            "SELECT key, agent, title, model, permission, folder, created_at, updated_at, last_seq FROM sessions
             WHERE (updated_at, key) < (?, ?) ORDER BY updated_at DESC, key DESC LIMIT ?",
        ),
        Some(agent) => sqlx::query_as::<_, SessionRow>(
            "SELECT key, agent, title, model, permission, folder, created_at, updated_at, last_seq FROM sessions
             WHERE agent = ? AND (updated_at, key) < (?, ?)
             ORDER BY updated_at DESC, key DESC LIMIT ?",
        )
        .bind(agent),
    };
    let (updated_at, key) = match &filter.before {
        Some(position) => (to_micros(position.updated_at), position.key.as_str()),
        None => (i64::MAX, ""),
    };
    let rows = query.bind(updated_at).bind(key).bind(to_count(filter.limit.min(MAX_LISTED)));
    rows.fetch_all(connection).await?.into_iter().map(session).collect()
}

/// Appends entries with the next sequence numbers, all or none. After an error the connection must
/// not be reused: closing it rolls back the transaction.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    entries: &[NewEntry],
    bodies: Vec<String>,
) -> Result<Vec<u64>, DatabaseError> {
    let now = to_micros(SystemTime::now());
    let count = to_count(entries.len());
    // One round trip: each one to the connection's thread takes as long as the work there.
    let script = format!(
        "BEGIN IMMEDIATE;
         UPDATE sessions SET last_seq = last_seq + ?, updated_at = max(updated_at, ?)
         WHERE key = ? RETURNING last_seq;
         {} COMMIT",
        "INSERT INTO entries (session, seq, at, run, kind, body)
         SELECT id, last_seq - ?, ?, ?, ?, ? FROM sessions WHERE key = ?;"
            .repeat(entries.len())
    );
    let mut query = sqlx::query_as::<_, (i64,)>(AssertSqlSafe(script))
        .persistent(entries.len() == 1)
        .bind(count)
        .bind(now)
        .bind(key.as_str());
    for (after, (entry, body)) in (0..count).rev().zip(entries.iter().zip(bodies)) {
        query = query
            .bind(after)
            .bind(now)
            .bind(entry.run.as_deref())
            .bind(entry.kind.name())
            .bind(body)
            .bind(key.as_str());
    }
    // Fetch all rows: statements after the first row would not be executed otherwise.
    let Some(&(last,)) = query.fetch_all(connection).await?.first() else {
        return Err(StoreError::NoSession { key: key.clone() }.into());
    };
    Ok((last - count + 1..=last).map(i64::cast_unsigned).collect())
}

pub(super) async fn read(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    filter: ReadFilter,
) -> Result<Vec<Entry>, DatabaseError> {
    let query = sqlx::query_as::<_, EntryRow>(if filter.last {
        "SELECT seq, at, run, kind, body FROM entries
         WHERE session = (SELECT id FROM sessions WHERE key = ?) AND seq >= ?
         ORDER BY seq DESC LIMIT ?"
    } else {
        "SELECT seq, at, run, kind, body FROM entries
         WHERE session = (SELECT id FROM sessions WHERE key = ?) AND seq >= ?
         ORDER BY seq LIMIT ?"
    });
    let mut rows = query
        .bind(key.as_str())
        .bind(i64::try_from(filter.from_seq).unwrap_or(i64::MAX))
        .bind(to_count(filter.limit.min(MAX_READ)))
        .fetch(connection);
    let mut entries = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.try_next().await? {
        bytes += row.4.len();
        entries.push(entry(row)?);
        if bytes >= MAX_READ_BYTES {
            break;
        }
    }
    if filter.last {
        entries.reverse();
    }
    Ok(entries)
}

pub(super) async fn set(
    connection: &mut SqliteConnection,
    key: &SessionKey,
    field: SessionField,
    value: Option<&str>,
) -> Result<(), DatabaseError> {
    let query = sqlx::query(match field {
        SessionField::Title => "UPDATE sessions SET title = ? WHERE key = ?",
        SessionField::Model => "UPDATE sessions SET model = ? WHERE key = ?",
        SessionField::Permission => "UPDATE sessions SET permission = ? WHERE key = ?",
        SessionField::Folder => "UPDATE sessions SET folder = ? WHERE key = ?",
    });
    let done = query.bind(value).bind(key.as_str()).execute(connection).await?;
    found(key, done.rows_affected())
}

pub(super) async fn delete(
    connection: &mut SqliteConnection,
    key: &SessionKey,
) -> Result<bool, DatabaseError> {
    let query = sqlx::query("DELETE FROM sessions WHERE key = ?");
    Ok(query.bind(key.as_str()).execute(connection).await?.rows_affected() > 0)
}

fn found(key: &SessionKey, rows: u64) -> Result<(), DatabaseError> {
    if rows == 0 { Err(StoreError::NoSession { key: key.clone() }.into()) } else { Ok(()) }
}

fn session(row: SessionRow) -> Result<Session, DatabaseError> {
    let (key, agent, title, model, permission, folder, created_at, updated_at, last_seq) = row;
    Ok(Session {
        key: SessionKey::new(key).map_err(undecodable)?,
        agent,
        title,
        model,
        permission,
        folder,
        created_at: from_micros(created_at),
        updated_at: from_micros(updated_at),
        entries: u64::try_from(last_seq).map_err(undecodable)?,
    })
}

fn entry((seq, at, run, kind, body): EntryRow) -> Result<Entry, DatabaseError> {
    Ok(Entry {
        seq: u64::try_from(seq).map_err(undecodable)?,
        at: from_micros(at),
        run,
        kind: EntryKind::of_name(&kind)
            .ok_or_else(|| undecodable(format!("unknown entry kind {kind:?}")))?,
        body: serde_json::from_str(&body).map_err(undecodable)?,
    })
}

/// A row that was not written by this program.
fn undecodable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DatabaseError {
    DatabaseError::Database(sqlx::Error::Decode(error.into()))
}

/// SQLite integers are signed; lengths in memory always fit.
fn to_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn to_micros(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn from_micros(micros: i64) -> SystemTime {
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}
