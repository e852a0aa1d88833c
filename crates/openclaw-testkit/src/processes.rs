//! Lists running processes, so that a test can assert that it leaves none behind.
//!
//! The lists are read from `/proc` and are empty on systems other than Linux.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Returns whether the process is running. A zombie is not.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !stat.is_zombie)
}

/// Returns whether the process has exited, but its parent has not waited for it.
pub fn is_zombie(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.is_zombie)
}

/// Returns the running processes of this process group.
pub fn in_group(pgid: u32) -> Vec<u32> {
    running(|stat| stat.group == pgid)
}

/// Returns the running processes with this text in their command line, such as the path of a
/// recording, so that a test finds servers that the program under test has started.
pub fn mentioning(text: &str) -> Vec<u32> {
    running(|stat| {
        fs::read(format!("/proc/{}/cmdline", stat.pid)).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line);
            stat.pid != std::process::id() && line.contains(text)
        })
    })
}

/// Waits until `processes` returns nothing, or until the timeout; returns the processes that are left.
///
/// ```no_run
/// use std::time::Duration;
/// use openclaw_testkit::processes;
///
/// let left = processes::wait_until_none(Duration::from_secs(5), || processes::in_group(4711));
/// assert!(left.is_empty(), "left behind: {left:?}");
/// ```
pub fn wait_until_none(time: Duration, processes: impl Fn() -> Vec<u32>) -> Vec<u32> {
    let mut left = Vec::new();
    wait_until(time, || {
        left = processes();
        left.is_empty()
    });
    left
}

/// Waits until a condition holds; returns whether it does within this time.
pub fn wait_until(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a process group when it is dropped.
#[derive(Debug)]
pub struct KillGroup(
    /// The id of the group, which is the pid of its first process.
    pub u32,
);

impl Drop for KillGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Ok(group) = i32::try_from(self.0)
            && group > 1
        {
            use nix::sys::signal::{Signal, killpg};
            let _ = killpg(nix::unistd::Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

struct Stat {
    pid: u32,
    is_zombie: bool,
    group: u32,
}

fn running(wanted: impl Fn(&Stat) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<_> = entries
        .filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
        .filter(|stat| !stat.is_zombie && wanted(stat))
        .map(|stat| stat.pid)
        .collect();
    pids.sort_unstable();
    pids
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `PID (NAME) STATE PARENT GROUP …`; the name may contain anything, so parse after its end.
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Stat { pid, is_zombie: matches!(state, "Z" | "X"), group: fields.nth(1)?.parse().ok()? })
}

/// Writes a program, by another process: a file that is open for writing here cannot be run, and a
/// process that another test starts meanwhile would keep it open for a moment.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(file: &Path, text: &str) {
    let write = r#"printf %s "$1" > "$0" && chmod 700 "$0""#;
    let written = Command::new("sh").arg("-c").arg(write).arg(file).arg(text).status();
    let is_written = written.as_ref().is_ok_and(ExitStatus::success);
    assert!(is_written, "{}: {written:?}", file.display());
}
