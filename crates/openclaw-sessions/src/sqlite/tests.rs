//! Tests that need access to the internals.

use serde_json::json;

use super::*;
use crate::entry::EntryKind;

async fn limit_pages(store: &SqliteStore, pages: &'static str) {
    let mut writer = store.database.writer().await.unwrap();
    sqlx::query(pages).execute(&mut *writer).await.unwrap();
    writer.give_back();
}

#[tokio::test]
async fn a_full_disk_is_reported_nothing_is_half_written_and_writing_resumes_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).await.unwrap().store;
    let key = SessionKey::new("k").unwrap();
    store.open(&key, "main").await.unwrap();
    let entry = |bytes: usize| NewEntry::new(EntryKind::Message, json!("x".repeat(bytes)));
    limit_pages(&store, "PRAGMA max_page_count = 30").await;
    // SQLite reports an exceeded page limit like a full disk.
    let error = store.append(&key, vec![entry(10), entry(1_000_000)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().ends_with("the disk is full; free some space and retry"));
    assert_eq!(store.get(&key).await.unwrap().unwrap().entries, 0);
    assert_eq!(store.read(&key, ReadFilter::all()).await.unwrap(), []);
    // The limit was dropped with the connection.
    assert_eq!(store.append(&key, vec![entry(10), entry(1_000_000)]).await.unwrap(), [1, 2]);
}
