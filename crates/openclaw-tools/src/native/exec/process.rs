//! The process of a command: in its own session, killed on drop with all its descendants.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use openclaw_process::{Isolation, ProcessTree};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::timeout;

use super::ExecSettings;
use super::shell::CommandShell;

/// How long to wait for a killed process to exit.
const END: Duration = Duration::from_secs(5);

/// A running command and all processes that it started. They are killed on drop.
#[derive(Debug)]
pub(super) struct ExecProcess(ProcessTree);

/// Output pipes of a process.
#[derive(Debug)]
pub(super) struct OutputPipes {
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl ExecProcess {
    pub(super) fn spawn(
        command: &str,
        folder: &Path,
        settings: &ExecSettings,
    ) -> io::Result<(Self, OutputPipes)> {
        let shell = CommandShell::of(settings.shell.as_deref(), &settings.environment)?;
        let mut shell = shell.running(command);
        shell.env_clear();
        shell.envs(settings.environment.iter().map(|(name, value)| (name, value)));
        shell.current_dir(folder);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Without a controlling terminal: the command could overwrite prompts to the user and read
        // the user's input.
        let mut tree = ProcessTree::spawn(shell, &settings.guard, Isolation::Session)?;
        let (_, Some(stdout), Some(stderr)) = tree.take_pipes() else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok((Self(tree), OutputPipes { stdout, stderr }))
    }

    /// Waits for the shell itself to exit. Cancel-safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.0.ended().await
    }

    /// Kills the command and all its descendants. When this returns, no descendant is running that
    /// was started before.
    pub(super) async fn kill(&mut self) {
        let Self(tree) = self;
        let mut strays = tree.strays().await;
        tree.kill();
        let _ = timeout(END, tree.ended()).await;
        tree.look_again(&mut strays).await;
        strays.kill();
    }

    /// Kills the command and all its descendants, and ends the registration with the guard.
    pub(super) async fn end(mut self) {
        self.kill().await;
        self.0.set_gone();
    }
}
