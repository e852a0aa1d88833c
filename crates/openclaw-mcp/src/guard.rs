//! Kills the servers of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it keeps a tiny process beside itself, in a
//! group of its own, whose input is a pipe that only the program holds. While it lives, it writes
//! down there which process groups are its own; when it is gone, however it went, the pipe closes,
//! and the guard ends what is left, also of descendants that have left their group. A guard that is
//! itself killed gets a successor, which is told of all groups, when the next is told of. Unlike `PR_SET_PDEATHSIG` this reaches whole groups, works on
//! every Unix, needs no `unsafe`, and does not depend on which thread started a process. On Windows a
//! job object does the same.

use std::sync::{Arc, Mutex};

#[cfg(unix)]
use crate::descendants::Lineage;

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
    #[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
    shared: Option<Arc<Mutex<State>>>,
}

#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
struct State {
    command: GuardCommand,
    /// The guard, once it runs.
    #[cfg(unix)]
    running: Option<Running>,
    /// What it is to watch.
    #[cfg(unix)]
    watched: std::collections::BTreeMap<u32, Lineage>,
}

/// One group that is watched, until this is dropped.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Entry {
    guard: Guard,
    group: u32,
}

impl Guard {
    /// A guard that is started with this command.
    pub fn new(command: GuardCommand) -> Self {
        let state = State {
            command,
            #[cfg(unix)]
            running: None,
            #[cfg(unix)]
            watched: std::collections::BTreeMap::new(),
        };
        Self { shared: Some(Arc::new(Mutex::new(state))) }
    }

    /// No guard: for tests, and for programs that cannot start themselves.
    pub fn none() -> Self {
        Self::default()
    }

    /// Has a process group watched.
    #[cfg(unix)]
    pub(crate) fn watch(&self, lineage: &Lineage) -> Entry {
        let group = lineage.leader();
        self.change(|state| {
            state.watched.insert(group, lineage.clone());
            state.tell(&format!("+{lineage}"));
        });
        Entry { guard: self.clone(), group }
    }

    #[cfg(unix)]
    fn change(&self, change: impl FnOnce(&mut State)) {
        let Some(shared) = &self.shared else { return };
        change(&mut shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

#[cfg(unix)]
impl State {
    /// Tells the guard. Should it be gone, or not be there yet, a new one is told of all that is
    /// watched by now.
    fn tell(&mut self, line: &str) {
        if let Some(running) = &mut self.running {
            match running.tell(line) {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "the guard for server processes is gone"),
            }
            self.running = None;
        }
        if self.watched.is_empty() {
            return;
        }
        let started = Running::start(&self.command).and_then(|mut running| {
            for lineage in self.watched.values() {
                running.tell(&format!("+{lineage}"))?;
            }
            Ok(running)
        });
        match started {
            Ok(running) => self.running = Some(running),
            Err(error) => tracing::warn!(%error, "no guard for server processes"),
        }
    }
}

#[cfg(unix)]
impl Drop for Entry {
    fn drop(&mut self) {
        self.guard.change(|state| {
            state.watched.remove(&self.group);
            state.tell(&format!("-{}", self.group));
        });
    }
}

/// A guard that runs.
#[cfg(unix)]
#[derive(Debug)]
struct Running {
    process: std::process::Child,
    pipe: std::process::ChildStdin,
}

#[cfg(unix)]
impl Running {
    fn start(command: &GuardCommand) -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        use std::process::{Command, Stdio};
        let mut process = Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to the whole foreground group: the guard must outlive that.
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take();
        let pipe = pipe.ok_or_else(|| std::io::Error::other("the guard has no input"))?;
        Ok(Self { process, pipe })
    }

    fn tell(&mut self, line: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        // In one piece: a line that is cut would be misunderstood.
        self.pipe.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        // Reaps one that is gone; one that still ends what is left is not waited for.
        let _ = self.process.try_wait();
    }
}

/// The guard itself: reads which groups to watch until the input closes, then ends what is left.
#[cfg(unix)]
pub fn serve(input: impl std::io::BufRead) {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::{Duration, Instant};

    use nix::sys::signal::Signal;

    let mut watched = BTreeMap::new();
    for line in input.lines() {
        let Ok(line) = line else { break };
        match (line.get(..1), line.get(1..).and_then(|rest| rest.parse::<Lineage>().ok())) {
            (Some("+"), Some(lineage)) => drop(watched.insert(lineage.leader(), lineage)),
            (Some("-"), Some(lineage)) => drop(watched.remove(&lineage.leader())),
            _ => {}
        }
    }
    let strays =
        || watched.values().flat_map(Lineage::descendants).collect::<BTreeSet<_>>().into_iter();
    let mut found: BTreeSet<_> = strays().collect();
    for group in watched.keys() {
        signal(*group, Signal::SIGTERM);
    }
    found.iter().for_each(|stray| stray.signal(Signal::SIGTERM));
    let deadline = Instant::now() + Duration::from_secs(2);
    let is_left = || {
        watched.keys().any(|group| group_lives(*group)) || found.iter().any(|stray| stray.lives())
    };
    while Instant::now() < deadline && is_left() {
        std::thread::sleep(Duration::from_millis(20));
    }
    for group in watched.keys() {
        signal(*group, Signal::SIGKILL);
    }
    found.extend(strays());
    found.iter().for_each(|stray| stray.signal(Signal::SIGKILL));
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
