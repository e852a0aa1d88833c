//! A started process and its descendants, owned by one value.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::{Guard, ProcessFamily, Strays};

/// How a process is separated from this program. On Windows it always gets its own job object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Its own process group.
    Group,
    /// Its own session: without a controlling terminal, it cannot write over prompts or read the
    /// user's input. Starting it requires a `fork` of this process.
    Session,
}

/// Describes an exit status, to follow the name of the process: "exited with status 1".
pub fn exit_words(status: ExitStatus) -> String {
    let shown = status.to_string();
    match (status.code(), shown.strip_prefix("signal: ")) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("exited ({shown})"),
    }
}

/// A running process and its descendants. Dropping it kills them.
#[derive(Debug)]
pub struct ProcessTree {
    child: Box<dyn ChildWrapper>,
    /// Finds descendants that have left the group, and has the guard kill them if this program is
    /// killed.
    family: ProcessFamily,
    /// Whether the process and its descendants are gone.
    is_gone: bool,
}

impl ProcessTree {
    /// Starts a process.
    ///
    /// # Errors
    /// If the operating system cannot start it.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "there is one kind of isolation"))]
    pub fn spawn(mut command: Command, guard: &Guard, isolation: Isolation) -> io::Result<Self> {
        let planned = guard.plan();
        command.envs(planned.variable());
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        match isolation {
            Isolation::Group => command.wrap(process_wrap::tokio::ProcessGroup::leader()),
            Isolation::Session => command.wrap(process_wrap::tokio::ProcessSession),
        };
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        // Lets the runtime reap the leader if this value is dropped first.
        command.wrap(KillOnDrop);
        let child = command.spawn()?;
        let family = planned.started(child.id().unwrap_or_default());
        Ok(Self { child, family, is_gone: false })
    }

    /// Returns the id of the process and of its group; `None` once it has exited.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Takes the pipes of stdin, stdout and stderr.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin().take(), self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits until the process itself has exited; its descendants may still run. Cancel-safe.
    ///
    /// # Errors
    /// If the operating system cannot report the status.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        // `wait` would wait for the whole group, so a descendant that keeps running would hide the
        // exit.
        self.child.inner_mut().wait().await
    }

    /// Finds the descendants, also those that have left the group. Must be called before the
    /// process is ended: afterwards they are harder to find.
    pub async fn strays(&self) -> Strays {
        self.family.strays().await
    }

    /// Adds descendants that were started since.
    pub async fn look_again(&self, strays: &mut Strays) {
        self.family.look_again(strays).await;
    }

    /// Whether a process of the group is running.
    pub fn group_lives(&self) -> bool {
        self.family.group_lives()
    }

    /// Sends SIGTERM to the group. A Windows process without a window cannot be asked to exit.
    pub fn ask_to_end(&self) {
        #[cfg(unix)]
        let _ = self.child.signal(nix::sys::signal::Signal::SIGTERM as i32);
    }

    /// Kills the group, without waiting.
    pub fn kill(&mut self) {
        // An error means that no process of the group is left.
        let _ = self.child.start_kill();
    }

    /// Ends the registration with the guard, once the process and its descendants are gone.
    pub fn set_gone(mut self) {
        self.is_gone = true;
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        let strays = self.family.strays_now();
        // `KillOnDrop` alone kills only the leader.
        self.kill();
        strays.kill();
    }
}
