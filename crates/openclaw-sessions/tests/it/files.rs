//! The files of a store: creation, permissions, and conflicts.

use std::path::Path;
use std::time::Duration;

use openclaw_sessions::{
    ListFilter, ReadFilter, SessionStore as _, SqliteOptions, SqliteStore, StoreError,
};
use sqlx::Connection as _;

use crate::support::{folder, key, message, names_in, opened, raw, store};

#[tokio::test]
async fn nothing_is_made_until_something_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/sessions.db");
    let store = store(&path).await;
    assert_eq!(store.list(ListFilter::default()).await.unwrap(), []);
    assert_eq!(names_in(folder.path()), [""; 0]);
    store.open(&key("k"), "main").await.unwrap();
    assert!(path.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_folder_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/sessions.db");
    let first = store(&path).await;
    first.open(&key("k"), "main").await.unwrap();
    let state = path.parent().unwrap();
    assert_eq!(mode(state), 0o700);
    let names = ["sessions.db", "sessions.db-lock", "sessions.db-shm", "sessions.db-wal"];
    assert_eq!(names_in(state), names);
    for name in names {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
    // Access that was granted in the meantime is removed.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    store(&path).await;
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_closed_store_is_one_file_and_can_be_used_on() {
    let (folder, _path, store, k) = opened().await;
    store.append(&k, vec![message("x")]).await.unwrap();
    store.close().await;
    assert_eq!(names_in(folder.path()), ["sessions.db", "sessions.db-lock"]);
    assert_eq!(store.append(&k, vec![message("x")]).await.unwrap(), [2]);
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let (_folder, path) = folder();
    std::fs::write(&path, "").unwrap();
    let store = store(&path).await;
    assert_eq!(store.open(&key("k"), "main").await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_file_that_was_removed_or_replaced_is_noticed() {
    let (folder, path, store, k) = opened().await;
    store.append(&k, vec![message("x")]).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(store.get(&k).await.unwrap(), None);
    // Its log is not replayed into the new one.
    store.open(&k, "main").await.unwrap();
    assert_eq!(store.append(&k, vec![message("y")]).await.unwrap(), [1]);
    let fresh = crate::support::store(&path).await;
    assert_eq!(fresh.read(&k, ReadFilter::all()).await.unwrap().len(), 1);
    let orphans = names_in(folder.path()).iter().filter(|name| name.contains("orphaned")).count();
    assert!(orphans > 0);
}

#[tokio::test]
async fn a_newer_version_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    let first = store(&path).await;
    first.open(&key("k"), "main").await.unwrap();
    first.close().await;
    sqlx::query("PRAGMA user_version = 7").execute(&mut raw(&path).await).await.unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 7, known: 5, .. }), "{error}");
    assert!(error.to_string().contains("(format 7; this one supports up to 5)"));
    assert!(path.exists());
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    let (_folder, path) = folder();
    let mut other = raw(&path).await;
    sqlx::query("CREATE TABLE theirs (x)").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}

#[tokio::test]
async fn readers_continue_while_another_process_writes_and_writers_fail_with_the_reason() {
    let (_folder, path) = folder();
    let k = key("k");
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50) };
    let store = SqliteStore::open_with(&path, options).await.unwrap().store;
    store.open(&k, "main").await.unwrap();
    store.append(&k, vec![message("x")]).await.unwrap();

    let mut other = raw(&path).await;
    let transaction = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert_eq!(store.read(&k, ReadFilter::all()).await.unwrap().len(), 1);
    let error = store.append(&k, vec![message("y")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().ends_with("stop the process that holds it open"));
    transaction.rollback().await.unwrap();
    assert_eq!(store.append(&k, vec![message("y")]).await.unwrap(), [2]);
}

#[tokio::test]
async fn writers_continue_during_a_read_transaction() {
    let (_folder, path, store, k) = opened().await;
    let mut other = raw(&path).await;
    let mut reading = other.begin().await.unwrap();
    let count = "SELECT count(*) FROM entries";
    let before: i64 = sqlx::query_scalar(count).fetch_one(&mut *reading).await.unwrap();
    store.append(&k, vec![message("x")]).await.unwrap();
    let after: i64 = sqlx::query_scalar(count).fetch_one(&mut *reading).await.unwrap();
    assert_eq!((before, after), (0, 0));
}

#[tokio::test]
async fn an_unusable_path_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteStore::open(folder.path()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot keep sessions in "), "{error}");

    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let opened = async {
        let store = SqliteStore::open(file.join("sessions.db")).await?.store;
        store.open(&key("k"), "main").await.map(drop)
    };
    let error = opened.await.unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error}");
}

#[tokio::test]
async fn a_database_of_the_first_version_goes_on_with_its_sessions_and_leases() {
    let (_folder, path) = folder();
    let (first, k) = (store(&path).await, key("k"));
    first.open(&k, "main").await.unwrap();
    first.append(&k, vec![message("from before")]).await.unwrap();
    let lease = first.lease(&k, "an older program", Duration::from_secs(600)).await.unwrap();
    // As created by the first version.
    let mut connection = raw(&path).await;
    sqlx::raw_sql(
        "ALTER TABLE leases DROP COLUMN holder;
         ALTER TABLE sessions DROP COLUMN permission;
         ALTER TABLE sessions DROP COLUMN folder;
         PRAGMA user_version = 1",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    sqlx::raw_sql(
        "INSERT INTO sessions (key, agent, created_at, updated_at) VALUES ('main', 'work', 1, 1)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let second = store(&path).await;
    assert!(second.get(&key("agent:work:main")).await.unwrap().is_some());
    assert_eq!(second.get(&key("main")).await.unwrap(), None);
    assert_eq!(second.read(&k, ReadFilter::all()).await.unwrap().len(), 1);
    let busy = second.lease(&k, "a newer one", Duration::from_secs(600)).await.unwrap_err();
    assert!(busy.to_string().contains("an older program"), "{busy}");
    lease.release().await;
    second.lease(&k, "a newer one", Duration::from_secs(600)).await.unwrap();
}
