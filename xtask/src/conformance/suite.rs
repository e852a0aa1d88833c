//! The official suite, run for one scenario at a time: run for many, it ignores how the client ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use crate::peers::node;
use crate::shell::{Failure, failed};

/// How long the suite gives a client.
const CLIENT_TIME: Duration = Duration::from_secs(30);
/// How long we give the suite. Its signal to a client that is late reaches only the shell around it,
/// and then it waits for the client for ever.
const SUITE_TIME: Duration = Duration::from_secs(45);
/// How the suite (of the pinned version) says that the exit code was not 0. In scenarios that allow
/// it, it says so nowhere else.
const CLIENT_FAILED: &str = "Client exited with code";

pub(super) struct Suite {
    node: PathBuf,
    program: PathBuf,
}

impl Suite {
    pub(super) fn of(peers: &Path) -> Self {
        let folder = peers.join("node");
        Self {
            node: node::program(&folder),
            program: folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        }
    }

    /// The scenarios that it has for clients.
    pub(super) fn list(&self) -> Result<String, Failure> {
        let output = self.command().args(["list", "--client"]).output();
        let output = output.map_err(|error| failed(&self.node, &error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a client through a scenario; everything that is written goes into the folder.
    pub(super) fn run(
        &self,
        client: &str,
        scenario: &str,
        version: &str,
        folder: &Path,
    ) -> Result<Outcome, Failure> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
        }
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let log = folder.join("suite.txt");
        let write = || File::options().create(true).append(true).open(&log);
        let (stdout, stderr) = (write(), write());
        let mut command = self.command();
        command
            .args(["client", "--command", client, "--scenario", scenario])
            .args(["--spec-version", version])
            .args(["--timeout", &CLIENT_TIME.as_millis().to_string()])
            .arg("--output-dir")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(stdout.map_err(|error| failed(&log, &error))?)
            .stderr(stderr.map_err(|error| failed(&log, &error))?);
        let status = in_own_group(&mut command).map_err(|error| failed(&self.node, &error))?;
        let log = fs::read_to_string(&log).map_err(|error| failed(&log, &error))?;
        let mut outcome = Outcome {
            suite_is_content: status.is_some_and(|status| status.success()),
            client_failed: log.contains(CLIENT_FAILED),
            ..Outcome::default()
        };
        if let Some(path) = find("checks.json", folder, 3) {
            let text = fs::read(&path).map_err(|error| failed(&path, &error))?;
            let checks = serde_json::from_slice(&text);
            outcome.count(&checks.map_err(|error| failed(&path, &error.into()))?);
        }
        Ok(outcome)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program);
        command
    }
}

/// Runs it to its end, or to the end of its time: `None` then. Nothing that it started is left.
fn in_own_group(command: &mut Command) -> std::io::Result<Option<ExitStatus>> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn()?;
    let status = wait(&mut child);
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        use nix::sys::signal::{Signal, killpg};
        let _ = killpg(nix::unistd::Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    status
}

fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + SUITE_TIME;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

/// A file of this name in the folder, which may be some levels down.
fn find(name: &str, folder: &Path, levels: u8) -> Option<PathBuf> {
    let direct = folder.join(name);
    if direct.is_file() {
        return Some(direct);
    }
    let levels = levels.checked_sub(1)?;
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .find_map(|entry| find(name, &entry.path(), levels))
}
