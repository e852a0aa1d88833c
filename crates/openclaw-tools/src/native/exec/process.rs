//! The process of a command: in its own session, killed on drop with all its descendants.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use openclaw_process::Family;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::ExecSettings;

/// How long to wait for a killed process to exit.
const END: Duration = Duration::from_secs(5);

/// A running command and all processes that it started. They are killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
    /// Finds those that have left the group, and has the guard kill them if this program is killed.
    family: Family,
    /// Whether all of them are gone.
    is_gone: bool,
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
        settings: &ExecSettings,
    ) -> io::Result<(Self, Pipes)> {
        let mut shell = shell(command);
        let planned = settings.guard.plan();
        shell.env_clear();
        shell.envs(settings.environment.iter().map(|(name, value)| (name, value)));
        shell.envs(planned.variable());
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
        let family = planned.started(child.id().unwrap_or_default());
        let (stdout, stderr) = (child.stdout().take(), child.stderr().take());
        let process = Self { child, family, is_gone: false };
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok((process, Pipes { stdout, stderr }))
    }

    /// Waits for the shell itself to exit. Cancel-safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.inner_mut().wait().await
    }

    /// Kills the command and all its descendants. When this returns, no descendant is running that
    /// was started before.
    pub(super) async fn kill(&mut self) {
        // Before the command is killed: afterwards its children are harder to find.
        let mut strays = self.family.strays().await;
        // An error means that no process of the group is left.
        let _ = self.child.start_kill();
        let _ = timeout(END, self.ended()).await;
        self.family.look_again(&mut strays).await;
        strays.kill();
    }

    /// Kills the command and all its descendants, and ends the registration with the guard.
    pub(super) async fn end(mut self) {
        self.kill().await;
        self.is_gone = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        let strays = self.family.strays_now();
        // `KillOnDrop` alone kills only the leader.
        let _ = self.child.start_kill();
        strays.kill();
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
