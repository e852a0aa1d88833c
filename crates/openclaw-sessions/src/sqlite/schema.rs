//! The tables and their migrations.

use sqlx::{Connection as _, SqliteConnection};

use super::fault::DatabaseError;
use super::files::Files;
use crate::error::StoreError;

/// Migrations; each leads from the version that is its index to the next one.
const STEPS: [&str; 5] = [FIRST, HOLDERS, MAIN, PERMISSION, FOLDER];

/// The format version that this program reads and writes.
const KNOWN: i64 = STEPS.len() as i64;

/// `OCSe`: identifies a database as ours.
const APPLICATION: i64 = 0x4f43_5365;

/// Times are microseconds since 1970. `last_seq` is also the number of entries.
const FIRST: &str = "
    PRAGMA application_id = 0x4f435365;
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        title TEXT,
        model TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        last_seq INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX sessions_by_change ON sessions (updated_at, key);
    CREATE INDEX sessions_of_agent_by_change ON sessions (agent, updated_at, key);
    CREATE TABLE entries (
        session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        run TEXT,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT;
    CREATE TABLE leases (
        key TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        token INTEGER NOT NULL,
        ttl INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;
";

/// Records which process holds a lease, where known.
const HOLDERS: &str = "
    ALTER TABLE leases ADD COLUMN holder TEXT;
    PRAGMA user_version = 2;
";

/// `main` has become short for `agent:ID:main`: existing sessions are renamed, unless both exist.
const MAIN: &str = "
    UPDATE OR IGNORE sessions SET key = 'agent:' || agent || ':main' WHERE key = 'main';
    PRAGMA user_version = 3;
";

/// Records how strict a session is about tool calls.
const PERMISSION: &str = "
    ALTER TABLE sessions ADD COLUMN permission TEXT;
    PRAGMA user_version = 4;
";

/// Records the folder that a session works in.
const FOLDER: &str = "
    ALTER TABLE sessions ADD COLUMN folder TEXT;
    PRAGMA user_version = 5;
";

/// State of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseState {
    Current,
    /// An older version; 0 is an empty database.
    Behind(usize),
}

/// Reads the version. Fails for a newer version or a database of another program.
pub(super) async fn inspect(
    connection: &mut SqliteConnection,
    files: &Files,
) -> Result<DatabaseState, DatabaseError> {
    let path = || files.path().to_owned();
    let (version, application, objects): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT user_version FROM pragma_user_version),
                (SELECT application_id FROM pragma_application_id),
                (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(connection)
    .await?;
    let is_empty = version == 0 && application == 0 && objects == 0;
    if !is_empty && (application != APPLICATION || version < 1) {
        return Err(StoreError::Foreign { path: path() }.into());
    }
    match usize::try_from(version) {
        Ok(version) if version == STEPS.len() => Ok(DatabaseState::Current),
        Ok(version) if version < STEPS.len() => Ok(DatabaseState::Behind(version)),
        _ => Err(StoreError::Newer { path: path(), found: version, known: KNOWN }.into()),
    }
}

/// Migrates a database if necessary, and enables WAL, so that readers and a writer work
/// concurrently.
pub(super) async fn bring_up_to_date(
    connection: &mut SqliteConnection,
    files: &Files,
) -> Result<(), DatabaseError> {
    let state = inspect(connection, files).await?;
    // Only after it is known to be ours: this changes the file.
    let mode: String =
        sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut *connection).await?;
    if mode != "wal" {
        tracing::warn!(file = %files.path().display(), mode, "readers and writers block each other");
    }
    if state == DatabaseState::Current {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have been faster.
    if let DatabaseState::Behind(version) = inspect(&mut transaction, files).await? {
        for step in STEPS.into_iter().skip(version) {
            sqlx::raw_sql(step).execute(&mut *transaction).await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}
