//! The fingerprints of tools that were listed or approved (B13): detects tools that change
//! afterwards. They are stored by agent, server and tool; a server is its name and its identity.
//!
//! The file is small and private, and is replaced atomically. Concurrent programs lock it for
//! changes and see each other's approvals: before a tool is reported as changed, and otherwise at
//! most once per second, the file is read again if it was modified.

mod definitions;
mod difference;
mod file;
mod fingerprint;
mod rules;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openclaw_files::Stamp;
use openclaw_tools::{Arguments, GrantRule, Pin, ToolFingerprint};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::store::identity::ServerIdentity;
use file::LoadedPins;
pub use fingerprint::fingerprint;
pub use rules::ToolRule;

/// How often the file is checked for changes by another program: new approvals, revoked ones.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerKey {
    /// The agent.
    pub agent: String,
    /// The name of the server.
    pub server: String,
    /// What runs under that name.
    pub identity: ServerIdentity,
}

/// A tool that was listed or approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Approved {
    fingerprint: ToolFingerprint,
    /// Seconds since 1970.
    since: u64,
    /// What the agent may call without asking while the tool is unchanged.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    always: BTreeSet<GrantRule>,
}

impl Approved {
    /// Approves a tool in this form. What was allowed before is kept if it applied to the same form.
    fn renewed(
        before: Option<&Self>,
        fingerprint: ToolFingerprint,
        more: Option<GrantRule>,
    ) -> Self {
        let before = before.filter(|it| it.fingerprint == fingerprint);
        let mut always = before.map(|before| before.always.clone()).unwrap_or_default();
        always.extend(more);
        Self { fingerprint, since: now(), always }
    }
}

/// By server, then by tool.
type Approvals = BTreeMap<ServerKey, BTreeMap<String, Approved>>;

/// The approved tools.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    set_aside: Option<PathBuf>,
    /// How long to wait for the lock.
    patience: Duration,
    /// Locked only briefly: every call needs it.
    known: Mutex<KnownApprovals>,
    /// Tasks that save approvals.
    saving: TaskTracker,
    /// The first error since the last check.
    unsaved: Mutex<Option<io::Error>>,
}

/// Approvals could not be saved.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", file.display())]
pub struct Unsaved {
    /// The file of approvals.
    pub file: PathBuf,
    /// The error.
    pub cause: io::Error,
}

/// The approvals as last read from the file.
#[derive(Debug, Default)]
struct KnownApprovals {
    approvals: Approvals,
    /// What is being saved; it takes precedence, and is valid immediately.
    being_saved: Approvals,
    /// Identifies the version of the file that was read.
    stamp: Option<Stamp>,
    /// When the file was last checked for another version because of a new tool.
    looked: Option<Instant>,
}

impl Pins {
    /// Reads the approvals; the file may be missing. An invalid file is renamed, which is logged;
    /// all tools are then new.
    ///
    /// # Errors
    /// If the file cannot be read or moved, or a newer version of this program wrote it.
    pub fn load(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        // Taken before reading: if the file changes meanwhile, it is read again.
        let stamp = Stamp::of(&path);
        let (approvals, set_aside) = match file::read(&path)? {
            LoadedPins::Approvals(approvals) => (approvals, None),
            LoadedPins::Nonsense => file::set_aside(&path)?,
        };
        let known = Mutex::new(KnownApprovals { approvals, stamp, ..KnownApprovals::default() });
        let unsaved = Mutex::default();
        let saving = TaskTracker::new();
        Ok(Self { path, set_aside, patience: PATIENCE, known, saving, unsaved })
    }

    /// The new path of the file if it was invalid and renamed.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Compares a tool's fingerprint with its approval, for a call with these arguments or for all
    /// calls.
    pub fn check(
        &self,
        server: &ServerKey,
        tool: &str,
        fingerprint: &ToolFingerprint,
        now: Instant,
        arguments: Option<&Arguments<'_>>,
    ) -> Pin {
        let covers = |grant: &GrantRule| match arguments {
            Some(arguments) => grant.covers(arguments),
            None => *grant == GrantRule::Tool,
        };
        let mut known = self.known();
        let pin = known.pin(server, tool, fingerprint, covers);
        let is_worth_a_look = match pin {
            Pin::Changed => true,
            // Checked in every call.
            Pin::New | Pin::Same { .. } => known
                .looked
                .is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_EVERY),
        };
        if is_worth_a_look && known.read_if_changed(&self.path, now) {
            return known.pin(server, tool, fingerprint, covers);
        }
        pin
    }

    /// Makes the next check look for changes by other programs.
    pub(crate) fn look_again(&self) {
        self.known().looked = None;
    }

    /// Approves a tool in its current form, with what may be called without asking, and saves the
    /// approval. Reads and writes a file: not for the hot path.
    ///
    /// # Errors
    /// If it cannot be saved. The tool is then not approved.
    pub fn approve(
        &self,
        server: &ServerKey,
        tool: &str,
        fingerprint: ToolFingerprint,
        always: Option<GrantRule>,
    ) -> io::Result<()> {
        self.change_if(|approvals| {
            let of_server = approvals.entry(server.clone()).or_default();
            let approved = Approved::renewed(of_server.get(tool), fingerprint, always);
            of_server.insert(tool.to_owned(), approved);
            true
        })
    }

    /// Approves a tool for one call or permanently, and saves that in the background: a disk may be
    /// slower than the call. The approval is valid immediately; if saving fails, it is revoked,
    /// which is logged and reported by [`Pins::saved`].
    pub(crate) fn keep(
        self: &Arc<Self>,
        server: &ServerKey,
        tool: &str,
        fingerprint: ToolFingerprint,
        always: Option<GrantRule>,
    ) {
        let pins = Arc::clone(self);
        let server = server.clone();
        let tool = tool.to_owned();
        let mut known = self.known();
        let approved =
            Approved::renewed(known.approved(&server, &tool), fingerprint, always.clone());
        let being_saved = known.being_saved.entry(server.clone()).or_default();
        being_saved.insert(tool.clone(), approved.clone());
        drop(known);
        self.saving.spawn_blocking(move || {
            if let Err(error) = pins.approve(&server, &tool, fingerprint, always) {
                tracing::warn!(server = %server.server, ?tool, %error, "cannot save the approval");
                pins.unsaved.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            pins.known().is_done_with(&server, &tool, &approved);
        });
    }

    /// Waits until all approvals are saved.
    ///
    /// # Errors
    /// The first error since the last call.
    pub(crate) async fn saved(&self) -> Result<(), Unsaved> {
        self.saving.close();
        self.saving.wait().await;
        let unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).take();
        unsaved.map_or(Ok(()), |cause| Err(self.not_saved(cause)))
    }

    pub(crate) fn not_saved(&self, cause: impl Into<io::Error>) -> Unsaved {
        Unsaved { file: self.path.clone(), cause: cause.into() }
    }

    /// Removes all approvals of servers with this name, of all agents. Returns whether there were
    /// any.
    ///
    /// # Errors
    /// If that cannot be saved.
    pub fn forget(&self, server: &str) -> io::Result<bool> {
        let is_meant = |key: &ServerKey| key.server == server;
        if !self.known().approvals.keys().any(is_meant) {
            return Ok(false);
        }
        self.change_if(|approvals| {
            approvals.retain(|key, _| !is_meant(key));
            true
        })?;
        Ok(true)
    }

    /// Changes the current content of the file, which another program may have modified. It is
    /// written if `change` returns true. Calls are not blocked by the disk meanwhile.
    fn change_if(&self, change: impl FnOnce(&mut Approvals) -> bool) -> io::Result<()> {
        // Held until the end: it also serializes threads of this program.
        let _turn = file::take_turn(&self.path, self.patience)?;
        let mut changed = match file::read(&self.path)? {
            LoadedPins::Approvals(in_file) => in_file,
            LoadedPins::Nonsense => self.known().approvals.clone(),
        };
        if change(&mut changed) {
            file::write(&self.path, &changed)?;
        }
        let stamp = Stamp::of(&self.path);
        let mut known = self.known();
        known.approvals = changed;
        known.stamp = stamp;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, KnownApprovals> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl KnownApprovals {
    fn approved(&self, server: &ServerKey, tool: &str) -> Option<&Approved> {
        let being_saved = self.being_saved.get(server).and_then(|tools| tools.get(tool));
        being_saved.or_else(|| self.approvals.get(server)?.get(tool))
    }

    /// Removes an approval that was saved or cannot be, unless the tool was approved again
    /// meanwhile.
    fn is_done_with(&mut self, server: &ServerKey, tool: &str, saved: &Approved) {
        let Some(tools) = self.being_saved.get_mut(server) else { return };
        if tools.get(tool) == Some(saved) {
            tools.remove(tool);
        }
        if tools.is_empty() {
            self.being_saved.remove(server);
        }
    }

    fn pin(
        &self,
        server: &ServerKey,
        tool: &str,
        fingerprint: &ToolFingerprint,
        covers: impl Fn(&GrantRule) -> bool,
    ) -> Pin {
        match self.approved(server, tool) {
            None => Pin::New,
            Some(approved) if approved.fingerprint == *fingerprint => {
                Pin::Same { for_good: approved.always.iter().any(covers) }
            }
            Some(_) => Pin::Changed,
        }
    }

    /// Reads the file if it was modified, and returns whether it did. A file that is unreadable or
    /// invalid changes nothing.
    fn read_if_changed(&mut self, path: &Path, now: Instant) -> bool {
        self.looked = Some(now);
        let stamp = Stamp::of(path);
        if stamp == self.stamp {
            return false;
        }
        self.stamp = stamp;
        match file::read(path) {
            Ok(LoadedPins::Approvals(approvals)) => {
                self.approvals = approvals;
                true
            }
            Ok(LoadedPins::Nonsense) => false,
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "cannot read the approvals again");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
