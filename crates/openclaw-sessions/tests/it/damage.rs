//! Damaged database files.

use std::path::Path;

use openclaw_sessions::{ReadFilter, SessionStore as _, SqliteStore, StoreError};

use crate::support::{folder, key, message, names_in, opened, store};

#[tokio::test]
async fn a_file_that_is_not_a_database_is_moved_aside_and_a_new_store_is_started() {
    let (folder, path) = folder();
    std::fs::write(&path, "This is a letter to my aunt, not a database. ".repeat(100)).unwrap();
    let opened = SqliteStore::open(&path).await.unwrap();
    let note = opened.note.unwrap();
    let canonical = openclaw_files::canonical(&path).unwrap_or_else(|_| path.clone());
    assert!(note.contains(&format!("{} was damaged", canonical.display())), "{note}");

    let names = names_in(folder.path());
    let aside = names.iter().find(|name| name.starts_with("sessions.db.corrupt-")).unwrap();
    assert!(note.contains(aside.as_str()), "{note}");
    let kept = std::fs::read_to_string(folder.path().join(aside)).unwrap();
    assert!(kept.starts_with("This is a letter to my aunt"));

    opened.store.open(&key("k"), "main").await.unwrap();
    assert_eq!(opened.store.append(&key("k"), vec![message("x")]).await.unwrap(), [1]);
    // The next start finds nothing wrong.
    store(&path).await;
}

#[tokio::test]
async fn what_only_the_log_held_is_in_what_was_set_aside() {
    let (folder, _path, store, k) = opened().await;
    store.close().await;
    // The connection stays open, so that this is only in the log.
    store.append(&k, vec![message("unforgettable")]).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["sessions.db", "sessions.db-wal"] {
        std::fs::copy(folder.path().join(name), elsewhere.path().join(name)).unwrap();
    }
    let copy = elsewhere.path().join("sessions.db");
    let mut bytes = std::fs::read(&copy).unwrap();
    assert!(!holds(&bytes, "unforgettable"));
    bytes[..100].fill(0xa5);
    std::fs::write(&copy, bytes).unwrap();

    assert!(SqliteStore::open(&copy).await.unwrap().note.is_some());
    let names = names_in(elsewhere.path());
    let mut aside = names.iter().filter(|name| name.starts_with("sessions.db.corrupt-"));
    let kept = aside
        .any(|name| holds(&std::fs::read(elsewhere.path().join(name)).unwrap(), "unforgettable"));
    assert!(kept, "{names:?}");
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn two_that_find_a_damaged_file_set_it_aside_once() {
    let (folder, path) = folder();
    std::fs::write(&path, "no database at all ".repeat(1_000)).unwrap();
    let (one, other) = tokio::join!(SqliteStore::open(&path), SqliteStore::open(&path));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.note.is_some() || other.note.is_some());
    one.store.open(&key("k"), "main").await.unwrap();
    assert_eq!(other.store.get(&key("k")).await.unwrap().unwrap().entries, 0);
    let aside = names_in(folder.path()).iter().filter(|name| name.contains(".corrupt-")).count();
    assert_eq!(aside, 1);
}

#[tokio::test]
async fn a_small_database_with_a_damaged_page_is_set_aside() {
    let (_folder, path) = folder();
    fill(&path, 50).await;
    overwrite_second_half(&path);
    let opened = SqliteStore::open(&path).await.unwrap();
    assert!(opened.note.is_some());
    assert_eq!(opened.store.get(&key("k")).await.unwrap(), None);
}

#[tokio::test]
async fn damage_in_a_large_database_is_noticed_when_it_is_met_and_set_aside_at_the_next_start() {
    let (_folder, path) = folder();
    fill(&path, 4_000).await;
    overwrite_second_half(&path);
    // A full check would take too long, so this one passes.
    let opened = SqliteStore::open(&path).await.unwrap();
    assert_eq!(opened.note, None);
    let mut next = 1;
    let error = loop {
        match opened.store.read(&key("k"), ReadFilter::from(next)).await {
            Ok(entries) => next = entries.last().unwrap().seq + 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("restart the program"), "{error}");
    opened.store.close().await;

    let opened = SqliteStore::open(&path).await.unwrap();
    assert!(opened.note.is_some());
    store(&path).await;
}

async fn fill(path: &Path, entries: usize) {
    let (store, k) = (store(path).await, key("k"));
    store.open(&k, "main").await.unwrap();
    for _ in 0..entries / 50 {
        store.append(&k, vec![message(&"x".repeat(1_000)); 50]).await.unwrap();
    }
    store.close().await;
}

fn overwrite_second_half(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}
