//! Other processes: the binary of these tests, started again with a role.

use std::io::{self, BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openclaw_oauth::authorizer::{Authorizer, AuthorizerOptions};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::{Grant, GrantKey};
use openclaw_oauth::store::{
    ConfirmedIssuer, FileStore, GrantList, GrantLock, GrantStore, KeyPlace, PendingLogin,
    StoredGrant, StoredIssuer, Version,
};
use serde::{Deserialize, Serialize};

use crate::support::{call, grant_file, options, store};
use crate::{logs, refresh};

const VARIABLE: &str = "OPENCLAW_OAUTH_CHILD";
/// The lines that are for the parent, among those of the test harness.
const PREFIX: &str = "child: ";

/// What a child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Refreshes a rejected token in many tasks.
    Refresh,
    /// Makes one call, and stops at this step of the refresh.
    StopAt(String),
    /// Saves grants until it is killed.
    Save,
    /// Logs in and refreshes, and writes everything that is logged to this file.
    Log(PathBuf),
}

#[derive(Debug, Serialize, Deserialize)]
struct Task {
    role: Role,
    url: String,
    state: PathBuf,
}

/// A running child. It is killed when it is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    pub(crate) fn start(role: Role, url: &str, state: &Path) -> Self {
        let task = Task { role, url: url.to_owned(), state: state.to_owned() };
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::process", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, serde_json::to_string(&task).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, lines: BufReader::new(output).lines() }
    }

    /// Returns the next line that the child reports. Blocks.
    pub(crate) fn line(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("the child has ended").unwrap();
            // The test harness writes the name of the test before it, without a newline.
            if let Some((_, line)) = line.split_once(PREFIX) {
                return line.to_owned();
            }
        }
    }

    pub(crate) fn expect(&mut self, line: &str) {
        assert_eq!(self.line(), line);
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until it has ended without an error.
    pub(crate) fn finished(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn report(line: &str) {
    // Not `println!`, which the test harness may keep.
    let mut out = io::stdout();
    writeln!(out, "{PREFIX}{line}").unwrap();
    out.flush().unwrap();
}

/// Does nothing unless another test has started it as a process of its own.
#[test]
fn process() {
    let Ok(task) = std::env::var(VARIABLE) else { return };
    let Task { role, url, state } = serde_json::from_str(&task).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        match role {
            Role::Refresh => {
                let client = Authorizer::new(options(&url, &state));
                let sent = refresh::sent(&client, &url).await;
                report("ready");
                io::stdin().read_line(&mut String::new()).unwrap();
                let refreshing =
                    tokio::spawn(async move { refresh::refreshed(&client, &url, sent).await });
                report("started");
                report(&serde_json::to_string(&refreshing.await.unwrap()).unwrap());
            }
            Role::StopAt(step) => {
                let store = Arc::new(SteppedStore::stopping_at(&step, &state));
                let options = AuthorizerOptions { store, ..options(&url, &state) };
                let outcome = call(&Authorizer::new(options), &url).await;
                report(&format!("ended: {outcome:?}"));
            }
            Role::Save => {
                let store = store(&state);
                let listing = store.list().await.unwrap();
                let (key, stored) = listing.grants.first().unwrap();
                let grant = &stored.as_ref().unwrap().grant;
                let lease = store.lock(key, Duration::from_secs(30)).await.unwrap();
                report("saving");
                loop {
                    store.mark_refreshing(&lease, 1).await.unwrap();
                    store.save(&lease, grant).await.unwrap();
                }
            }
            Role::Log(file) => logs::log_everything(&url, &state, &file).await,
        }
    });
}

/// A store that stops, or fails, at one step of a refresh: `locked`, `marked`, `saving`, `written` (the
/// new file has no name yet) or `saved`.
#[derive(Debug)]
pub(crate) struct SteppedStore {
    step: String,
    fails: bool,
    state: PathBuf,
    store: Arc<FileStore>,
}

impl SteppedStore {
    /// Reports the step, and does not continue.
    fn stopping_at(step: &str, state: &Path) -> Self {
        let (step, state) = (step.to_owned(), state.to_owned());
        Self { step, fails: false, store: store(&state), state }
    }

    /// Fails in place of the step.
    pub(crate) fn failing_at(step: &str, state: &Path) -> Self {
        Self { fails: true, ..Self::stopping_at(step, state) }
    }

    async fn at(&self, step: &str) -> Result<(), AuthError> {
        if self.step != step {
            return Ok(());
        }
        if self.fails {
            return Err(AuthError::Store("no space left on device".into()));
        }
        report(step);
        std::future::pending().await
    }
}

#[async_trait]
impl GrantStore for SteppedStore {
    async fn lock(&self, key: &GrantKey, patience: Duration) -> Result<GrantLock, AuthError> {
        let lease = self.store.lock(key, patience).await?;
        self.at("locked").await?;
        Ok(lease)
    }

    async fn load(&self, key: &GrantKey) -> Result<Option<StoredGrant>, AuthError> {
        self.store.load(key).await
    }

    async fn save(&self, lease: &GrantLock, grant: &Grant) -> Result<Version, AuthError> {
        self.at("saving").await?;
        if self.step == "written" {
            // As if the new file did not have its name yet.
            let file = grant_file(&self.state);
            let before = std::fs::read(&file).unwrap();
            self.store.save(lease, grant).await?;
            std::fs::rename(&file, file.with_file_name(".unfinished-test")).unwrap();
            std::fs::write(&file, before).unwrap();
            self.at("written").await?;
        }
        let version = self.store.save(lease, grant).await?;
        self.at("saved").await?;
        Ok(version)
    }

    async fn mark_refreshing(&self, lease: &GrantLock, at: i64) -> Result<Version, AuthError> {
        if self.fails {
            self.at("marked").await?;
        }
        let version = self.store.mark_refreshing(lease, at).await?;
        self.at("marked").await?;
        Ok(version)
    }

    async fn recover(&self, lease: &GrantLock) -> Result<Option<Grant>, AuthError> {
        self.store.recover(lease).await
    }

    async fn delete(&self, lease: &GrantLock) -> Result<bool, AuthError> {
        self.store.delete(lease).await
    }

    async fn list(&self) -> Result<GrantList, AuthError> {
        self.store.list().await
    }

    async fn version(&self, key: &GrantKey) -> Result<Option<Version>, AuthError> {
        self.store.version(key).await
    }

    async fn save_login(&self, key: &GrantKey, login: &PendingLogin) -> Result<(), AuthError> {
        self.store.save_login(key, login).await
    }

    async fn load_login(
        &self,
        key: &GrantKey,
        now: i64,
    ) -> Result<Option<PendingLogin>, AuthError> {
        self.store.load_login(key, now).await
    }

    async fn delete_login(&self, key: &GrantKey) -> Result<bool, AuthError> {
        self.store.delete_login(key).await
    }

    async fn issuer(&self, key: &GrantKey) -> Result<Option<StoredIssuer>, AuthError> {
        self.store.issuer(key).await
    }

    async fn save_issuer(&self, key: &GrantKey, issuer: &StoredIssuer) -> Result<(), AuthError> {
        self.store.save_issuer(key, issuer).await
    }

    async fn issuers(&self) -> Result<Vec<ConfirmedIssuer>, AuthError> {
        self.store.issuers().await
    }

    async fn check_writable(&self, key: &GrantKey) -> Result<(), AuthError> {
        self.store.check_writable(key).await
    }

    async fn key_place(&self) -> Option<KeyPlace> {
        self.store.key_place().await
    }
}
