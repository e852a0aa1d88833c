//! Kills the child processes of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it runs a small guard process, in its own
//! process group, whose stdin is a pipe that only the program holds. The program writes the ids of
//! its process groups to that pipe. When the program is gone, for whatever reason, the pipe closes,
//! and the guard kills what is left, including descendants that have left their group. If the guard
//! itself is killed, the next change starts a new one, which is sent all groups. Unlike
//! `PR_SET_PDEATHSIG`, this covers whole groups, works on every Unix, needs no `unsafe`, and does
//! not depend on the thread that started a process. On Windows a job object does the same.
//!
//! Starting the guard takes as long as starting a server, which is long for a program that makes
//! one call and exits. So it starts in the background, a moment later, and only if there is still
//! something to watch; it is then sent all groups. Until it runs, a server of a killed program only
//! sees its stdin close.

use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use crate::process::descendants::{Lineage, Mark};
#[cfg(unix)]
use crate::process::snapshot::{self, Processes, SharedSnapshot};

/// Programs that finish sooner do not start a guard.
#[cfg(unix)]
const START_AFTER: Duration = Duration::from_millis(30);

/// How to start the guard: this executable, with arguments that run [`serve`].
#[derive(Debug, Clone)]
pub struct GuardCommand {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// A handle to the guard process, which is started when first needed. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    #[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
    shared: Option<Arc<Mutex<State>>>,
    /// Finds descendants that have left their group, while this program is alive.
    #[cfg(unix)]
    census: Arc<SharedSnapshot>,
}

#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
struct State {
    command: GuardCommand,
    #[cfg(unix)]
    line: Line,
    /// The groups to watch.
    #[cfg(unix)]
    watched: std::collections::BTreeMap<u32, Lineage>,
}

/// The connection to the guard process.
#[cfg(unix)]
#[derive(Debug, Default)]
enum Line {
    /// It is not running.
    #[default]
    Closed,
    /// It is being started, and will be sent all groups that are watched by then.
    Opening,
    /// It is running.
    Open(Running),
}

/// A watched group. Dropping it stops the watch.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Entry {
    guard: Guard,
    group: u32,
}

impl Guard {
    /// Creates a handle to a guard that is started with this command.
    pub fn new(command: GuardCommand) -> Self {
        let state = State {
            command,
            #[cfg(unix)]
            line: Line::Closed,
            #[cfg(unix)]
            watched: std::collections::BTreeMap::new(),
        };
        Self { shared: Some(Arc::new(Mutex::new(state))), ..Self::default() }
    }

    #[cfg(unix)]
    pub(crate) fn census(&self) -> Arc<SharedSnapshot> {
        Arc::clone(&self.census)
    }

    /// A handle without a guard: for tests, and for programs that cannot start themselves.
    pub fn none() -> Self {
        Self::default()
    }

    /// Starts the guard in the background, unless it is running.
    pub fn prepare(&self) {
        #[cfg(unix)]
        if let Some(shared) = &self.shared {
            prepare(shared);
        }
    }

    /// Watches the group of a process that was just started, until the returned value is dropped.
    pub fn watch_group(&self, leader: u32) -> impl Send + Sync + use<> {
        #[cfg(unix)]
        return self.watch(&Lineage::of(leader, Mark::none()));
        #[cfg(not(unix))]
        let _ = leader;
    }

    /// Watches a process group.
    #[cfg(unix)]
    pub(crate) fn watch(&self, lineage: &Lineage) -> Entry {
        let group = lineage.leader();
        self.change(&format!("+{lineage}"), |watched| {
            watched.insert(group, lineage.clone());
        });
        Entry { guard: self.clone(), group }
    }

    /// Changes the set of watched groups and sends the change to the guard. If the guard is gone,
    /// or not running yet, a new one is sent the complete set.
    #[cfg(unix)]
    fn change(
        &self,
        line: &str,
        change: impl FnOnce(&mut std::collections::BTreeMap<u32, Lineage>),
    ) {
        let Some(shared) = &self.shared else { return };
        let mut state = lock(shared);
        change(&mut state.watched);
        if let Line::Open(running) = &mut state.line {
            match running.tell(line) {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "lost the guard for server processes"),
            }
            state.line = Line::Closed;
        }
        let is_needed = !state.watched.is_empty();
        drop(state);
        if is_needed {
            prepare(shared);
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
    state.line = Line::Opening;
    let command = state.command.clone();
    drop(state);
    let opening = Opening { shared: Arc::clone(shared) };
    // Without a runtime it is started synchronously.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return open(shared, &command);
    };
    // The task ends as soon as the guard runs.
    runtime.spawn(async move {
        tokio::time::sleep(START_AFTER).await;
        let started = tokio::task::spawn_blocking(move || open(&opening.shared, &command));
        let _ = started.await;
    });
}

/// Resets the state on drop if the guard was not started, for example because the runtime shut
/// down.
#[cfg(unix)]
struct Opening {
    shared: Arc<Mutex<State>>,
}

#[cfg(unix)]
impl Drop for Opening {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        if matches!(state.line, Line::Opening) {
            state.line = Line::Closed;
        }
    }
}

/// Starts the guard and sends it all watched groups. Does nothing if there are none.
#[cfg(unix)]
fn open(shared: &Mutex<State>, command: &GuardCommand) {
    let mut state = lock(shared);
    if state.watched.is_empty() {
        state.line = Line::Closed;
        return;
    }
    drop(state);
    let started = Running::start(command);
    let mut state = lock(shared);
    let opened = started.and_then(|mut running| {
        for lineage in state.watched.values() {
            running.tell(&format!("+{lineage}"))?;
        }
        Ok(running)
    });
    match opened {
        Ok(running) => state.line = Line::Open(running),
        Err(error) => {
            state.line = Line::Closed;
            tracing::warn!(%error, "cannot start the guard for server processes");
        }
    }
}

#[cfg(unix)]
impl Drop for Entry {
    fn drop(&mut self) {
        self.guard.change(&format!("-{}", self.group), |watched| {
            watched.remove(&self.group);
        });
    }
}

/// A running guard process.
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
            // Ctrl-C in a terminal is sent to the whole foreground group, which the guard must
            // survive.
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take();
        let pipe = pipe.ok_or_else(|| std::io::Error::other("the guard has no stdin"))?;
        Ok(Self { process, pipe })
    }

    fn tell(&mut self, line: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        // In one write: a partial line would be misread.
        self.pipe.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        // Reaps a guard that has exited; one that is still cleaning up is not waited for.
        let _ = self.process.try_wait();
    }
}

/// Runs the guard: reads the groups to watch until the input closes, then kills what is left.
#[cfg(unix)]
pub fn serve(input: impl std::io::BufRead) {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Instant;

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
    let strays = || -> BTreeSet<_> {
        let processes = Processes::all();
        watched.values().flat_map(|lineage| lineage.descendants_among(&processes)).collect()
    };
    let mut found = strays();
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

/// On Windows a job object replaces the guard.
#[cfg(not(unix))]
pub fn serve(_: impl std::io::BufRead) {}

#[cfg(unix)]
fn signal(group: u32, signal: nix::sys::signal::Signal) {
    if let Some(group) = group_id(group) {
        let _ = nix::sys::signal::killpg(group, signal);
    }
}

/// Whether a process group has a running member. The operating system also counts zombies, which
/// may not be reaped for a while.
#[cfg(unix)]
pub(crate) fn group_lives(group: u32) -> bool {
    let Some(id) = group_id(group) else { return false };
    let is_known = !matches!(nix::sys::signal::killpg(id, None), Err(nix::errno::Errno::ESRCH));
    is_known && snapshot::group_runs(group).unwrap_or(true)
}

/// Never 0 or 1: those would signal our own group, or every process.
#[cfg(unix)]
fn group_id(group: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(group).ok().filter(|group| *group > 1).map(nix::unistd::Pid::from_raw)
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_guard_is_sent_every_group_also_those_added_while_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        // It only records what it receives.
        let script = format!("cat > '{}'", heard.display());
        let args = vec!["-c".to_owned(), script];
        let guard = Guard::new(GuardCommand { program: "/bin/sh".into(), args });
        guard.prepare();
        let lineage = |number: &str| number.parse::<Lineage>().unwrap();
        let (first, second) = (guard.watch(&lineage("4001")), guard.watch(&lineage("4002")));
        drop(first);
        let until = |is_there: &dyn Fn(&str) -> bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                let text = std::fs::read_to_string(&heard).unwrap_or_default();
                if is_there(&text) {
                    return text;
                }
                assert!(Instant::now() < deadline, "{text}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        until(&|text| text.contains("+4002"));
        drop(second);
        let all = until(&|text| text.contains("-4002"));
        assert_eq!(all.contains("+4001"), all.contains("-4001"), "{all}");
    }
}
