//! Concurrent and killed processes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use openclaw_sessions::{LeaseError, ReadFilter, SessionStore as _};
use tokio::time::timeout;

use crate::support::{PATIENCE, folder, key, message, opened, raw, store};

const LONG: Duration = Duration::from_secs(600);

/// A helper process; it is killed on drop.
struct Other {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Other {
    const PROGRAM: &str = env!("CARGO_BIN_EXE_sessions-test-process");

    fn command(arguments: &[&str], path: &Path) -> Command {
        Self::command_of(Path::new(Self::PROGRAM), arguments, path)
    }

    fn command_of(program: &Path, arguments: &[&str], path: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg(arguments[0]).arg(path).args(&arguments[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn new(arguments: &[&str], path: &Path) -> Self {
        Self::start(Self::command(arguments, path))
    }

    /// Returns its next line of output, or `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        (length > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned())
    }

    /// Kills it as `kill -9` would. Returns its remaining output.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn processes_append_to_one_session_at_once_and_nothing_is_lost_or_numbered_twice() {
    let (_folder, path) = folder();
    // No process finds a file, and all of them try to create it.
    let mut others: Vec<_> =
        (0..4).map(|_| Other::new(&["append", "shared", "25", "4"], &path)).collect();
    for other in &mut others {
        while other.line().is_some() {}
        assert!(other.child.wait().unwrap().success());
    }
    let store = store(&path).await;
    let entries = store.read(&key("shared"), ReadFilter::all()).await.unwrap();
    let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
    for other in &others {
        let of_other = entries.iter().filter(|entry| entry.body["who"] == other.child.id());
        let parts: Vec<_> = of_other
            .map(|entry| {
                (entry.body["batch"].as_u64().unwrap(), entry.body["index"].as_u64().unwrap())
            })
            .collect();
        let expected: Vec<_> =
            (0..25).flat_map(|batch| (0..4).map(move |index| (batch, index))).collect();
        assert_eq!(parts, expected);
    }
    // Entries appended together are adjacent.
    for batch in entries.chunks(4) {
        assert!(batch.iter().all(|entry| entry.run == batch[0].run));
    }
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_appends_loses_nothing_that_was_said_to_be_there() {
    let (_folder, path) = folder();
    let mut known = 0;
    for round in 1..=8 {
        let mut other = Other::new(&["append", "k", "1000000", "20"], &path);
        // Each round is killed at another point.
        let mut said: Vec<_> = (0..round).map(|_| other.line().unwrap()).collect();
        said.extend(other.kill());
        let last_said: u64 = said.last().unwrap().parse().unwrap();
        assert!(last_said > known);

        let store = store(&path).await;
        let entries = store.read(&key("k"), ReadFilter::from(known + 1)).await.unwrap();
        let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
        let last = *numbers.last().unwrap();
        assert_eq!(numbers, (known + 1..=last).collect::<Vec<_>>());
        // At most one batch was stored and not reported yet, and it is complete.
        assert!(
            last == last_said || last == last_said + 20,
            "{last_said} was reported, {last} is stored"
        );
        assert_eq!(store.get(&key("k")).await.unwrap().unwrap().entries, last);
        known = last;
    }
}

#[tokio::test]
async fn a_process_that_is_killed_within_a_transaction_leaves_no_trace_and_no_lock() {
    let (_folder, path, store, k) = opened().await;
    store.append(&k, vec![message("before")]).await.unwrap();
    let mut other = Other::new(&["hang-in-transaction", "k"], &path);
    assert_eq!(other.line().as_deref(), Some("in transaction"));
    assert_eq!(store.read(&k, ReadFilter::all()).await.unwrap().len(), 1);
    other.kill();
    assert_eq!(store.append(&k, vec![message("after")]).await.unwrap(), [2]);
    let fresh = crate::support::store(&path).await;
    let entries = fresh.read(&k, ReadFilter::all()).await.unwrap();
    let texts: Vec<_> = entries.iter().map(|entry| entry.body["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["before", "after"]);
}

/// Starts another process that holds the lease of `k`.
fn holding(path: &Path, ttl: &str) -> Other {
    let mut other = Other::new(&["hold-lease", "k", ttl], path);
    assert_eq!(other.line().as_deref(), Some("held"));
    other
}

/// Changes the recorded holder of the lease.
async fn hold_as(path: &Path, change: &'static str) {
    let done = sqlx::query(change).execute(&mut raw(path).await).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_lease_of_a_process_that_lives_is_kept_and_that_of_a_killed_one_is_free_at_once() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    let other = holding(&path, "600000");
    let busy = store.lease(&k, "this process", LONG).await.unwrap_err();
    assert!(matches!(&busy, LeaseError::Busy { by, .. } if by == "other process"), "{busy}");
    assert_eq!(
        busy.to_string(),
        "session `k` is in use by other process; wait until it finishes, or use another session"
    );
    other.kill();
    store.lease(&k, "this process", LONG).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_got_the_number_of_a_killed_one_holds_no_lease_for_it() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    let _other = holding(&path, "600000");
    // The process with that id started at another time than the holder.
    hold_as(&path, "UPDATE leases SET holder = holder || '9'").await;
    store.lease(&k, "this process", LONG).await.unwrap();
}

#[tokio::test]
async fn the_lease_of_a_process_of_another_machine_or_an_unknown_one_runs_out() {
    for change in
        ["UPDATE leases SET holder = 'elsewhere-' || holder", "UPDATE leases SET holder = NULL"]
    {
        let (_folder, path) = folder();
        let (store, k) = (store(&path).await, key("k"));
        let other = holding(&path, "4000");
        hold_as(&path, change).await;
        other.kill();
        let mut was_busy = false;
        let taken = async {
            loop {
                match store.lease(&k, "this process", LONG).await {
                    Ok(lease) => break lease,
                    Err(LeaseError::Busy { remaining, .. }) => {
                        was_busy = true;
                        tokio::time::sleep(remaining).await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        timeout(PATIENCE, taken).await.unwrap();
        assert!(was_busy, "{change}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_directory_is_reported() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    allow(folder.path(), 0o755);
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let path = closed.join("sessions.db");
    store(&path).await.open(&key("k"), "main").await.unwrap();
    let absent = closed.join("absent.db");
    allow(&closed, 0o555);
    // Root may write anywhere, so another user has to try. That user may be unable to reach the workspace.
    let is_root = std::fs::metadata(folder.path()).unwrap().uid() == 0;
    let program = folder.path().join("program");
    // Not copied by this process: a child of another test would keep the copy open, which makes it "busy".
    let copied = Command::new("cp").arg(Other::PROGRAM).arg(&program).status().unwrap();
    assert!(copied.success());
    for path in [&path, &absent] {
        let mut command = Other::command_of(&program, &["try-to-write", "k2"], path);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        let said = Other::start(command).line().unwrap();
        assert!(
            said.contains("cannot be written; the file and its folder must be writable"),
            "{said}"
        );
    }
    allow(&closed, 0o755);
}
