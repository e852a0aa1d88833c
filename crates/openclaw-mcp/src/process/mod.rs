//! The process of a local server: in a group of its own, owned by one value, gone when that value is.

#[cfg(unix)]
mod descendants;
pub mod guard;
mod interpreter;
pub mod launch;
#[cfg(unix)]
pub(crate) mod snapshot;
pub mod stderr;

pub use interpreter::missing_interpreter;

use std::collections::BTreeMap;
#[cfg(unix)]
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
#[cfg(unix)]
use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, fcntl};
use openclaw_secrets::SecretString;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

#[cfg(unix)]
use crate::process::descendants::{Lineage, Mark, Possible};
#[cfg(unix)]
use crate::process::guard::Entry;
use crate::process::guard::Guard;
#[cfg(unix)]
use crate::process::snapshot::{Found, SharedSnapshot, VARIABLE};

/// How much of a server's output waits in its pipe. A user may have some hundreds of such pipes; who has more
/// gets smaller ones.
#[cfg(target_os = "linux")]
const OUTPUT_PIPE: i32 = 128 * 1024;

/// How to start a process.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program: a path, or a name that is looked up in `PATH`. No shell is involved.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment. Nothing is inherited besides.
    pub env: BTreeMap<String, SecretString>,
    /// The folder that it runs in.
    pub cwd: Option<PathBuf>,
}

/// How a process ended, to follow its name: "exited with status 1".
pub(crate) fn exit_words(status: ExitStatus) -> String {
    let shown = status.to_string();
    match (status.code(), shown.strip_prefix("signal: ")) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("exited ({shown})"),
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("program `{0}` not found; is it installed and on the PATH?")]
    NoProgram(String),
    /// It is a script, and what is to run it is not there.
    #[error("interpreter `{}` of `{program}` not found", .interpreter.escape_debug())]
    NoInterpreter {
        /// The program.
        program: String,
        /// What its first line names.
        interpreter: String,
    },
    /// It is there, and what the system needs to load it is not.
    #[error("cannot load `{0}`; is it built for another system?")]
    NoLoader(String),
    /// It is a folder.
    #[error("`{0}` is a folder, not a program")]
    IsFolder(String),
    /// There is no such folder to run it in.
    #[error("working folder {0} not found")]
    NoFolder(String),
    /// This user may not run it.
    #[error("no permission to run `{0}`; is it executable?")]
    Denied(String),
    /// Anything else.
    #[error("cannot start `{program}`: {cause}")]
    Other {
        /// The program.
        program: String,
        /// What the system says.
        cause: std::io::Error,
    },
}

/// How long to wait at each step of a shutdown (L5).
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// After its input was closed.
    pub after_close: Duration,
    /// After it was asked to end.
    pub after_term: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { after_close: Duration::from_secs(1), after_term: Duration::from_secs(5) }
    }
}

/// The ends of a process's pipes.
#[derive(Debug)]
pub struct Pipes {
    /// To its input.
    pub stdin: ChildStdin,
    /// From its output.
    pub stdout: ChildStdout,
    /// From its complaints.
    pub stderr: ChildStderr,
}

/// A running process and its descendants. Dropping it kills them.
#[derive(Debug)]
pub struct Process {
    child: Box<dyn ChildWrapper>,
    pid: u32,
    /// Where descendants are known by that have left the group.
    #[cfg(unix)]
    lineage: Lineage,
    /// Who looks for them.
    #[cfg(unix)]
    census: Arc<SharedSnapshot>,
    /// Nothing is left of it.
    is_gone: bool,
    /// Whoever kills the group if this program is itself killed.
    #[cfg(unix)]
    _entry: Entry,
}

impl Process {
    /// Starts a process in a group of its own.
    ///
    /// # Errors
    /// If there is no such program, or it may not be run.
    #[cfg_attr(not(unix), allow(unused_variables, reason = "a job object needs no guard"))]
    pub fn spawn(launch: &Launch, guard: &Guard) -> Result<(Self, Pipes), SpawnError> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear();
        command.envs(launch.env.iter().map(|(name, value)| (name, value.expose())));
        #[cfg(unix)]
        let mark = Mark::fresh();
        #[cfg(unix)]
        command.envs(mark.value().map(|value| (VARIABLE, value)));
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        set_apart(&mut command);
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        // Has the runtime reap the leader if we end before it does.
        command.wrap(KillOnDrop);
        guard.prepare();
        let mut child = command.spawn().map_err(|cause| spawn_error(launch, cause))?;
        let pid = child.id().unwrap_or_default();
        let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        #[cfg(unix)]
        let lineage = Lineage::of(pid, mark);
        let process = Self {
            child,
            pid,
            #[cfg(unix)]
            _entry: guard.watch(&lineage),
            #[cfg(unix)]
            lineage,
            #[cfg(unix)]
            census: guard.census(),
            is_gone: false,
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            let cause = std::io::Error::other("it has no pipes");
            return Err(SpawnError::Other { program: launch.program.clone(), cause });
        };
        // An answer of 64 KB is more than the usual pipe holds: it would take turns to write and to read it.
        #[cfg(target_os = "linux")]
        let _ = fcntl(&stdout, FcntlArg::F_SETPIPE_SZ(OUTPUT_PIPE));
        Ok((process, Pipes { stdin, stdout, stderr }))
    }

    /// The id of the process, and of its group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the process itself to end; its descendants may live on. Safe to cancel.
    ///
    /// # Errors
    /// If the system cannot say.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        // `wait` would wait for the whole group: one that was left behind would hide the end.
        self.child.inner_mut().wait().await
    }

    /// Ends the process and its descendants: its input is closed (by dropping `stdin`), and it gets
    /// time to go by itself; then all are asked, then they are killed. When this returns, they are
    /// gone.
    pub async fn shut_down(mut self, stdin: Option<ChildStdin>, patience: Patience) {
        // First: a child whose parent has ended is harder to find.
        let mut strays = self.strays().await;
        drop(stdin);
        let has_ended = timeout(patience.after_close, self.ended()).await.is_ok();
        self.look_again(&mut strays).await;
        if has_ended && !self.group_lives() && !strays.live() {
            self.is_gone = true;
            return;
        }
        self.ask_to_end();
        strays.ask_to_end();
        let deadline = Instant::now() + patience.after_term;
        let _ = timeout(patience.after_term, self.ended()).await;
        // Descendants are not ours to wait for: all we can do is look.
        while (self.group_lives() || strays.live()) && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
        let _ = self.child.start_kill();
        let _ = self.ended().await;
        self.look_again(&mut strays).await;
        strays.kill();
        self.is_gone = true;
    }

    /// The descendants that run now. Unless the server has just begun, finding them means reading about all
    /// processes, which many servers that end at once do together.
    #[cfg(unix)]
    async fn strays(&self) -> Strays {
        let last = self.lineage.last_number();
        let found = match self.lineage.possible(last) {
            Possible::None => BTreeSet::new(),
            Possible::Few => self.lineage.descendants(),
            Possible::Many => self.lineage.descendants_among(&*self.census.now().await),
        };
        Strays { found, last }
    }

    /// Finds those that were started meanwhile, if any process was.
    #[cfg(unix)]
    async fn look_again(&self, strays: &mut Strays) {
        let last = self.lineage.last_number();
        if last.is_none() || last != strays.last {
            strays.found.append(&mut self.strays().await.found);
        }
    }

    // They cannot leave the job.
    #[cfg(not(unix))]
    async fn strays(&self) -> Strays {
        Strays
    }

    #[cfg(not(unix))]
    async fn look_again(&self, _: &mut Strays) {}

    #[cfg(unix)]
    fn ask_to_end(&self) {
        let _ = self.child.signal(nix::sys::signal::Signal::SIGTERM as i32);
    }

    // A Windows process without a window cannot be asked.
    #[cfg(not(unix))]
    fn ask_to_end(&self) {}

    #[cfg(unix)]
    fn group_lives(&self) -> bool {
        crate::process::guard::group_lives(self.pid)
    }

    // The job object kills all of them at once, and waits for none.
    #[cfg(not(unix))]
    fn group_lives(&self) -> bool {
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        #[cfg(unix)]
        let strays = Strays { found: self.lineage.descendants(), last: None };
        // `KillOnDrop` alone reaches only the leader. An error means that nobody is left.
        let _ = self.child.start_kill();
        #[cfg(unix)]
        strays.kill();
    }
}

/// Descendants, which may have left the group.
#[cfg(unix)]
struct Strays {
    found: BTreeSet<Found>,
    /// The last process that had been started before they were looked for.
    last: Option<u32>,
}

#[cfg(unix)]
impl Strays {
    fn live(&self) -> bool {
        self.found.iter().any(|found| found.lives())
    }

    fn ask_to_end(&self) {
        self.found.iter().for_each(|found| found.signal(nix::sys::signal::Signal::SIGTERM));
    }

    fn kill(&self) {
        self.found.iter().for_each(|found| found.signal(nix::sys::signal::Signal::SIGKILL));
    }
}

/// There are none: nobody leaves a job.
#[cfg(not(unix))]
struct Strays;

#[cfg(not(unix))]
impl Strays {
    fn live(&self) -> bool {
        false
    }

    fn ask_to_end(&self) {}

    fn kill(&self) {}
}

/// Puts a command into a group of its own. Where this program has a terminal, it gets a session of its own
/// as well: otherwise it could write over what people are asked, and wait for what they type. A session
/// costs a copy of this process, which is cheap enough where somebody sits.
#[cfg(unix)]
fn set_apart(command: &mut CommandWrap) {
    let has_terminal = std::fs::File::open("/dev/tty").is_ok();
    if has_terminal {
        command.wrap(process_wrap::tokio::ProcessSession);
    } else {
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
    }
}

/// A mere name is looked for on the PATH, where folders do not count.
fn is_folder(launch: &Launch) -> bool {
    let path = launch.cwd.as_deref().unwrap_or(Path::new("")).join(&launch.program);
    launch.program.contains(std::path::is_separator) && path.is_dir()
}

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
        _ => SpawnError::Other { program, cause },
    }
}

/// The system says the same of a program that is not there and of one that nothing can run.
fn not_found(launch: &Launch) -> SpawnError {
    let program = launch.program.clone();
    let Some(file) = interpreter::found(launch) else { return SpawnError::NoProgram(program) };
    match missing_interpreter(&file, launch.cwd.as_deref()) {
        Some(interpreter) => SpawnError::NoInterpreter { program, interpreter },
        None => SpawnError::NoLoader(program),
    }
}
