//! Kills the servers of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it keeps a tiny process beside itself, in a
//! group of its own, whose input is a pipe that only the program holds. While it lives, it writes
//! down there which process groups are its own; when it is gone, however it went, the pipe closes,
//! and the guard ends what is left. Unlike `PR_SET_PDEATHSIG` this reaches whole groups, works on
//! every Unix, needs no `unsafe`, and does not depend on which thread started a process. On Windows a
//! job object does the same.
//!
//! Starting it takes as long as starting a server. So both start side by side, and what it is told
//! meanwhile waits.

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

#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
#[derive(Debug)]
struct State {
    command: GuardCommand,
    line: Line,
}

/// The way to tell the guard something.
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
#[derive(Debug, Default)]
enum Line {
    /// It does not run.
    #[default]
    Closed,
    /// It is being started; this waits for it.
    Opening(String),
    /// Its input.
    Open(std::process::ChildStdin),
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
        Self { shared: Some(Arc::new(Mutex::new(State { command, line: Line::Closed }))) }
    }

    /// No guard: for tests, and for programs that cannot start themselves.
    pub fn none() -> Self {
        Self::default()
    }

    /// Starts the guard unless it runs, beside whatever its caller does next.
    pub fn prepare(&self) {
        #[cfg(unix)]
        if let Some(shared) = &self.shared {
            prepare(shared);
        }
    }

    /// Has a process group watched.
    pub fn watch(&self, group: u32) -> Entry {
        self.prepare();
        #[cfg(unix)]
        self.tell('+', group);
        Entry { guard: self.clone(), group }
    }

    #[cfg(unix)]
    fn tell(&self, sign: char, group: u32) {
        use std::io::Write as _;
        let Some(shared) = &self.shared else { return };
        let mut state = lock(shared);
        let line = format!("{sign}{group}\n");
        match &mut state.line {
            Line::Closed => {}
            Line::Opening(waiting) => waiting.push_str(&line),
            Line::Open(pipe) => {
                if let Err(error) = pipe.write_all(line.as_bytes()) {
                    tracing::warn!(%error, "the guard for server processes is gone");
                    // The next server gets a new one.
                    state.line = Line::Closed;
                }
            }
        }
    }
}

#[cfg(unix)]
fn lock(shared: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(unix)]
fn prepare(shared: &Arc<Mutex<State>>) {
    let mut state = lock(shared);
    if !matches!(state.line, Line::Closed) {
        return;
    }
    state.line = Line::Opening(String::new());
    let command = state.command.clone();
    drop(state);
    let opening = {
        let (shared, command) = (Arc::clone(shared), command.clone());
        move || open(&shared, &command)
    };
    // It ends by itself, as soon as the guard runs.
    let thread = std::thread::Builder::new().name("guard".to_owned()).spawn(opening);
    if thread.is_err() {
        open(shared, &command);
    }
}

/// Starts the guard, and tells it what has waited for it.
#[cfg(unix)]
fn open(shared: &Mutex<State>, command: &GuardCommand) {
    use std::io::Write as _;
    let started = start(command);
    let mut state = lock(shared);
    let waiting = match std::mem::take(&mut state.line) {
        Line::Opening(waiting) => waiting,
        Line::Closed | Line::Open(_) => String::new(),
    };
    let opened = started.and_then(|mut pipe| pipe.write_all(waiting.as_bytes()).map(|()| pipe));
    match opened {
        Ok(pipe) => state.line = Line::Open(pipe),
        Err(error) => tracing::warn!(%error, "no guard for server processes"),
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
