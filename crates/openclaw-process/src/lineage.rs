//! Finds all descendants of a child process, also outside its process group (L5).
//!
//! A process leaves its group by `setsid`, and its parent by outliving it. So descendants are found
//! in two ways: by their parents, and by an environment variable that they inherit and that
//! identifies the run of the child. A process that deliberately escapes both is not found. All of
//! this is read from `/proc`; without it, only the process group is known.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;

use crate::snapshot::{IdentifiedProcess, Processes, RunningProcess, last_number};

/// Within this time pids do not wrap around, however many are assigned.
const BRIEF: Duration = Duration::from_secs(2);

/// Up to this many candidates are read one by one.
const FEW: u32 = 32;

/// The origin of processes: their first process, and the mark that they inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lineage {
    leader: u32,
    /// The start time of the leader, to tell it from a later process with the same pid.
    born: u64,
    /// The start time by our clock, if we started it.
    started: Option<Instant>,
    mark: Mark,
}

/// The value of the variable; empty if no random bytes were available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn fresh() -> Self {
        let mut random = [0; 8];
        let filled = getrandom::fill(&mut random);
        Self(filled.map_or_else(|_| String::new(), |()| HEXLOWER.encode(&random)))
    }

    /// The value of the variable, if there is one.
    pub(crate) fn value(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|value| !value.is_empty())
    }
}

impl Lineage {
    /// The lineage of a process that was just started with this mark.
    pub(crate) fn of(leader: u32, mark: Mark) -> Self {
        let born = IdentifiedProcess::of(leader).map_or(0, |found| found.born);
        Self { leader, born, started: Some(Instant::now()), mark }
    }

    /// The lineage of a process of which only the mark is known.
    pub(crate) fn marked(mark: String) -> Self {
        Self { leader: 0, born: 0, started: None, mark: Mark(mark) }
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark.0
    }

    /// The pid of the first process, which is also the id of its group.
    pub(crate) fn leader(&self) -> u32 {
        self.leader
    }

    /// Whether the leader was started within `BRIEF`.
    fn is_recent(&self) -> bool {
        self.started.is_some_and(|started| started.elapsed() < BRIEF)
    }

    /// Returns the last pid or thread id that was assigned, if it is meaningful for this lineage:
    /// as long as it stays the same, nothing was started.
    pub(crate) fn last_number(&self) -> Option<u32> {
        last_number().filter(|last| self.is_recent() && *last >= self.leader)
    }

    /// Estimates how many processes may be descendants, given the last pid.
    pub(crate) fn possible(&self, last: Option<u32>) -> Possible {
        let is_ours = |thread| Path::new(&format!("/proc/self/task/{thread}")).exists();
        match last {
            Some(last) if last - self.leader > FEW => Possible::Many,
            // Everything started since is a thread of this process.
            Some(last) if (self.leader..=last).skip(1).all(is_ours) => Possible::None,
            Some(_) => Possible::Few,
            None => Possible::Many,
        }
    }

    /// Returns all running descendants, without the leader.
    pub(crate) fn descendants(&self) -> BTreeSet<IdentifiedProcess> {
        self.descendants_among(&Processes::read(|| self.numbers_since()))
    }

    /// Like [`descendants`](Self::descendants), from a snapshot.
    pub(crate) fn descendants_among(&self, processes: &Processes) -> BTreeSet<IdentifiedProcess> {
        let running = || processes.iter().filter(|it| !it.found.is_older_than(self.born));
        let mut members: BTreeSet<u32> = running()
            .filter(|it| self.is_leader(it) || self.is_marked(it))
            .map(|it| it.found.pid)
            .collect();
        // Each round adds the children of the members found so far.
        loop {
            let is_child = |it: &&RunningProcess| {
                let parent = processes.get(it.parent).filter(|_| members.contains(&it.parent));
                parent.is_some_and(|parent| !it.found.is_older_than(parent.found.born))
            };
            let children = running().filter(is_child).map(|it| it.found.pid);
            let children: Vec<u32> = children.filter(|pid| !members.contains(pid)).collect();
            if children.is_empty() {
                break;
            }
            members.extend(children);
        }
        let is_other = |pid: &u32| *pid != self.leader && *pid != std::process::id();
        let others = members.iter().filter(|pid| is_other(pid));
        others.filter_map(|pid| processes.get(*pid)).map(|it| it.found).collect()
    }

    /// The pids assigned since the leader's. They are assigned in order and wrap around: for a
    /// leader that was just started few candidates remain, for an older one any pid is possible.
    fn numbers_since(&self) -> RangeInclusive<u32> {
        match self.last_number() {
            Some(last) => self.leader..=last,
            None => 0..=u32::MAX,
        }
    }

    fn is_marked(&self, running: &RunningProcess) -> bool {
        self.mark.value().is_some_and(|mark| running.run.as_deref() == Some(mark))
    }

    fn is_leader(&self, running: &RunningProcess) -> bool {
        running.found == IdentifiedProcess { pid: self.leader, born: self.born }
    }
}

/// How many processes may be descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Possible {
    /// None.
    None,
    /// Few enough to read one by one.
    Few,
    /// Any running process.
    Many,
}

/// The format in which it is sent to the guard.
impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leader, born, started: _, mark } = self;
        write!(f, "{leader} {born} {}", mark.0)
    }
}

impl FromStr for Lineage {
    type Err = std::num::ParseIntError;

    /// The pid alone is enough.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_ascii_whitespace();
        let leader = words.next().unwrap_or_default().parse()?;
        let born = words.next().map_or(Ok(0), str::parse)?;
        let mark = Mark(words.next().unwrap_or_default().to_owned());
        Ok(Self { leader, born, started: None, mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_round_trips_as_text() {
        let lineage = Lineage { leader: 12, born: 345, started: None, mark: Mark("ab".to_owned()) };
        assert_eq!(lineage.to_string().parse(), Ok(lineage));
        let plain: Lineage = "12".parse().unwrap();
        assert_eq!((plain.leader(), plain.mark.value()), (12, None));
        assert!("".parse::<Lineage>().is_err() && "x 1".parse::<Lineage>().is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_process_of_the_same_number_is_not_taken_for_the_leader() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let us = Lineage::of(std::process::id(), Mark(String::new()));
        let is_child = |found: &IdentifiedProcess| found.pid == child.id();
        assert!(us.descendants().iter().any(is_child));
        let earlier = Lineage { born: us.born - 1, ..us };
        assert_eq!(earlier.descendants(), BTreeSet::new());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
