//! Tasks and processes that compete for a lease and for the creation of the key.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{FileStore, GrantStore as _, KeyOptions};
use crate::error::AuthError;
use crate::grant::GrantKey;
use crate::grant::tests::grant;

const PATIENCE: Duration = Duration::from_secs(30);
/// Tells a child process of these tests which state folder to use.
const VARIABLE: &str = "OPENCLAW_OAUTH_TEST_STATE";

fn key() -> GrantKey {
    GrantKey::new("notes", &"https://notes.example/mcp".parse().unwrap())
}

fn store(state: &Path) -> FileStore {
    FileStore::new(state, KeyOptions { use_keychain: false })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_task_at_a_time_holds_a_lease() {
    let folder = tempfile::tempdir().unwrap();
    let holders = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, holders) = (store(folder.path()), holders.clone());
        tasks.spawn(async move {
            for _ in 0..5 {
                let lease = store.lock(&key(), PATIENCE).await.unwrap();
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                holders.fetch_sub(1, Ordering::SeqCst);
                drop(lease);
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_lease_that_is_held_times_out_and_others_are_free() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let lease = store.lock(&key(), Duration::ZERO).await.unwrap();
    assert_eq!(lease.key(), &key());
    let error = store.lock(&key(), Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(&error, AuthError::Store(text) if text.contains("`notes`")), "{error}");
    let other = GrantKey::new("mail", &key().url);
    assert!(store.lock(&other, Duration::ZERO).await.is_ok());
    drop(lease);
    assert!(store.lock(&key(), Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn a_cancelled_write_keeps_the_lease_until_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    store.check_writable(&key()).await.unwrap();
    for number in 0..20 {
        let token = format!("token-{number}");
        let lease = store.lock(&key(), PATIENCE).await.unwrap();
        let grant = grant(&token);
        // Cancelled at an arbitrary point.
        let _ =
            tokio::time::timeout(Duration::from_micros(number * 50), store.save(&lease, &grant))
                .await;
        drop(lease);
        let lease = store.lock(&key(), PATIENCE).await.unwrap();
        let before = store.version(&key()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(store.version(&key()).await.unwrap(), before);
        drop(lease);
    }
}

fn child(state: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::race_tests::child_process", "--quiet"])
        .env(VARIABLE, state)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Does nothing unless another test has started it as a process of its own.
#[tokio::test]
async fn child_process() {
    let Some(state) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return };
    let counter = state.join("counter");
    for _ in 0..10 {
        let store = store(&state);
        let lease = store.lock(&key(), PATIENCE).await.unwrap();
        // What is lost if two do it at once.
        let count: u32 = std::fs::read_to_string(&counter).unwrap().parse().unwrap();
        assert_eq!(store.load(&key()).await.unwrap().is_some(), count > 0);
        store.save(&lease, &grant(&format!("token-{count}"))).await.unwrap();
        std::fs::write(&counter, (count + 1).to_string()).unwrap();
    }
}

#[tokio::test]
async fn processes_share_one_key_and_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("counter"), "0").unwrap();
    let children: Vec<_> = (0..4).map(|_| child(folder.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("counter")).unwrap(), "40");
    let stored = store(folder.path()).load(&key()).await.unwrap().unwrap();
    assert_eq!(stored.grant.access_token.expose(), "token-39");
}

#[tokio::test]
async fn a_killed_process_frees_its_lease_and_leaves_a_whole_grant() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("counter"), "0").unwrap();
    let store = store(folder.path());
    let mut child = child(folder.path());
    while store.version(&key()).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    store.lock(&key(), Duration::ZERO).await.unwrap();
    let stored = store.load(&key()).await.unwrap().unwrap();
    assert!(stored.grant.access_token.expose().starts_with("token-"));
}
