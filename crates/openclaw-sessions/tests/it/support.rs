//! Helpers shared by the tests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_sessions::{
    EntryKind, NewEntry, SessionKey, SessionStore as _, SqliteOptions, SqliteStore,
};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};

/// Timeout that is long enough even on a busy machine.
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

/// Creates a temporary directory and returns it with the path of the database in it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    (folder, path)
}

/// Opens a store and expects no note. Waits long for locks: the machine is busy.
pub(crate) async fn store(path: &Path) -> SqliteStore {
    let opened =
        SqliteStore::open_with(path, SqliteOptions { busy_timeout: PATIENCE }).await.unwrap();
    assert_eq!(opened.note, None);
    opened.store
}

/// Opens a store in a temporary directory, and a session in it.
pub(crate) async fn opened() -> (tempfile::TempDir, PathBuf, SqliteStore, SessionKey) {
    let (folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    store.open(&k, "main").await.unwrap();
    (folder, path, store, k)
}

/// Opens a connection that bypasses the store.
pub(crate) async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// Returns the names of the files in a directory, sorted.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
