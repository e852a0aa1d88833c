//! The process of a command: in its own process group, killed on drop.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

/// How long to wait for a killed process to exit.
const END: Duration = Duration::from_secs(5);

/// A running command and all processes that it started and that stayed in its group. They are
/// killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
    group: u32,
}

/// Output pipes of a process.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Process {
    pub(super) fn spawn(
        command: &str,
        folder: &Path,
        environment: &[(String, String)],
    ) -> io::Result<(Self, Pipes)> {
        let mut shell = shell(command);
        shell.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        shell.current_dir(folder);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = CommandWrap::from(shell);
        // Without a controlling terminal: the command could overwrite prompts to the user and read
        // the user's input.
        #[cfg(unix)]
        shell.wrap(process_wrap::tokio::ProcessSession);
        #[cfg(windows)]
        shell.wrap(process_wrap::tokio::JobObject);
        // Has the runtime reap the leader if this is dropped before it exits.
        shell.wrap(KillOnDrop);
        let mut child = shell.spawn()?;
        let group = child.id().unwrap_or_default();
        let (stdout, stderr) = (child.stdout().take(), child.stderr().take());
        let process = Self { child, group };
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok((process, Pipes { stdout, stderr }))
    }

    /// Returns the id of the process group.
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// Waits for the shell itself to exit. Cancel-safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.inner_mut().wait().await
    }

    /// Kills the whole group. An error means that no process is left.
    pub(super) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }

    /// Kills the whole group and waits until its leader has exited.
    pub(super) async fn end(mut self) {
        self.kill();
        let _ = timeout(END, self.ended()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // `KillOnDrop` alone kills only the leader.
        self.kill();
    }
}

#[cfg(not(windows))]
fn shell(command: &str) -> Command {
    // By absolute path, so that an `sh` in the workspace is not run.
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(windows)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd.exe");
    // The shell takes the line verbatim; the usual quoting would change it.
    shell.raw_arg("/D /S /C \"").raw_arg(command).raw_arg("\"");
    shell
}
