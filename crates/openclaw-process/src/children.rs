//! The children of this program, and their changes, as the guard reads them.

use std::collections::{BTreeMap, BTreeSet};

use crate::lineage::Lineage;

/// The children of this program.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The marks of processes that are about to be started.
    pub(crate) planned: BTreeSet<String>,
    /// The groups of those that were started.
    pub(crate) groups: BTreeMap<u32, Lineage>,
}

/// A change of the children, as it stands in the record for the guard: one line each.
#[derive(Debug)]
pub(crate) enum ChildChange {
    /// A process with this mark is about to be started.
    Plan(String),
    /// It could not be started.
    Withdraw(String),
    /// It was started.
    Start(Lineage),
    /// It is gone, with all its descendants.
    End(u32),
}

impl Children {
    /// Reads a record. A last line without its end is ignored: the program was killed while it wrote
    /// it, and part of a process id is another process id.
    pub(crate) fn of_record(record: &str) -> Self {
        let mut children = Self::default();
        let whole = record.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let changes = whole.lines().filter_map(|line| line.parse::<ChildChange>().ok());
        changes.for_each(|change| children.apply(change));
        children
    }

    /// Returns a record of all of them.
    pub(crate) fn record(&self) -> String {
        let planned = self.planned.iter().map(|mark| ChildChange::Plan(mark.clone()));
        let started = self.groups.values().map(|lineage| ChildChange::Start(lineage.clone()));
        planned.chain(started).map(|change| format!("{change}\n")).collect()
    }

    pub(crate) fn apply(&mut self, change: ChildChange) {
        match change {
            ChildChange::Plan(mark) => drop(self.planned.insert(mark)),
            ChildChange::Withdraw(mark) => drop(self.planned.remove(&mark)),
            ChildChange::Start(lineage) => {
                self.planned.remove(lineage.mark());
                self.groups.insert(lineage.leader(), lineage);
            }
            ChildChange::End(group) => drop(self.groups.remove(&group)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.planned.is_empty() && self.groups.is_empty()
    }
}

impl std::fmt::Display for ChildChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plan(mark) => write!(f, "?{mark}"),
            Self::Withdraw(mark) => write!(f, "!{mark}"),
            Self::Start(lineage) => write!(f, "+{lineage}"),
            Self::End(group) => write!(f, "-{group}"),
        }
    }
}

impl std::str::FromStr for ChildChange {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_round_trip_as_text() {
        for line in ["?ab", "!ab", "+12 345 ab", "-12"] {
            assert_eq!(line.parse::<ChildChange>().unwrap().to_string(), line);
        }
        for line in ["", "+", "-x", "nonsense", "é"] {
            assert!(line.parse::<ChildChange>().is_err(), "{line}");
        }
    }

    #[test]
    fn a_record_is_read_up_to_its_last_whole_line() {
        let record = "?ab\n+12 345 ab\nnonsense\n?cd\n+16 345 cd\n-12\n?ef\n+1";
        let children = Children::of_record(record);
        assert_eq!(children.record(), "?ef\n+16 345 cd\n");
        assert!(Children::of_record("+1").is_empty());
    }
}
