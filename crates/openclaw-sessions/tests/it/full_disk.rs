//! A full disk: existing sessions can still be read.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use openclaw_sessions::SessionStore as _;

use crate::support::{folder, key, message, store};

/// Output of a process whose files cannot grow beyond a block, which SQLite treats as a full disk.
fn without_room(path: &Path) -> String {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" read-then-write \"$1\" k";
    let program = env!("CARGO_BIN_EXE_sessions-test-process");
    let done = Command::new("sh").args(["-c", script, program]).arg(path).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

#[tokio::test]
async fn on_a_full_disk_sessions_can_be_read_and_writes_fail_with_an_error() {
    let (_folder, path) = folder();
    let ours = store(&path).await;
    ours.open(&key("k"), "main").await.unwrap();
    ours.append(&key("k"), vec![message("one"), message("two")]).await.unwrap();
    ours.close().await;
    drop(ours);
    let said = without_room(&path);
    assert!(said.starts_with("2 read; "), "{said}");
    // Once there is room again, everything works as before, for all stores.
    let (one, two) = (store(&path).await, store(&path).await);
    assert_eq!(one.append(&key("k"), vec![message("three")]).await.unwrap(), [3]);
    assert_eq!(two.append(&key("k"), vec![message("four")]).await.unwrap(), [4]);
}
