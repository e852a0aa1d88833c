//! Kills the child processes of a program that was itself killed (L5).
//!
//! A program that dies by SIGKILL cannot clean up. So it runs a small guard process, in its own
//! process group, whose stdin is a pipe that only the program holds. The program writes to that pipe
//! which process it is about to start, and then which process groups it has. When the program is
//! gone, for whatever reason, the pipe closes, and the guard kills what is left, including
//! descendants that have left their group. If the guard itself is killed, the next change starts a
//! new one, which is sent everything. Unlike `PR_SET_PDEATHSIG`, this covers whole groups, works on
//! every Unix, needs no `unsafe`, and does not depend on the thread that started a process. On
//! Windows a job object does the same.
//!
//! The guard is started before the first child: what is written to the pipe is read even if this
//! program is killed before the guard has begun to read.
//!
//! A shell waits at the pipe and becomes the guard when there is something to do: loading this
//! program once more would cost a single `openclaw mcp call` as much as the call itself.

#[cfg(unix)]
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::family::Family;
#[cfg(unix)]
use crate::lineage::{Lineage, Mark};
#[cfg(unix)]
pub use crate::serve::serve;
#[cfg(unix)]
use crate::snapshot::{SharedSnapshot, VARIABLE};

/// On Windows a job object replaces the guard.
#[cfg(not(unix))]
pub fn serve(_: &str, _: impl std::io::BufRead) {}

/// Collects the changes, and replaces itself with the guard (`$0`, with the changes as its last
/// argument) when the pipe closes while children are left, or when there are many changes. Uses
/// built-in commands only.
#[cfg(unix)]
const WAIT: &str = r#"
log= count=0
while IFS= read -r line; do
  if [ "$line" = . ]; then log= count=0; continue; fi
  log="$log$line
" count=$((count + 1))
  [ $count -lt 200 ] || exec "$0" "$@" "$log"
done
[ -z "$log" ] || exec "$0" "$@" "$log""#;
/// Tells the waiting shell that no children are left.
#[cfg(unix)]
const NONE_LEFT: &str = ".";

/// How to start the guard: this executable, with arguments that run [`serve`]. The changes so far
/// are appended as one more argument.
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
    running: Option<Running>,
    #[cfg(unix)]
    children: Children,
}

/// The children of this program.
#[cfg(unix)]
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The marks of processes that are about to be started.
    pub(crate) planned: BTreeSet<String>,
    /// The groups of those that were started.
    pub(crate) groups: BTreeMap<u32, Lineage>,
}

/// A change of the children, as it is sent to the guard.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) enum Change {
    /// A process with this mark is about to be started.
    Plan(String),
    /// It could not be started.
    Withdraw(String),
    /// It was started.
    Start(Lineage),
    /// It is gone, with all its descendants.
    End(u32),
}

#[cfg(unix)]
impl Children {
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Plan(mark) => drop(self.planned.insert(mark)),
            Change::Withdraw(mark) => drop(self.planned.remove(&mark)),
            Change::Start(lineage) => {
                self.planned.remove(lineage.mark());
                self.groups.insert(lineage.leader(), lineage);
            }
            Change::End(group) => drop(self.groups.remove(&group)),
        }
    }

    fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.groups.is_empty()
    }
}

#[cfg(unix)]
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan(mark) => write!(f, "?{mark}"),
            Self::Withdraw(mark) => write!(f, "!{mark}"),
            Self::Start(lineage) => write!(f, "+{lineage}"),
            Self::End(group) => write!(f, "-{group}"),
        }
    }
}

#[cfg(unix)]
impl std::str::FromStr for Change {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (kind, rest) = line.split_at_checked(1).ok_or(())?;
        let lineage = || rest.parse::<Lineage>().map_err(drop);
        match kind {
            "?" => Ok(Self::Plan(rest.to_owned())),
            "!" => Ok(Self::Withdraw(rest.to_owned())),
            "+" => Ok(Self::Start(lineage()?)),
            "-" => Ok(Self::End(lineage()?.leader())),
            _ => Err(()),
        }
    }
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
                    self.change(Change::Plan(value.to_owned()));
                }
                mark
            },
            guard: self.clone(),
        }
    }

    /// Changes the set of children and tells the guard. If the guard is gone, or not running yet, a
    /// new one is started and told everything.
    #[cfg(unix)]
    fn change(&self, change: Change) {
        let Some(shared) = &self.shared else { return };
        let mut state = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let State { command, running, children } = &mut *state;
        let mut line = change.to_string();
        children.apply(change);
        if children.is_empty() {
            line = format!("{line}\n{NONE_LEFT}");
        }
        if let Some(guard) = running {
            match guard.tell(&line) {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "lost the guard for child processes"),
            }
        }
        *running = None;
        if children.is_empty() {
            return;
        }
        match Running::start(command, children) {
            Ok(started) => *running = Some(started),
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
    pub fn started(self, leader: u32) -> Family {
        #[cfg(not(unix))]
        let _ = leader;
        #[cfg(unix)]
        let lineage = Lineage::of(leader, self.mark.clone());
        Family {
            #[cfg(unix)]
            _entry: {
                self.guard.change(Change::Start(lineage.clone()));
                Entry { guard: self.guard.clone(), group: leader }
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
        let shared = self.guard.shared.as_ref();
        let is_planned = shared.is_some_and(|shared| {
            let state = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            state.children.planned.contains(mark)
        });
        if is_planned {
            self.guard.change(Change::Withdraw(mark.to_owned()));
        }
    }
}

/// A registered group. Dropping it ends the registration.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Entry {
    guard: Guard,
    group: u32,
}

#[cfg(unix)]
impl Drop for Entry {
    fn drop(&mut self) {
        self.guard.change(Change::End(self.group));
    }
}

/// A running guard process.
#[cfg(unix)]
#[derive(Debug)]
struct Running {
    process: std::process::Child,
    /// Taken by tests only.
    pipe: Option<std::process::ChildStdin>,
}

#[cfg(unix)]
impl Running {
    /// Starts a guard and tells it about all children.
    fn start(command: &GuardCommand, children: &Children) -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        use std::process::{Command, Stdio};
        let spawn = |mut process: Command| {
            process
                .args(&command.args)
                .env_clear()
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // Ctrl-C in a terminal is sent to the whole foreground group, which the guard must
                // survive.
                .process_group(0)
                .spawn()
        };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WAIT]).arg(&command.program);
        // A system without a shell starts the guard at once.
        let mut process = spawn(shell).or_else(|_| spawn(Command::new(&command.program)))?;
        let pipe = process.stdin.take();
        let mut guard = Self { process, pipe };
        for mark in &children.planned {
            guard.tell(&format!("{}", Change::Plan(mark.clone())))?;
        }
        for lineage in children.groups.values() {
            guard.tell(&format!("{}", Change::Start(lineage.clone())))?;
        }
        Ok(guard)
    }

    fn tell(&mut self, line: &str) -> std::io::Result<()> {
        use std::io::Write as _;
        let no_pipe = || std::io::Error::other("the guard has no stdin");
        // In one write: a partial line would be misread.
        self.pipe.as_mut().ok_or_else(no_pipe)?.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        // Reaps a guard that has exited; one that is still cleaning up is not waited for.
        let _ = self.process.try_wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A guard that writes the changes it is started with, and those that follow, to a file.
    fn recording(folder: &std::path::Path) -> (Guard, std::path::PathBuf) {
        let file = folder.join("changes");
        let script = format!("{{ printf %s \"$1\"; cat; }} > '{}'", file.display());
        let args = vec!["-c".to_owned(), script, "sh".to_owned()];
        (Guard::new(GuardCommand { program: "/bin/sh".into(), args }), file)
    }

    /// Waits until the file has this many lines, and returns them.
    fn lines(file: &std::path::Path, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            if lines.len() >= count {
                return lines;
            }
            assert!(Instant::now() < deadline, "{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes the pipe of a guard, as the death of this program does. Returns whether the guard
    /// succeeded.
    fn close(guard: &Guard) -> bool {
        let mut running = guard.shared.iter().find_map(|it| it.lock().ok()?.running.take());
        running.as_mut().is_some_and(|running| {
            drop(running.pipe.take());
            running.process.wait().is_ok_and(|status| status.success())
        })
    }

    #[test]
    fn the_guard_gets_what_is_left_when_the_program_dies() {
        let folder = tempfile::tempdir().unwrap();
        let (guard, file) = recording(folder.path());
        let (planned, family) = (guard.plan(), guard.plan().started(4001));
        let mark = planned.variable().unwrap().1.to_owned();
        assert!(close(&guard));
        let told = lines(&file, 3);
        assert_eq!(told[0], format!("?{mark}"));
        assert!(told[1].starts_with('?') && told[2].starts_with("+4001 "), "{told:?}");
        drop((planned, family));
    }

    #[test]
    fn the_guard_is_not_started_when_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (guard, file) = recording(folder.path());
        drop(guard.plan().started(4001));
        drop(guard.plan());
        assert!(close(&guard));
        assert!(!file.exists());
    }

    #[test]
    fn after_many_changes_the_guard_itself_reads_the_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let (guard, file) = recording(folder.path());
        let families: Vec<_> = (0..150).map(|number| guard.plan().started(4000 + number)).collect();
        // Each is announced, and then registered.
        assert_eq!(lines(&file, 300).len(), 300);
        drop(families);
    }

    #[test]
    fn changes_round_trip_as_text() {
        for line in ["?ab", "!ab", "+12 345 ab", "-12"] {
            assert_eq!(line.parse::<Change>().unwrap().to_string(), line);
        }
        for line in ["", "+", "-x", "nonsense", "é"] {
            assert!(line.parse::<Change>().is_err(), "{line}");
        }
    }
}
