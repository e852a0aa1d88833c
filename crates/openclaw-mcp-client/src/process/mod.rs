//! The process of a local server: in its own process group, owned by one value, and killed when
//! that value is dropped.

mod interpreter;
pub mod launch;
mod level;
pub mod stderr;

pub use interpreter::missing_interpreter;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, fcntl};
use openclaw_process::program::{ProgramLookup, UnsafeArgument};
use openclaw_process::{Guard, Isolation, ProcessTree};
use openclaw_secrets::SecretString;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, timeout};

/// The size of the stdout pipe. The kernel limits a user to some hundreds of pipes of this size;
/// further ones stay smaller.
#[cfg(target_os = "linux")]
const OUTPUT_PIPE: i32 = 128 * 1024;

/// How to start a process.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program: a path, or a name that is looked up in `PATH`. No shell is involved.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its complete environment; nothing else is inherited.
    pub env: BTreeMap<String, SecretString>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
}

impl Launch {
    /// Finds the program, with the variables that it gets.
    fn lookup(&self) -> ProgramLookup<'_> {
        // Windows ignores the case of names; the process gets the last of several.
        let variable = |name: &str| {
            let mut variables = self.env.iter();
            variables
                .rfind(|(it, _)| it.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.expose())
        };
        let folder = self.cwd.as_deref();
        ProgramLookup { path: variable("PATH"), extensions: variable("PATHEXT"), folder }
    }
}

/// A program that is given by a path is not searched for on the PATH.
fn and_on_the_path(program: &str) -> &'static str {
    if program.contains(std::path::is_separator) { "" } else { " and on the PATH" }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("program `{}` not found; is it installed{}?", .0, and_on_the_path(.0))]
    NoProgram(String),
    /// It is a script, and its interpreter does not exist.
    #[error("interpreter `{}` of `{program}` not found", .interpreter.escape_debug())]
    NoInterpreter {
        /// The program.
        program: String,
        /// The interpreter in its first line.
        interpreter: String,
    },
    /// It exists, but its dynamic loader does not, or it is not a program.
    #[error("cannot load `{0}`; is it built for another system, or a script without `#!`?")]
    NoLoader(String),
    /// It is a folder.
    #[error("`{0}` is a folder, not a program")]
    IsFolder(String),
    /// The working folder does not exist.
    #[error("working folder {0} not found")]
    NoFolder(String),
    /// This user may not execute it.
    #[error("no permission to run `{0}`; is it executable?")]
    Denied(String),
    /// It is a batch file of Windows, and an argument has a line break.
    #[error(
        "cannot start `{0}`: {UnsafeArgument}; pass it in `env`, or set `command` to the program that \
         the batch file runs"
    )]
    UnsafeArgument(String),
    /// Any other error.
    #[error("cannot start `{program}`: {cause}")]
    Other {
        /// The program.
        program: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
}

/// The timeouts of a shutdown (L5).
#[derive(Debug, Clone, Copy)]
pub struct ShutdownTimeouts {
    /// After stdin was closed.
    pub after_close: Duration,
    /// After SIGTERM.
    pub after_term: Duration,
}

impl ShutdownTimeouts {
    /// The timeouts on a system with or without SIGTERM. Without, there is nothing to wait for after it:
    /// when its window is closed, Windows ends this program after five seconds.
    const fn usual(has_sigterm: bool) -> Self {
        let after_term = if has_sigterm { Duration::from_secs(5) } else { Duration::ZERO };
        Self { after_close: Duration::from_secs(1), after_term }
    }
}

impl Default for ShutdownTimeouts {
    fn default() -> Self {
        Self::usual(cfg!(unix))
    }
}

/// The pipes of a process.
#[derive(Debug)]
pub struct Pipes {
    /// Its stdin.
    pub stdin: ChildStdin,
    /// Its stdout.
    pub stdout: ChildStdout,
    /// Its stderr.
    pub stderr: ChildStderr,
}

/// A running process and its descendants. Dropping it kills them.
#[derive(Debug)]
pub struct ServerProcess {
    tree: ProcessTree,
    pid: u32,
}

impl ServerProcess {
    /// Starts a process in its own process group.
    ///
    /// # Errors
    /// If the program does not exist or cannot be executed.
    pub fn spawn(launch: &Launch, guard: &Guard) -> Result<(Self, Pipes), SpawnError> {
        let arguments = launch.args.iter().map(String::as_str);
        let command = launch.lookup().command(&launch.program, arguments);
        let mut command = command.map_err(|cause| spawn_error(launch, cause))?;
        command.env_clear();
        command.envs(launch.env.iter().map(|(name, value)| (name, value.expose())));
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = ProcessTree::spawn(command, guard, isolation())
            .map_err(|cause| spawn_error(launch, cause))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = tree.take_pipes() else {
            let cause = std::io::Error::other("no pipes");
            return Err(SpawnError::Other { program: launch.program.clone(), cause });
        };
        // A response of 64 KB does not fit into the default pipe: writer and reader would have to
        // alternate.
        #[cfg(target_os = "linux")]
        let _ = fcntl(&stdout, FcntlArg::F_SETPIPE_SZ(OUTPUT_PIPE));
        let pid = tree.id().unwrap_or_default();
        Ok((Self { tree, pid }, Pipes { stdin, stdout, stderr }))
    }

    /// The id of the process and of its group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the process itself has exited; its descendants may still run. Cancel-safe.
    ///
    /// # Errors
    /// If the operating system cannot report the status.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.tree.ended().await
    }

    /// Stops the process and its descendants: closes stdin (by dropping it) and gives the process
    /// time to exit; then sends SIGTERM, then SIGKILL. When this returns, they are gone.
    pub async fn shut_down(self, stdin: Option<ChildStdin>, patience: ShutdownTimeouts) {
        let mut tree = self.tree;
        let mut strays = tree.strays().await;
        drop(stdin);
        let has_ended = timeout(patience.after_close, tree.ended()).await.is_ok();
        tree.look_again(&mut strays).await;
        if has_ended && !tree.group_lives() && !strays.live() {
            tree.set_gone();
            return;
        }
        tree.ask_to_end();
        strays.ask_to_end();
        let deadline = Instant::now() + patience.after_term;
        let _ = timeout(patience.after_term, tree.ended()).await;
        // Descendants are not our children, so they can only be polled.
        while (tree.group_lives() || strays.live()) && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
        tree.kill();
        let _ = tree.ended().await;
        tree.look_again(&mut strays).await;
        strays.kill();
        tree.set_gone();
    }
}

/// If this program has a terminal, a server gets its own session. Without a terminal, its own group
/// is enough, and cheaper.
fn isolation() -> Isolation {
    let has_terminal = cfg!(unix) && std::fs::File::open("/dev/tty").is_ok();
    if has_terminal { Isolation::Session } else { Isolation::Group }
}

/// A bare name is looked up in `PATH`, which ignores folders.
fn is_folder(launch: &Launch) -> bool {
    let path = launch.cwd.as_deref().unwrap_or(Path::new("")).join(&launch.program);
    launch.program.contains(std::path::is_separator) && path.is_dir()
}

/// Whether an argument cannot be passed to the program, which is a batch file.
fn is_unsafe(cause: &std::io::Error) -> bool {
    cause.get_ref().is_some_and(|cause| cause.is::<UnsafeArgument>())
}

/// The error of the operating system for a file that is not a program.
const ENOEXEC: i32 = 8;

fn spawn_error(launch: &Launch, cause: std::io::Error) -> SpawnError {
    let program = launch.program.clone();
    match cause.kind() {
        std::io::ErrorKind::NotFound => match &launch.cwd {
            Some(cwd) if !cwd.is_dir() => SpawnError::NoFolder(cwd.display().to_string()),
            _ => not_found(launch),
        },
        std::io::ErrorKind::NotADirectory => {
            let cwd = launch.cwd.as_ref().map(|cwd| cwd.display().to_string());
            SpawnError::NoFolder(cwd.unwrap_or_default())
        }
        std::io::ErrorKind::PermissionDenied if is_folder(launch) => SpawnError::IsFolder(program),
        std::io::ErrorKind::PermissionDenied => SpawnError::Denied(program),
        std::io::ErrorKind::InvalidInput if is_unsafe(&cause) => {
            SpawnError::UnsafeArgument(program)
        }
        _ if cfg!(unix) && cause.raw_os_error() == Some(ENOEXEC) => SpawnError::NoLoader(program),
        _ => SpawnError::Other { program, cause },
    }
}

/// The operating system reports the same error for a missing program and for one whose interpreter
/// or loader is missing.
fn not_found(launch: &Launch) -> SpawnError {
    let program = launch.program.clone();
    let Some(file) = interpreter::found(launch) else { return SpawnError::NoProgram(program) };
    match missing_interpreter(&file, launch.cwd.as_deref()) {
        Some(interpreter) => SpawnError::NoInterpreter { program, interpreter },
        None => SpawnError::NoLoader(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sigterm_nothing_is_waited_for_after_it() {
        let timeouts = |has_sigterm: bool| {
            let ShutdownTimeouts { after_close, after_term } = ShutdownTimeouts::usual(has_sigterm);
            (after_close, after_term)
        };
        let second = Duration::from_secs(1);
        assert_eq!(timeouts(true), (second, 5 * second));
        assert_eq!(timeouts(false), (second, Duration::ZERO));
    }

    #[test]
    fn a_program_is_looked_up_in_the_path_that_its_process_gets() {
        let variables = [("PATH", "the baseline"), ("PATHEXT", ".EXE"), ("Path", "its own")];
        let env = variables.map(|(name, value)| (name.to_owned(), SecretString::from(value)));
        let launch =
            Launch { program: "npx".to_owned(), args: Vec::new(), env: env.into(), cwd: None };
        let lookup = launch.lookup();
        assert_eq!((lookup.path, lookup.extensions), (Some("its own"), Some(".EXE")));
    }
}
