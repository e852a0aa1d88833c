//! `secret://exec/NAME`: the output of a configured command.
//!
//! The command runs without a shell, with a small environment, in its own process group, which is
//! killed when the output is complete, on timeout, or when the request is dropped. Its standard
//! error is discarded: such tools may repeat the secret there.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use openclaw_process::program::{ProgramLookup, UnsafeArgument};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use zeroize::Zeroizing;

use super::{Fetch, ProviderContext, expand, text};
use crate::{
    Environment, ExecCommand, ResolveErrorKind, SecretRef, SecretSettings, SecretString,
    resolve_error::ProviderFailure,
};

/// The variables that a command inherits in addition to the baseline: they locate a password store,
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

/// How long to wait for the end of the output after the command has exited.
const LEFT_OPEN: Duration = Duration::from_millis(200);

/// The commands in the configuration.
pub(super) struct ExecProvider {
    settings: Arc<SecretSettings>,
    environment: Environment,
}

impl ExecProvider {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { settings: context.settings.clone(), environment: context.environment.clone() }
    }

    fn prepare(&self, exec: &ExecCommand) -> Result<CommandWrap, ProviderFailure> {
        let is_path =
            exec.command.starts_with('~') || Path::new(&exec.command).components().count() > 1;
        let program = if is_path {
            expand(&self.settings, &exec.command)?
        } else {
            exec.command.clone().into()
        };
        let environment = self.environment.for_child(PASSWORD_STORES.iter().copied());
        let own = |name: &str| exec.env.get(name).map(SecretString::expose);
        let variable = |name: &str| own(name).or_else(|| environment.get(name).map(String::as_str));
        let (path, extensions) = (variable("PATH"), variable("PATHEXT"));
        let lookup = ProgramLookup { path, extensions, folder: None };
        let arguments = exec.args.iter().map(String::as_str);
        let mut command = lookup
            .command(&program, arguments)
            .map_err(|error| spawn_failure(&exec.command, &error))?;
        command.env_clear().envs(&environment);
        command.envs(exec.env.iter().map(|(name, value)| (name, value.expose())));
        if !self.settings.base_dir.as_os_str().is_empty() {
            command.current_dir(&self.settings.base_dir);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(CommandWrap::from(command))
    }
}

#[async_trait]
impl Fetch for ExecProvider {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let name = reference.name();
        let command = self.settings.exec.get(name).ok_or_else(|| {
            let cause = format!("no command `{name}` in the configuration");
            ProviderFailure::new(ResolveErrorKind::NotConfigured, cause)
                .hint(format!("add `secrets.exec.{name}` to the configuration"))
        })?;
        let mut group = ProcessGroup::spawn(self.prepare(command)?)
            .map_err(|error| spawn_failure(&command.command, &error))?;
        let (status, output) = group.finish().await?;
        if !status.success() {
            let cause = format!("the command `{}` failed ({status})", command.command);
            return Err(ProviderFailure::new(ResolveErrorKind::Failed, cause)
                .hint("run it in a terminal to see its output"));
        }
        text::value(output)
    }
}

/// A running command and its descendants. Dropping it kills them, except those that have left the
/// process group (`setsid`): they can no longer be identified.
pub(super) struct ProcessGroup {
    child: Box<dyn ChildWrapper>,
}

impl ProcessGroup {
    pub(super) fn spawn(mut command: CommandWrap) -> std::io::Result<Self> {
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        // Makes the runtime reap the leader if this is dropped first.
        command.wrap(KillOnDrop);
        Ok(Self { child: command.spawn()? })
    }

    /// Waits for the command and returns its exit status and output.
    pub(super) async fn finish(
        &mut self,
    ) -> Result<(ExitStatus, Zeroizing<Vec<u8>>), ProviderFailure> {
        let mut stdout = self.child.stdout().take().ok_or_else(|| {
            ProviderFailure::new(ResolveErrorKind::Failed, "the command has no standard output")
        })?;
        let mut output = text::buffer(4096);
        // Concurrently: a background child may hold the output open after the command has exited.
        let early = tokio::select! {
            biased;
            // If this fails, the command may still be printing and never exit.
            end = text::read_to_end(&mut stdout, &mut output) => end.map(|()| None)?,
            status = self.status() => Some(status?),
        };
        let Some(status) = early else { return Ok((self.status().await?, output)) };
        // The output of the command is in the pipe, which closes when its children are killed. If a
        // child has left the group, the pipe stays open; buffered output is read before the timeout.
        self.kill();
        let rest = text::read_to_end(&mut stdout, &mut output);
        if let Ok(end) = tokio::time::timeout(LEFT_OPEN, rest).await {
            end?;
        }
        Ok((status, output))
    }

    /// Waits for the command itself. On Windows, the group's `wait` would wait for all processes.
    async fn status(&mut self) -> Result<ExitStatus, ProviderFailure> {
        self.child.inner_mut().wait().await.map_err(|error| {
            let cause = format!("waiting for the command failed: {}", error.kind());
            ProviderFailure::new(ResolveErrorKind::Failed, cause)
        })
    }

    fn kill(&mut self) {
        // `KillOnDrop` alone kills only the leader. Needed even after the leader has exited, to
        // kill its background processes. An error means that no process is left.
        let _ = self.child.start_kill();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn_failure(command: &str, error: &std::io::Error) -> ProviderFailure {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            let cause = format!("program `{command}` not found");
            ProviderFailure::new(ResolveErrorKind::NotConfigured, cause)
                .hint("install it, or set its full path in the configuration")
        }
        kind => {
            let cause = match error.get_ref().filter(|cause| cause.is::<UnsafeArgument>()) {
                Some(cause) => format!("cannot start `{command}`: {cause}"),
                None => format!("cannot start `{command}`: {kind}"),
            };
            ProviderFailure::new(ResolveErrorKind::Failed, cause)
        }
    }
}
