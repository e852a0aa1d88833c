//! Runs the official suite for one scenario at a time: with several, it ignores the client's exit
//! status.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use super::reference::EXTENSION;
use crate::peers::node;
use crate::shell::{Failure, empty_folder, failed};

/// The suite's timeout for a client.
const CLIENT_TIME: Duration = Duration::from_secs(30);
/// Our timeout for the suite. When a client times out, the suite's signal reaches only the shell
/// around the client, and the suite waits for the client forever.
const SUITE_TIME: Duration = Duration::from_secs(45);
/// The suite's message (in the pinned version) about an exit code other than 0. In scenarios that
/// allow it, there is no other indication.
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

    /// Returns the listing of scenarios for `--client` or `--server`.
    pub(super) fn list(&self, side: &str) -> Result<String, Failure> {
        let output = self.script(&self.program).args(["list", side]).output();
        let output = output.map_err(|error| failed(&self.node, &error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns a command that runs a script with the node of the suite.
    pub(super) fn script(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(script);
        command
    }

    /// Runs a client (`client --command LINE`) through a scenario, or a scenario against a server
    /// (`server --url URL`); all output is written to the folder.
    pub(super) fn run(
        &self,
        side: &[&str],
        scenario: &str,
        version: &str,
        folder: &Path,
    ) -> Result<Outcome, Failure> {
        empty_folder(folder)?;
        let log = folder.join("suite.txt");
        let write = || File::options().create(true).append(true).open(&log);
        let (stdout, stderr) = (write(), write());
        let mut command = self.script(&self.program);
        command
            .args(side)
            .args(["--scenario", scenario])
            // An extension is in no version; with any, the suite skips its scenarios.
            .args(
                (version != EXTENSION).then_some(["--spec-version", version]).into_iter().flatten(),
            )
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
}

/// Runs a command until it exits, or until the timeout: `None` then. Its whole process group is
/// killed.
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

/// Finds a file of this name in the folder or up to `levels` levels below.
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
