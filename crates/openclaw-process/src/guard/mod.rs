//! Kills the child processes of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it runs a small guard process, in its own
//! process group, whose stdin is a pipe that only the program holds, and a record that both hold: a
//! file without a name. The program writes to the record which process it is about to start, and then
//! which process groups it has. When the program is gone, for whatever reason, the pipe closes, and
//! the guard kills what is left, including descendants that have left their group. If the guard
//! itself is killed, the next change starts a new one, with a record of everything. Unlike
//! `PR_SET_PDEATHSIG`, this covers whole groups, works on every Unix, needs no `unsafe`, and does not
//! depend on the thread that started a process. On Windows a job object does the same.
//!
//! The guard is started before the first child, and reads the record only at the end: a change wakes
//! no process, so it costs a write to memory.
//!
//! A shell waits at the pipe and becomes the guard when there is something to do: loading this
//! program once more would cost a single `openclaw mcp call` as much as the call itself.

mod family;
#[cfg(unix)]
mod process;

use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::sync::{MutexGuard, PoisonError};

#[cfg(unix)]
use crate::children::{ChildChange, Children};
#[cfg(unix)]
use crate::lineage::{Lineage, Mark};
#[cfg(unix)]
pub use crate::serve::{run, serve};
#[cfg(unix)]
use crate::snapshot::{SharedSnapshot, VARIABLE};
pub use family::{ProcessFamily, Strays};
#[cfg(unix)]
use process::GuardProcess;

/// On Windows a job object replaces the guard.
#[cfg(not(unix))]
pub fn run() {}

/// How to start the guard: this executable, with arguments that make it call [`run`].
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
    /// The guard process, unless it is not needed yet or was lost.
    #[cfg(unix)]
    running: Option<GuardProcess>,
    #[cfg(unix)]
    children: Children,
}

impl Guard {
    /// Creates a handle to a guard that is started with this command.
    pub fn new(command: GuardCommand) -> Self {
        let state = State {
            command,
            #[cfg(unix)]
            running: None,
            #[cfg(unix)]
            children: Children::default(),
        };
        Self { shared: Some(Arc::new(Mutex::new(state))), ..Self::default() }
    }

    /// A handle without a guard: for tests, and for programs that cannot start themselves.
    pub fn none() -> Self {
        Self::default()
    }

    /// Announces a process that is about to be started. Starts the guard if it is not running.
    pub fn plan(&self) -> Planned {
        Planned {
            #[cfg(unix)]
            mark: {
                let mark = Mark::fresh();
                if let Some(value) = mark.value() {
                    self.change(ChildChange::Plan(value.to_owned()));
                }
                mark
            },
            guard: self.clone(),
        }
    }

    /// The id of the guard process, if it is running.
    pub fn process_id(&self) -> Option<u32> {
        #[cfg(unix)]
        return self.lock()?.running.as_ref().map(GuardProcess::id);
        #[cfg(not(unix))]
        None
    }

    /// Runs the guard now, as the end of this program would, and waits until it is done: for tests.
    /// Returns whether it succeeded.
    pub fn run_now(&self) -> bool {
        #[cfg(unix)]
        return self
            .lock()
            .and_then(|mut state| state.running.take())
            .is_some_and(GuardProcess::close);
        #[cfg(not(unix))]
        false
    }

    #[cfg(unix)]
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        Some(self.shared.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the set of children and its record. If the guard is gone, or not running yet, a new
    /// one is started with a record of everything.
    #[cfg(unix)]
    fn change(&self, change: ChildChange) {
        let Some(mut state) = self.lock() else { return };
        let State { command, running, children } = &mut *state;
        let line = change.to_string();
        children.apply(change);
        if let Some(guard) = running {
            let changed = if children.is_empty() { guard.clear() } else { guard.add(&line) };
            match changed {
                Ok(()) if !guard.is_long() => return,
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "lost the guard for child processes"),
            }
        }
        if children.is_empty() {
            return;
        }
        match GuardProcess::start(command, children) {
            // The old one ends only now: at any moment, one of them knows all children.
            Ok(started) => drop(running.replace(started).map(GuardProcess::retire)),
            Err(error) => tracing::warn!(%error, "cannot start the guard for child processes"),
        }
    }
}

/// A process that is about to be started. Dropping it means that it was not started after all.
#[derive(Debug)]
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object needs no guard"))]
pub struct Planned {
    guard: Guard,
    #[cfg(unix)]
    mark: Mark,
}

impl Planned {
    /// The environment variable that the process has to be started with: it identifies its
    /// descendants. `None` if they can only be found by their parents.
    pub fn variable(&self) -> Option<(&'static str, &str)> {
        #[cfg(unix)]
        return self.mark.value().map(|value| (VARIABLE, value));
        #[cfg(not(unix))]
        None
    }

    /// Registers the process that was just started, as the leader of its process group.
    pub fn started(self, leader: u32) -> ProcessFamily {
        #[cfg(not(unix))]
        let _ = leader;
        #[cfg(unix)]
        let lineage = Lineage::of(leader, self.mark.clone());
        ProcessFamily {
            #[cfg(unix)]
            _entry: {
                self.guard.change(ChildChange::Start(lineage.clone()));
                GuardEntry { guard: self.guard.clone(), group: leader }
            },
            #[cfg(unix)]
            lineage,
            #[cfg(unix)]
            census: Arc::clone(&self.guard.census),
        }
    }
}

#[cfg(unix)]
impl Drop for Planned {
    fn drop(&mut self) {
        let Some(mark) = self.mark.value() else { return };
        let is_planned =
            self.guard.lock().is_some_and(|state| state.children.planned.contains(mark));
        if is_planned {
            self.guard.change(ChildChange::Withdraw(mark.to_owned()));
        }
    }
}

/// A registered group. Dropping it ends the registration.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct GuardEntry {
    guard: Guard,
    group: u32,
}

#[cfg(unix)]
impl Drop for GuardEntry {
    fn drop(&mut self) {
        self.guard.change(ChildChange::End(self.group));
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// The id of a process that no system has: Linux has at most 2^22.
    const ABSENT: u32 = 5_000_001;

    /// The argument of a guard that names the file to copy its record to.
    const COPY_TO: &str = "copy-to=";

    /// A guard that copies its record to a file, which is in the folder. It is this program: the position
    /// of the record must be set, which shells cannot do.
    fn recording() -> (Guard, PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changes");
        let copy = "guard::tests::a_record_is_copied_by_the_guard_of_a_test".to_owned();
        let args = vec!["--exact".to_owned(), copy, format!("{COPY_TO}{}", file.display())];
        let program = std::env::current_exe().unwrap();
        (Guard::new(GuardCommand { program, args }), file, folder)
    }

    /// Does nothing, unless it is run by a guard.
    #[test]
    fn a_record_is_copied_by_the_guard_of_a_test() {
        use std::io::{Read as _, Seek as _};
        use std::os::fd::AsFd as _;
        let named = std::env::args().find_map(|it| it.strip_prefix(COPY_TO).map(PathBuf::from));
        let Some(file) = named else { return };
        let mut record =
            std::fs::File::from(std::io::stdout().as_fd().try_clone_to_owned().unwrap());
        let mut text = String::new();
        record.rewind().unwrap();
        record.read_to_string(&mut text).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// The lines of a copied record, without those of the program that copied it.
    fn lines(file: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(file).unwrap();
        let is_change = |line: &&str| line.starts_with(['?', '!', '+', '-']);
        text.lines().filter(is_change).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_guard_gets_what_is_left_when_the_program_dies() {
        let (guard, file, _folder) = recording();
        let (planned, family) = (guard.plan(), guard.plan().started(ABSENT));
        let mark = planned.variable().unwrap().1.to_owned();
        assert!(guard.run_now());
        let told = lines(&file);
        assert_eq!(told[0], format!("?{mark}"));
        assert!(
            told[1].starts_with('?') && told[2].starts_with(&format!("+{ABSENT} ")),
            "{told:?}"
        );
        assert_eq!(told.len(), 3);
        drop((planned, family));
    }

    #[test]
    fn the_guard_is_not_started_when_nothing_is_left() {
        let (guard, file, _folder) = recording();
        drop(guard.plan().started(ABSENT));
        drop(guard.plan());
        assert!(guard.run_now());
        assert!(!file.exists());
    }

    #[test]
    fn a_long_record_is_replaced_by_one_of_the_children_that_are_left() {
        let (guard, file, _folder) = recording();
        let family = guard.plan().started(ABSENT);
        let first = guard.process_id().unwrap();
        let is_first = || guard.process_id() == Some(first);
        let changes = (0..100_000).take_while(|_| {
            drop(guard.plan());
            is_first()
        });
        assert!(changes.count() > 1_000 && !is_first());
        // The first one was left with nothing, and has not run.
        assert!(!file.exists());
        assert!(guard.run_now());
        let told = lines(&file);
        assert!(told[0].starts_with(&format!("+{ABSENT} ")) && told.len() < 100, "{told:?}");
        drop(family);
    }

    #[test]
    fn a_guard_that_was_killed_is_replaced() {
        let (guard, file, _folder) = recording();
        let first = guard.plan().started(ABSENT);
        let killed = guard.process_id().unwrap();
        let pid = nix::unistd::Pid::from_raw(killed.try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        let mut second = None;
        // The signal takes a moment.
        while guard.process_id() == Some(killed) {
            // First, because it ends the registration of the same group.
            drop(second.take());
            second = Some(guard.plan().started(ABSENT + 1));
        }
        assert!(guard.run_now());
        let told = lines(&file);
        assert!(told.iter().any(|line| line.starts_with(&format!("+{ABSENT} "))), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with(&format!("+{} ", ABSENT + 1))), "{told:?}");
        drop((first, second));
    }
}
