//! A child process and its descendants, also those outside its process group.

#[cfg(unix)]
use std::collections::BTreeSet;
#[cfg(unix)]
use std::sync::Arc;

#[cfg(unix)]
use nix::sys::signal::Signal;

#[cfg(unix)]
use super::GuardEntry;
#[cfg(unix)]
use crate::lineage::{Lineage, Possible};
#[cfg(unix)]
use crate::snapshot::{IdentifiedProcess, SharedSnapshot};

/// A child process and its descendants. While it exists, the guard ends them if this program is
/// killed. On Windows it is empty: processes cannot leave their job object.
#[derive(Debug)]
pub struct ProcessFamily {
    #[cfg(unix)]
    pub(crate) lineage: Lineage,
    #[cfg(unix)]
    pub(crate) census: Arc<SharedSnapshot>,
    #[cfg(unix)]
    pub(crate) _entry: GuardEntry,
}

/// Descendants, which may have left the process group.
#[derive(Debug)]
pub struct Strays {
    #[cfg(unix)]
    found: BTreeSet<IdentifiedProcess>,
    /// The last pid that was assigned before the search.
    #[cfg(unix)]
    last: Option<u32>,
}

#[cfg(unix)]
impl ProcessFamily {
    /// Finds the descendants that are running. Unless the child has just started, this reads all
    /// processes; families that end at the same time share one snapshot.
    pub async fn strays(&self) -> Strays {
        let last = self.lineage.last_number();
        let found = match self.lineage.possible(last) {
            Possible::None => BTreeSet::new(),
            Possible::Few => self.lineage.descendants(),
            Possible::Many => self.lineage.descendants_among(&*self.census.now().await),
        };
        Strays { found, last }
    }

    /// Like [`strays`](Self::strays), but blocks: for destructors.
    pub fn strays_now(&self) -> Strays {
        Strays { found: self.lineage.descendants(), last: None }
    }

    /// Adds descendants that were started since, if any process was started at all.
    pub async fn look_again(&self, strays: &mut Strays) {
        let last = self.lineage.last_number();
        if last.is_none() || last != strays.last {
            strays.found.append(&mut self.strays().await.found);
        }
    }

    /// Whether a process of the child's process group is running.
    pub fn group_lives(&self) -> bool {
        crate::serve::group_lives(self.lineage.leader())
    }
}

#[cfg(not(unix))]
impl ProcessFamily {
    /// Returns none.
    pub async fn strays(&self) -> Strays {
        Strays {}
    }

    /// Returns none.
    pub fn strays_now(&self) -> Strays {
        Strays {}
    }

    /// Adds none.
    pub async fn look_again(&self, _: &mut Strays) {}

    /// Returns `false`: the job object kills all processes at once.
    pub fn group_lives(&self) -> bool {
        false
    }
}

impl Strays {
    /// Whether one of them is running.
    pub fn live(&self) -> bool {
        #[cfg(unix)]
        return self.found.iter().any(|found| found.lives());
        #[cfg(not(unix))]
        false
    }

    /// Sends SIGTERM.
    pub fn ask_to_end(&self) {
        #[cfg(unix)]
        self.found.iter().for_each(|found| found.signal(Signal::SIGTERM));
    }

    /// Sends SIGKILL.
    pub fn kill(&self) {
        #[cfg(unix)]
        self.found.iter().for_each(|found| found.signal(Signal::SIGKILL));
    }
}
