//! Kills the servers of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it keeps a tiny process beside itself, in a
//! group of its own, whose input is a pipe that only the program holds. While it lives, it writes
//! down there which process groups are its own; when it is gone, however it went, the pipe closes,
//! and the guard ends what is left. Unlike `PR_SET_PDEATHSIG` this reaches whole groups, works on
//! every Unix, needs no `unsafe`, and does not depend on which thread started a process. On Windows a
//! job object does the same.

use std::sync::{Arc, Mutex};

/// How to start the guard: this very program, with an argument that leads to [`serve`].
#[derive(Debug, Clone)]
pub struct GuardCommand {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// The way to a guard, which is started when first needed. A clone leads to the same one.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    shared: Option<Arc<Mutex<State>>>,
}

#[derive(Debug)]
struct State {
    command: GuardCommand,
    /// The guard's input, once it runs.
    #[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
    pipe: Option<std::process::ChildStdin>,
}

/// One group that is watched, until this is dropped.
#[derive(Debug)]
pub struct Entry {
    #[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
    guard: Guard,
    #[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
    group: u32,
}

impl Guard {
    /// A guard that is started with this command.
    pub fn new(command: GuardCommand) -> Self {
        Self { shared: Some(Arc::new(Mutex::new(State { command, pipe: None }))) }
    }

    /// No guard: for tests, and for programs that cannot start themselves.
    pub fn none() -> Self {
        Self::default()
    }

    /// Has a process group watched.
    pub fn watch(&self, group: u32) -> Entry {
        #[cfg(unix)]
        self.tell('+', group);
        Entry { guard: self.clone(), group }
    }

    #[cfg(unix)]
    fn tell(&self, sign: char, group: u32) {
        use std::io::Write as _;
        let Some(shared) = &self.shared else { return };
        let mut state = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.pipe.is_none() && sign == '+' {
            match start(&state.command) {
                Ok(pipe) => state.pipe = Some(pipe),
                Err(error) => tracing::warn!(%error, "no guard for server processes"),
            }
        }
        let written = state.pipe.as_mut().map(|pipe| writeln!(pipe, "{sign}{group}"));
        if let Some(Err(error)) = written {
            tracing::warn!(%error, "the guard for server processes is gone");
            // The next server gets a new one.
            state.pipe = None;
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.guard.tell('-', self.group);
    }
}

#[cfg(unix)]
fn start(command: &GuardCommand) -> std::io::Result<std::process::ChildStdin> {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in a terminal goes to the whole foreground group: the guard must outlive that.
        .process_group(0)
        .spawn()?;
    child.stdin.take().ok_or_else(|| std::io::Error::other("the guard has no input"))
}

/// The guard itself: reads which groups to watch until the input closes, then ends what is left.
#[cfg(unix)]
pub fn serve(input: impl std::io::BufRead) {
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    use nix::sys::signal::Signal;

    let mut groups = BTreeSet::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        match (line.get(..1), line.get(1..).and_then(|number| number.parse::<u32>().ok())) {
            (Some("+"), Some(group)) => drop(groups.insert(group)),
            (Some("-"), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    for group in &groups {
        signal(*group, Signal::SIGTERM);
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline && groups.iter().any(|group| group_lives(*group)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    for group in groups {
        signal(group, Signal::SIGKILL);
    }
}

/// A job object needs no guard.
#[cfg(not(unix))]
pub fn serve(_: impl std::io::BufRead) {}

#[cfg(unix)]
fn signal(group: u32, signal: nix::sys::signal::Signal) {
    if let Some(group) = group_id(group) {
        let _ = nix::sys::signal::killpg(group, signal);
    }
}

/// Whether a process group has a member left.
#[cfg(unix)]
pub(crate) fn group_lives(group: u32) -> bool {
    let Some(group) = group_id(group) else { return false };
    !matches!(nix::sys::signal::killpg(group, None), Err(nix::errno::Errno::ESRCH))
}

/// Never 0 or 1: those would be our own group, and everybody.
#[cfg(unix)]
fn group_id(group: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(group).ok().filter(|group| *group > 1).map(nix::unistd::Pid::from_raw)
}
