//! The approved tools with their fingerprints (B13): detects tools that change after their
//! approval.
//!
//! The file is small and private, and is replaced atomically. Concurrent programs lock it for
//! changes and see each other's approvals: before a tool is reported as changed, the file is read
//! again if it was modified. A tool that matches its approval costs no file access.

mod file;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openclaw_tools::{Approval, Fingerprint, Pin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::inventory::listing::ListedTool;
use file::{Found, Stamp};

/// How often the file is checked for approvals of new tools by another program.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Hashes the title, description, schema and hints of a tool. The order of keys in the schema does
/// not matter.
pub fn fingerprint(tool: &ListedTool) -> Fingerprint {
    let mut hash = Sha256::new();
    for text in [tool.title.as_deref(), tool.description.as_deref()] {
        // Prefixed with its length, so that the boundary between texts is unambiguous.
        hash.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        hash.update(text.unwrap_or_default());
    }
    for hint in [tool.hints.read_only_hint, tool.hints.destructive_hint] {
        hash.update([hint.map_or(2, u8::from)]);
    }
    write_object(&mut hash, tool.input_schema.iter());
    Fingerprint::new(hash.finalize().into())
}

/// Hashes members sorted by key. Recursion is bounded: listing has limited the nesting.
fn write_object<'a>(hash: &mut Sha256, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    hash.update([b'{']);
    hash.update((members.len() as u64).to_be_bytes());
    for (key, value) in members {
        write_text(hash, b'k', key);
        write_value(hash, value);
    }
}

fn write_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update([b'n']),
        Value::Bool(value) => hash.update([b'b', u8::from(*value)]),
        Value::Number(number) => write_text(hash, b'd', &number.to_string()),
        Value::String(text) => write_text(hash, b's', text),
        Value::Array(items) => {
            hash.update([b'[']);
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| write_value(hash, item));
        }
        Value::Object(members) => write_object(hash, members.iter()),
    }
}

fn write_text(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

/// An approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Approved {
    fingerprint: Fingerprint,
    /// Seconds since 1970.
    since: u64,
    /// Whether an agent may call it without asking while it is unchanged.
    #[serde(default)]
    for_good: bool,
}

/// By server, then by tool.
type Approvals = BTreeMap<String, BTreeMap<String, Approved>>;

/// The approved tools.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    set_aside: Option<PathBuf>,
    /// How long to wait for the lock.
    patience: Duration,
    /// Locked only briefly: every call needs it.
    known: Mutex<NegotiatedProtocol>,
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
struct NegotiatedProtocol {
    approvals: Approvals,
    /// Approvals that are being saved; they take precedence, and are valid immediately.
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
            Found::Approvals(approvals) => (approvals, None),
            Found::Nonsense => file::set_aside(&path)?,
        };
        let known =
            Mutex::new(NegotiatedProtocol { approvals, stamp, ..NegotiatedProtocol::default() });
        let unsaved = Mutex::default();
        let saving = TaskTracker::new();
        Ok(Self { path, set_aside, patience: PATIENCE, known, saving, unsaved })
    }

    /// The new path of the file if it was invalid and renamed.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Compares a tool's fingerprint with its approval.
    pub fn check(&self, server: &str, tool: &str, fingerprint: &Fingerprint, now: Instant) -> Pin {
        let mut known = self.known();
        let pin = known.pin(server, tool, fingerprint);
        let is_worth_a_look = match pin {
            Pin::Same { .. } => false,
            Pin::Changed => true,
            // Most tools are never approved, and are called often.
            Pin::New => known
                .looked
                .is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_EVERY),
        };
        if is_worth_a_look && known.read_if_changed(&self.path, now) {
            return known.pin(server, tool, fingerprint);
        }
        pin
    }

    /// Approves a tool in its current form and saves the approval. Reads and writes a file: not for
    /// the hot path.
    ///
    /// # Errors
    /// If it cannot be saved. The tool is then not approved.
    pub fn approve(&self, server: &str, tool: &str, fingerprint: Fingerprint) -> io::Result<()> {
        self.approve_all(server, [(tool, fingerprint)])
    }

    /// Like [`approve`](Self::approve), but also lets agents call the tool without asking.
    ///
    /// # Errors
    /// If it cannot be saved. The tool is then not approved.
    pub fn set_free(&self, server: &str, tool: &str, fingerprint: Fingerprint) -> io::Result<()> {
        let approved = Approved { fingerprint, since: now(), for_good: true };
        self.change(|approvals| {
            approvals.entry(server.to_owned()).or_default().insert(tool.to_owned(), approved);
        })
    }

    /// Approves several tools of a server with a single write.
    ///
    /// # Errors
    /// If it cannot be saved. No tool is then approved.
    pub fn approve_all<'a>(
        &self,
        server: &str,
        tools: impl IntoIterator<Item = (&'a str, Fingerprint)>,
    ) -> io::Result<()> {
        let since = now();
        self.change(|approvals| {
            let of_server = approvals.entry(server.to_owned()).or_default();
            for (tool, fingerprint) in tools {
                let before = of_server.get(tool).filter(|it| it.fingerprint == fingerprint);
                let for_good = before.is_some_and(|before| before.for_good);
                of_server.insert(tool.to_owned(), Approved { fingerprint, since, for_good });
            }
        })
    }

    /// Approves a tool for one call or permanently, and saves that in the background: a disk may be
    /// slower than the call. The approval is valid immediately; if saving fails, it is revoked,
    /// which is logged and reported by [`Pins::saved`].
    pub(crate) fn keep(
        self: &Arc<Self>,
        server: &str,
        tool: &str,
        fingerprint: Fingerprint,
        how: Approval,
    ) {
        let approved = Approved { fingerprint, since: now(), for_good: how == Approval::Always };
        let (pins, server, tool) = (Arc::clone(self), server.to_owned(), tool.to_owned());
        let name = tool.clone();
        self.known().being_saved.entry(server.clone()).or_default().insert(name, approved);
        self.saving.spawn_blocking(move || {
            let kept = match how {
                Approval::Always => pins.set_free(&server, &tool, fingerprint),
                Approval::Once => pins.approve(&server, &tool, fingerprint),
            };
            if let Err(error) = kept {
                tracing::warn!(%server, ?tool, %error, "cannot save the approval");
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

    /// Removes all approvals of a server.
    ///
    /// # Errors
    /// If that cannot be saved.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        self.change(|approvals| {
            approvals.remove(server);
        })
    }

    /// Changes the current content of the file, which another program may have modified. Calls are
    /// not blocked by the disk meanwhile.
    fn change(&self, change: impl FnOnce(&mut Approvals)) -> io::Result<()> {
        // Held until the end: it also serializes threads of this program.
        let _turn = file::take_turn(&self.path, self.patience)?;
        let mut changed = match file::read(&self.path)? {
            Found::Approvals(in_file) => in_file,
            Found::Nonsense => self.known().approvals.clone(),
        };
        change(&mut changed);
        file::write(&self.path, &changed)?;
        let stamp = Stamp::of(&self.path);
        let mut known = self.known();
        known.approvals = changed;
        known.stamp = stamp;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, NegotiatedProtocol> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl NegotiatedProtocol {
    fn approved(&self, server: &str, tool: &str) -> Option<&Approved> {
        let being_saved = self.being_saved.get(server).and_then(|tools| tools.get(tool));
        being_saved.or_else(|| self.approvals.get(server)?.get(tool))
    }

    /// Removes an approval that was saved or cannot be, unless the tool was approved again
    /// meanwhile.
    fn is_done_with(&mut self, server: &str, tool: &str, saved: &Approved) {
        let Some(tools) = self.being_saved.get_mut(server) else { return };
        if tools.get(tool) == Some(saved) {
            tools.remove(tool);
        }
        if tools.is_empty() {
            self.being_saved.remove(server);
        }
    }

    fn pin(&self, server: &str, tool: &str, fingerprint: &Fingerprint) -> Pin {
        match self.approved(server, tool) {
            None => Pin::New,
            Some(approved) if approved.fingerprint == *fingerprint => {
                Pin::Same { for_good: approved.for_good }
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
            Ok(Found::Approvals(approvals)) => {
                self.approvals = approvals;
                true
            }
            Ok(Found::Nonsense) => false,
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "cannot read the approvals again");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
