//! A snapshot of the running processes from `/proc`, shared by concurrent callers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::Mutex;

/// The environment variable that identifies the run of a child process. All its descendants inherit it.
pub(crate) const VARIABLE: &str = "OPENCLAW_PROCESS_RUN";

/// How often, and at which interval, the environment of a process is read again during `exec`.
const EXEC_TRIES: u32 = 100;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// The tolerated clock skew between two CPUs, in hundredths of a second: on some virtual machines a
/// child seems to start before its parent.
const CLOCK_SKEW: u64 = 100;

/// A process, distinguished from later ones with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdentifiedProcess {
    pub(crate) pid: u32,
    /// Its start time, in clock ticks since boot.
    pub(crate) born: u64,
}

impl IdentifiedProcess {
    /// Returns the running process with this pid.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| stat.found)
    }

    /// Whether it was certainly started before that time.
    pub(crate) fn is_older_than(self, born: u64) -> bool {
        self.born + CLOCK_SKEW < born
    }

    /// Whether it is still running.
    pub(crate) fn lives(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    pub(crate) fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 1);
        if let Some(pid) = pid.filter(|_| self.lives()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// A running process.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    pub(crate) found: IdentifiedProcess,
    pub(crate) parent: u32,
    /// The run that it comes from, if the variable is set and readable.
    pub(crate) run: Option<String>,
}

/// Running processes by pid: all of them, or those that were requested.
#[derive(Debug, Default)]
pub(crate) struct Processes(BTreeMap<u32, RunningProcess>);

impl Processes {
    /// Reads the processes with possible pids. `possible` is called after the pids were listed: a
    /// process that was started later is not among them.
    pub(crate) fn read(possible: impl FnOnce() -> RangeInclusive<u32>) -> Self {
        let numbers = numbers().unwrap_or_default();
        let possible = possible();
        let running = numbers.into_iter().filter(|pid| possible.contains(pid)).filter_map(|pid| {
            let Stat { found, parent, .. } = stat(pid)?;
            Some((pid, RunningProcess { found, parent, run: run_in(&environment(pid)) }))
        });
        Self(running.collect())
    }

    /// Reads all processes.
    pub(crate) fn all() -> Self {
        Self::read(|| 0..=u32::MAX)
    }

    pub(crate) fn get(&self, pid: u32) -> Option<&RunningProcess> {
        self.0.get(&pid)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RunningProcess> {
        self.0.values()
    }
}

/// Takes snapshots for concurrent callers. Snapshots are numbered instead of timestamped, because a
/// clock may not advance for milliseconds.
#[derive(Debug, Default)]
pub(crate) struct SharedSnapshot {
    begun: AtomicU64,
    last: Mutex<Option<Look>>,
}

#[derive(Debug)]
struct Look {
    number: u64,
    processes: Arc<Processes>,
}

impl SharedSnapshot {
    /// Returns a snapshot that was begun after this call. Callers that wait while another one is
    /// taken share the next one.
    pub(crate) async fn now(&self) -> Arc<Processes> {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some(look) = last.as_ref().filter(|look| look.number > before) {
            return Arc::clone(&look.processes);
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        // Slow, so not on a thread of the runtime.
        let processes = tokio::task::spawn_blocking(Processes::all).await;
        let processes = Arc::new(processes.unwrap_or_default());
        *last = Some(Look { number, processes: Arc::clone(&processes) });
        processes
    }
}

/// Whether a process of this group is running; `None` if there is no `/proc`.
pub(crate) fn group_runs(group: u32) -> Option<bool> {
    Some(numbers()?.into_iter().filter_map(stat).any(|stat| stat.group == group))
}

/// The pids of all processes; `None` if there is no `/proc`.
fn numbers() -> Option<Vec<u32>> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Some(numbers.collect())
}

/// The environment of a process; empty if it has none, or if this user may not read it. During
/// `exec` it is incomplete for a moment, so it is read again until it is complete.
fn environment(pid: u32) -> Vec<u8> {
    let mut is_whole_and_empty = false;
    for _ in 0..EXEC_TRIES {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { break };
        let Some(place) = environment_place(pid) else { break };
        let is_whole = place.end > 0 && place.len() == environment.len();
        // `exec` sets the end to the start before it sets the final value, so empty must be seen
        // twice.
        if is_whole && (!place.is_empty() || is_whole_and_empty) {
            return environment;
        }
        is_whole_and_empty = is_whole;
        sleep(EXEC_PAUSE);
    }
    Vec::new()
}

/// The address range of the environment of a process, all zero while `exec` has not set it. `None`
/// for kernel threads and zombies, which have no memory.
fn environment_place(pid: u32) -> Option<Range<usize>> {
    let line = read_short(&format!("/proc/{pid}/stat"))?;
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    // Field 23 is the size of its memory, fields 50 and 51 are the range of its environment.
    let memory: u64 = fields.nth(20)?.parse().ok()?;
    let start = fields.nth(26)?.parse().ok()?;
    let end = fields.next()?.parse().ok()?;
    (memory > 0).then_some(start..end)
}

/// The value of our variable among NUL-separated `NAME=VALUE` pairs; `None` if it is empty.
fn run_in(environment: &[u8]) -> Option<String> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value =
        variables.find_map(|it| it.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned()).filter(|value| !value.is_empty())
}

/// The last pid that was assigned, to a process or a thread.
pub(crate) fn last_number() -> Option<u32> {
    let line = read_short("/proc/loadavg")?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

struct Stat {
    found: IdentifiedProcess,
    parent: u32,
    group: u32,
}

/// Reads a running process; `None` for a zombie.
fn stat(pid: u32) -> Option<Stat> {
    let line = read_short(&format!("/proc/{pid}/stat"))?;
    // `PID (NAME) STATE PARENT GROUP …`, field 22 is the start time. The name may contain anything,
    // so parse from its end.
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_over = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let born = fields.nth(16)?.parse().ok()?;
    (!is_over).then_some(Stat { found: IdentifiedProcess { pid, born }, parent, group })
}

/// Reads a one-line file in a single read.
fn read_short(path: &str) -> Option<String> {
    let mut line = [0; 1024];
    let length = File::open(path).and_then(|mut file| file.read(&mut line)).ok()?;
    // The name of a process need not be UTF-8.
    Some(String::from_utf8_lossy(&line[..length]).into_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_snapshot_is_shared_by_waiting_callers_and_not_by_later_ones() {
        let census = SharedSnapshot::default();
        // A snapshot has begun when the callers ask, and ends while they wait.
        let mut looking = census.last.lock().await;
        let number = census.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let before = Arc::new(Processes::default());
        let look = Look { number, processes: Arc::clone(&before) };
        let end = async move { *looking = Some(look) };
        let (first, second, ()) = tokio::join!(census.now(), census.now(), end);
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &before));
        assert!(!Arc::ptr_eq(&second, &census.now().await));
        assert!(first.get(std::process::id()).unwrap().found.lives());
    }

    #[test]
    fn a_group_with_only_zombies_is_not_running() {
        use std::os::unix::process::CommandExt as _;
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        assert_eq!(group_runs(child.id()), Some(true));
        drop(child.stdin.take());
        let stat = format!("/proc/{}/stat", child.id());
        let has_ended = || std::fs::read_to_string(&stat).unwrap().contains(") Z ");
        let ended = (0..60_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            has_ended()
        });
        assert!(ended, "`cat` exits when its stdin closes");
        assert_eq!(group_runs(child.id()), Some(false));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_recognized_by_its_run_also_during_exec() {
        for run in 0..200 {
            let run = format!("run-{run}");
            let mut child = std::process::Command::new("sh")
                .args(["-c", "sleep 1000 & echo $!; wait"])
                .env(VARIABLE, &run)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let output = child.stdout.take().unwrap();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
            // The shell printed the pid of a process that is about to become `sleep`.
            let pid: u32 = line.trim().parse().unwrap();
            let found = (0..10).map(|_| run_in(&environment(pid))).collect::<Vec<_>>();
            IdentifiedProcess::of(pid).unwrap().signal(Signal::SIGKILL);
            child.wait().unwrap();
            assert!(found.iter().all(|it| it.as_ref() == Some(&run)), "{found:?}");
        }
    }

    #[test]
    fn a_process_without_an_environment_has_an_empty_one() {
        let mut child = std::process::Command::new("/bin/cat")
            .env_clear()
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(environment(child.id()), Vec::<u8>::new());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(environment_place(child.id()), None);
    }

    #[test]
    fn a_child_that_seems_to_start_slightly_before_its_parent_is_not_older() {
        let child = IdentifiedProcess { pid: 7, born: 1_000 };
        assert!(!child.is_older_than(1_000) && !child.is_older_than(1_005));
        assert!(child.is_older_than(2_000));
    }

    #[test]
    fn the_variable_must_match_exactly_and_not_be_empty() {
        assert_eq!(run_in(b"A=1\0OPENCLAW_PROCESS_RUN=ab\0").unwrap(), "ab");
        assert_eq!(run_in(b"OPENCLAW_PROCESS_RUNS=ab\0X_OPENCLAW_PROCESS_RUN=ab"), None);
        assert_eq!(run_in(b"OPENCLAW_PROCESS_RUN=\0"), None);
    }
}
