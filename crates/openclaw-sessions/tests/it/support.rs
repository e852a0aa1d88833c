//! What several tests need.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_sessions::{EntryKind, NewEntry, SessionKey, SqliteOptions, SqliteStore};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};

/// Nothing takes this long, not on a busy machine either.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn key(key: &str) -> SessionKey {
    SessionKey::new(key).unwrap()
}

pub(crate) fn message(text: &str) -> NewEntry {
    NewEntry::new(EntryKind::Message, json!({"role": "user", "text": text}))
}

pub(crate) fn note(body: Value) -> NewEntry {
    NewEntry::new(EntryKind::Note, body)
}

/// A folder that goes away, and where the database in it is.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    (folder, path)
}

/// A store that expects nothing of note. It waits long: the machine is busy.
pub(crate) async fn store(path: &Path) -> SqliteStore {
    let opened =
        SqliteStore::open_with(path, SqliteOptions { busy_timeout: PATIENCE }).await.unwrap();
    assert_eq!(opened.note, None);
    opened.store
}

/// A connection past the store.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// The names of what is in a folder, in order.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
