//! Kills the servers of a program that was itself killed, and whatever else it has started (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it keeps a tiny process beside itself, in a
//! group of its own, whose input is a pipe that only the program holds. While it lives, it writes
//! down there which process groups are its own; when it is gone, however it went, the pipe closes,
//! and the guard ends what is left, also of descendants that have left their group. A guard that is
//! itself killed gets a successor, which is told of all groups, when the next is told of. Unlike
//! `PR_SET_PDEATHSIG` this reaches whole groups, works on every Unix, needs no `unsafe`, and does not
//! depend on which thread started a process. On Windows a job object does the same.
//!
//! Starting it takes as long as starting a server, which is long for a program that makes one call and
//! ends. So it starts beside the server, a moment later, and only if there is still something to watch; it
//! is told of what there is by then. Until it runs, a server whose program is killed sees its input close,
//! and no more.

use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use crate::process::descendants::{Lineage, Mark};
#[cfg(unix)]
use crate::process::snapshot::{self, Processes, SharedSnapshot};

/// What is over sooner needs no guard.
#[cfg(unix)]
const START_AFTER: Duration = Duration::from_millis(30);

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
    /// Who looks for what has left its group, as long as this program lives.
    #[cfg(unix)]
    census: Arc<SharedSnapshot>,
}

#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
struct State {
    command: GuardCommand,
    #[cfg(unix)]
    line: Line,
    /// What it is to watch.
    #[cfg(unix)]
    watched: std::collections::BTreeMap<u32, Lineage>,
}

/// The way to tell the guard something.
#[cfg(unix)]
#[derive(Debug, Default)]
enum Line {
    /// It does not run.
    #[default]
    Closed,
    /// It is being started, and will be told of all that is watched by then.
    Opening,
    /// It runs.
    Open(Running),
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

    /// Has the group of a process that was just started watched, until what is returned is dropped.
    pub fn watch_group(&self, leader: u32) -> impl Send + Sync + use<> {
        #[cfg(unix)]
        return self.watch(&Lineage::of(leader, Mark::none()));
        #[cfg(not(unix))]
        let _ = leader;
    }

    /// Has a process group watched.
    #[cfg(unix)]
    pub(crate) fn watch(&self, lineage: &Lineage) -> Entry {
        let group = lineage.leader();
        self.change(&format!("+{lineage}"), |watched| {
            watched.insert(group, lineage.clone());
        });
        Entry { guard: self.clone(), group }
    }

    /// Changes what is watched, and tells the guard. Should it be gone, or not be there yet, a new one is
    /// told of all that is watched by then.
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
                Err(error) => tracing::warn!(%error, "the guard for server processes is gone"),
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
    // Without a runtime there is nobody to wait for the moment.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return open(shared, &command);
    };
    // It ends by itself, as soon as the guard runs.
    runtime.spawn(async move {
        tokio::time::sleep(START_AFTER).await;
        let started = tokio::task::spawn_blocking(move || open(&opening.shared, &command));
        let _ = started.await;
    });
}

/// A guard that is being started, until this is dropped: a runtime that ends first starts none.
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

/// Starts the guard, and tells it of all that is watched. If nothing is, it is not needed.
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
            tracing::warn!(%error, "no guard for server processes");
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

/// A job object needs no guard.
#[cfg(not(unix))]
pub fn serve(_: impl std::io::BufRead) {}

#[cfg(unix)]
fn signal(group: u32, signal: nix::sys::signal::Signal) {
    if let Some(group) = group_id(group) {
        let _ = nix::sys::signal::killpg(group, signal);
    }
}

/// Whether a process group has a member left that runs. Those that have ended, and that nobody has waited
/// for, count for the system, which may take its time.
#[cfg(unix)]
pub(crate) fn group_lives(group: u32) -> bool {
    let Some(id) = group_id(group) else { return false };
    let is_known = !matches!(nix::sys::signal::killpg(id, None), Err(nix::errno::Errno::ESRCH));
    is_known && snapshot::group_runs(group).unwrap_or(true)
}

/// Never 0 or 1: those would be our own group, and everybody.
#[cfg(unix)]
fn group_id(group: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(group).ok().filter(|group| *group > 1).map(nix::unistd::Pid::from_raw)
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_guard_hears_of_every_group_also_of_those_that_came_while_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        // It only writes down what it hears.
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
