//! `secret://exec/NAME`: what a command of the config prints.
//!
//! No shell, a small environment, and a process group of its own that is killed when the answer is
//! there, the time is over, or the caller has lost interest. What the command prints to standard
//! error is thrown away: such tools like to repeat the secret there.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use zeroize::Zeroizing;

use super::{Context, Fetch, expand, text};
use crate::{
    Environment, ExecCommand, ResolveErrorKind, SecretRef, SecretString, Settings,
    resolve_error::Failure,
};

/// What a command gets of the host environment besides the baseline: where to find a password store,
/// its agent and its configuration.
const PASSWORD_STORES: &[&str] = &[
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "GNUPGHOME",
    "GPG_TTY",
    "PASSWORD_STORE_DIR",
    "SSH_AUTH_SOCK",
];

/// How long the output of a command that has ended may stay open. What it holds is read at once.
const LEFT_OPEN: Duration = Duration::from_millis(200);

/// The commands that the config names.
pub(super) struct Exec {
    settings: Arc<Settings>,
    environment: Environment,
}

impl Exec {
    pub(super) fn new(context: &Context) -> Self {
        Self { settings: context.settings.clone(), environment: context.environment.clone() }
    }

    async fn run(&self, reference: &SecretRef) -> Result<SecretString, Failure> {
        let name = reference.name();
        let command = self.settings.exec.get(name).ok_or_else(|| {
            let cause = format!("the config has no command `{name}`");
            Failure::new(ResolveErrorKind::NotConfigured, cause)
                .hint(format!("add `secrets.exec.{name}` to the config"))
        })?;
        let mut group = ProcessGroup::spawn(self.prepare(command)?)
            .map_err(|error| spawn_failure(&command.command, &error))?;
        let (status, output) = group.finish().await?;
        if !status.success() {
            let cause = format!("the command `{}` ended with {status}", command.command);
            return Err(Failure::new(ResolveErrorKind::Failed, cause)
                .hint("run it in a terminal to see what it says"));
        }
        text::value(output)
    }

    fn prepare(&self, exec: &ExecCommand) -> Result<CommandWrap, Failure> {
        let is_path =
            exec.command.starts_with('~') || Path::new(&exec.command).components().count() > 1;
        let program = if is_path {
            expand(&self.settings, &exec.command)?
        } else {
            exec.command.clone().into()
        };
        let mut command = tokio::process::Command::new(program);
        command.args(&exec.args).env_clear();
        command.envs(self.environment.for_child(PASSWORD_STORES.iter().copied()));
        command.envs(exec.env.iter().map(|(name, value)| (name, value.expose())));
        if !self.settings.base_dir.as_os_str().is_empty() {
            command.current_dir(&self.settings.base_dir);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CommandWrap::from(command))
    }
}

impl Fetch for Exec {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>> {
        Box::pin(self.run(reference))
    }
}

/// A running command and its descendants. Dropping it kills them, except those that have left its
/// process group (`setsid`): nobody can tell any more that they belong to it.
pub(super) struct ProcessGroup {
    child: Box<dyn ChildWrapper>,
}

impl ProcessGroup {
    pub(super) fn spawn(mut command: CommandWrap) -> std::io::Result<Self> {
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        // Has the runtime reap the leader if we end before it does.
        command.wrap(KillOnDrop);
        Ok(Self { child: command.spawn()? })
    }

    /// How the command ended, and what it has printed until then.
    pub(super) async fn finish(&mut self) -> Result<(ExitStatus, Zeroizing<Vec<u8>>), Failure> {
        let mut stdout = self.child.stdout().take().ok_or_else(|| {
            Failure::new(ResolveErrorKind::Failed, "the command has no standard output")
        })?;
        let mut output = text::buffer(4096);
        // Both at once: a child in the background may hold the output open after the command ended.
        let early = tokio::select! {
            biased;
            // If this fails the command may still be printing, and there is no status to wait for.
            end = text::read_to_end(&mut stdout, &mut output) => end.map(|()| None)?,
            status = self.status() => Some(status?),
        };
        let Some(status) = early else { return Ok((self.status().await?, output)) };
        // What the command itself printed lies in the pipe, and the pipe ends with its children. If
        // one has escaped it does not end, and what lies in it has been read long before we stop.
        self.kill();
        let rest = text::read_to_end(&mut stdout, &mut output);
        if let Ok(end) = tokio::time::timeout(LEFT_OPEN, rest).await {
            end?;
        }
        Ok((status, output))
    }

    /// Waits for the command itself. The group's own `wait` would, on Windows, wait for all of it.
    async fn status(&mut self) -> Result<ExitStatus, Failure> {
        self.child.inner_mut().wait().await.map_err(|error| {
            let cause = format!("waiting for the command failed: {}", error.kind());
            Failure::new(ResolveErrorKind::Failed, cause)
        })
    }

    fn kill(&mut self) {
        // `KillOnDrop` alone reaches only the leader. Also after it has ended by itself: what it
        // left running in the background has no owner any more. An error means that nobody is left.
        let _ = self.child.start_kill();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn_failure(command: &str, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            let cause = format!("there is no program `{command}`");
            Failure::new(ResolveErrorKind::NotConfigured, cause)
                .hint("install it, or write its whole path in the config")
        }
        kind => {
            let cause = format!("the program `{command}` cannot be started: {kind}");
            Failure::new(ResolveErrorKind::Failed, cause)
        }
    }
}
