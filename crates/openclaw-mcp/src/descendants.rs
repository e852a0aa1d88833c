//! All processes that come from a server's process, wherever they have gone (L5).
//!
//! A process leaves its group by `setsid`, and its parent by outliving it. So descendants are found in
//! two ways: by their parents, and by a variable that they inherit and that names the run of the server
//! they come from. Somebody who takes pains to lose both gets away. All of it is read from `/proc`:
//! where there is none, a group is all that is known of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that names the run of a server.
pub(crate) const VARIABLE: &str = "OPENCLAW_SERVER_RUN";

/// So long, the numbers of processes do not run out, however many are started.
const BRIEF: Duration = Duration::from_secs(2);

/// So many numbers are looked at one by one.
const FEW: u32 = 8;

/// Where a server's processes come from: its first process, and the mark that they inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lineage {
    leader: u32,
    /// When the leader began, so that another process of the same number is not taken for it.
    born: u64,
    /// The same by our clock, if we have started it.
    started: Option<Instant>,
    mark: Mark,
}

/// What the variable holds: nothing if there was no randomness to make it of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

/// One process, which no later one of the same number is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pid: u32,
    born: u64,
}

impl Mark {
    pub(crate) fn fresh() -> Self {
        let mut random = [0; 16];
        let filled = getrandom::fill(&mut random);
        Self(filled.map_or_else(|_| String::new(), |()| hex(&random)))
    }

    /// Of a process that was started without one.
    pub(crate) fn none() -> Self {
        Self(String::new())
    }

    /// The value of the variable, if there is one.
    pub(crate) fn value(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|value| !value.is_empty())
    }

    fn is_in(&self, environment: &[u8]) -> bool {
        let Some(value) = self.value() else { return false };
        let assigned = format!("{VARIABLE}={value}");
        environment.split(|byte| *byte == 0).any(|variable| variable == assigned.as_bytes())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Lineage {
    /// Of a process that has just been started with this mark.
    pub(crate) fn of(leader: u32, mark: Mark) -> Self {
        let born = stat(leader).map_or(0, |stat| stat.found.born);
        Self { leader, born, started: Some(Instant::now()), mark }
    }

    /// The number of the first process, and of its group.
    pub(crate) fn leader(&self) -> u32 {
        self.leader
    }

    /// Whether the leader has just begun: then its descendants are soon found.
    pub(crate) fn is_recent(&self) -> bool {
        self.started.is_some_and(|started| started.elapsed() < BRIEF)
    }

    /// The number that was given to a process or thread last, if the numbers tell anything of this
    /// lineage: as long as it stays the same, nothing has been started.
    pub(crate) fn last_number(&self) -> Option<u32> {
        last_number().filter(|last| self.is_recent() && *last >= self.leader)
    }

    /// Whether there may be descendants, given the last number: hardly where few numbers were given out
    /// since the leader's, and all of them to threads of this very process.
    pub(crate) fn may_have_some(&self, last: Option<u32>) -> bool {
        let is_ours = |thread| Path::new(&format!("/proc/self/task/{thread}")).exists();
        match last {
            Some(last) if last - self.leader <= FEW => !(self.leader..=last).skip(1).all(is_ours),
            _ => true,
        }
    }

    /// All descendants that run now, but for the leader itself.
    pub(crate) fn descendants(&self) -> BTreeSet<Found> {
        let running = self.running_since();
        let mut members: BTreeSet<u32> = running
            .values()
            .filter(|stat| self.is_leader(stat) || self.is_marked(stat.found.pid))
            .map(|stat| stat.found.pid)
            .collect();
        // Each round finds the children of those found before, until there are none.
        loop {
            let is_child = |stat: &&Stat| {
                let parent = running.get(&stat.parent).filter(|_| members.contains(&stat.parent));
                parent.is_some_and(|parent| parent.found.born <= stat.found.born)
            };
            let children = running.values().filter(is_child).map(|stat| stat.found.pid);
            let children: Vec<u32> = children.filter(|pid| !members.contains(pid)).collect();
            if children.is_empty() {
                break;
            }
            members.extend(children);
        }
        let is_other = |pid: &u32| *pid != self.leader && *pid != std::process::id();
        let others = members.iter().filter(|pid| is_other(pid));
        others.filter_map(|pid| running.get(pid)).map(|stat| stat.found).collect()
    }

    /// The processes that run and can come from the leader, by number; itself among them.
    fn running_since(&self) -> BTreeMap<u32, Stat> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let numbers: Vec<u32> = numbers.collect();
        // Only now: none of those that were seen has a later number.
        let possible = self.numbers_since();
        let stats = numbers.into_iter().filter(|pid| possible.contains(pid)).filter_map(stat);
        let later = stats.filter(|stat| stat.found.born >= self.born);
        later.map(|stat| (stat.found.pid, stat)).collect()
    }

    /// The numbers that were given out since the leader got its own. They are given out in order and
    /// begin anew when they have run out: of a leader that has just begun, few are left to look at, of
    /// hundreds; any later one may have any number.
    fn numbers_since(&self) -> RangeInclusive<u32> {
        match self.last_number() {
            Some(last) => self.leader..=last,
            None => 0..=u32::MAX,
        }
    }

    fn is_leader(&self, stat: &Stat) -> bool {
        stat.found == Found { pid: self.leader, born: self.born }
    }

    fn is_marked(&self, pid: u32) -> bool {
        let environment = std::fs::read(format!("/proc/{pid}/environ"));
        environment.is_ok_and(|environment| self.mark.is_in(&environment))
    }
}

/// As a guard is told of it.
impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leader, born, started: _, mark } = self;
        write!(f, "{leader} {born} {}", mark.0)
    }
}

impl FromStr for Lineage {
    type Err = std::num::ParseIntError;

    /// The number alone will do.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_ascii_whitespace();
        let leader = words.next().unwrap_or_default().parse()?;
        let born = words.next().map_or(Ok(0), str::parse)?;
        let mark = Mark(words.next().unwrap_or_default().to_owned());
        Ok(Self { leader, born, started: None, mark })
    }
}

impl Found {
    /// Whether it still runs.
    pub(crate) fn lives(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.found == self)
    }

    pub(crate) fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 1);
        if let Some(pid) = pid.filter(|_| self.lives()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// What must be known of a process.
struct Stat {
    found: Found,
    parent: u32,
}

/// The number that was given out last.
fn last_number() -> Option<u32> {
    let line = read_short("/proc/loadavg")?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Reads a file of one line in one go.
fn read_short(path: &str) -> Option<String> {
    let mut line = [0; 1024];
    let length = File::open(path).and_then(|mut file| file.read(&mut line)).ok()?;
    // The name of a process may hold anything.
    Some(String::from_utf8_lossy(&line[..length]).into_owned())
}

/// A process that runs: one that has ended and was not waited for yet does not.
fn stat(pid: u32) -> Option<Stat> {
    let line = read_short(&format!("/proc/{pid}/stat"))?;
    // `PID (NAME) STATE PARENT …`, the 22nd is when it began; the name may hold anything, so look
    // from its end.
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_over = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let born = fields.nth(17)?.parse().ok()?;
    (!is_over).then_some(Stat { found: Found { pid, born }, parent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_is_told_and_understood() {
        let lineage = Lineage { leader: 12, born: 345, started: None, mark: Mark("ab".to_owned()) };
        assert_eq!(lineage.to_string().parse(), Ok(lineage));
        let plain: Lineage = "12".parse().unwrap();
        assert_eq!((plain.leader(), plain.mark.value()), (12, None));
        assert!("".parse::<Lineage>().is_err() && "x 1".parse::<Lineage>().is_err());
    }

    #[test]
    fn a_mark_is_a_whole_variable_and_none_marks_nothing() {
        let mark = Mark("ab".to_owned());
        assert!(mark.is_in(b"A=1\0OPENCLAW_SERVER_RUN=ab\0"));
        assert!(!mark.is_in(b"OPENCLAW_SERVER_RUN=abc\0X_OPENCLAW_SERVER_RUN=ab"));
        assert!(!Mark(String::new()).is_in(b"OPENCLAW_SERVER_RUN=\0"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_process_of_the_same_number_is_not_taken_for_the_leader() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let us = Lineage::of(std::process::id(), Mark(String::new()));
        let is_child = |found: &Found| found.pid == child.id();
        assert!(us.descendants().iter().any(is_child));
        let earlier = Lineage { born: us.born - 1, ..us };
        assert_eq!(earlier.descendants(), BTreeSet::new());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
