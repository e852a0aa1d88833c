//! Which tools were approved, and as what (B13): a tool that changes afterwards is noticed.
//!
//! The file is small and private; every change of it is atomic. Programs that run at the same time take
//! turns to change it, and see each other's approvals: before a tool is said to be something else than
//! was approved, the file is looked at again if it has changed. A tool that is what was approved costs
//! no look at all.

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

/// How often it is looked, for tools that are new, whether another program has approved them.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long others are waited for that change the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a tool says of itself, as one number: its title, its description, its schema, however its keys
/// are ordered, and what it says about its effects.
pub fn fingerprint(tool: &ListedTool) -> Fingerprint {
    let mut hash = Sha256::new();
    for text in [tool.title.as_deref(), tool.description.as_deref()] {
        // With its length, so that no text can pass for the beginning of what follows.
        hash.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        hash.update(text.unwrap_or_default());
    }
    for hint in [tool.hints.read_only_hint, tool.hints.destructive_hint] {
        hash.update([hint.map_or(2, u8::from)]);
    }
    write_object(&mut hash, tool.input_schema.iter());
    Fingerprint::new(hash.finalize().into())
}

/// Members in the order of their keys. Listing has bounded the nesting.
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
    /// Whether an agent may call it without asking, as long as it stays so.
    #[serde(default)]
    for_good: bool,
}

/// By server, then by tool.
type Approvals = BTreeMap<String, BTreeMap<String, Approved>>;

/// Which tools were approved.
#[derive(Debug)]
pub struct Pins {
    path: PathBuf,
    set_aside: Option<PathBuf>,
    /// How long others are waited for that change the file.
    patience: Duration,
    /// Held for a look only: every call wants it.
    known: Mutex<Known>,
    /// Approvals that are being saved.
    saving: TaskTracker,
    /// Why the first of them was not.
    unsaved: Mutex<Option<io::Error>>,
}

/// Approvals that are good for as long as the program runs, at best.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", file.display())]
pub struct Unsaved {
    /// Where they belong.
    pub file: PathBuf,
    /// Why they are not there.
    pub cause: io::Error,
}

/// What was in the file when it was read last.
#[derive(Debug, Default)]
struct Known {
    approvals: Approvals,
    /// What goes before it: approvals that are being saved. They count from the moment that they were given.
    being_saved: Approvals,
    /// The file that it was read from.
    stamp: Option<Stamp>,
    /// When it was last looked whether there is another file, for a tool that is new.
    looked: Option<Instant>,
}

impl Pins {
    /// Reads the approvals; there need be none. A file that cannot be understood is set aside under
    /// another name, which is logged: every tool is then new.
    ///
    /// # Errors
    /// If the file cannot be read or moved, or a newer version of this program wrote it.
    pub fn load(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        // Before it is read: should it change meanwhile, it is read again.
        let stamp = Stamp::of(&path);
        let (approvals, set_aside) = match file::read(&path)? {
            Found::Approvals(approvals) => (approvals, None),
            Found::Nonsense => file::set_aside(&path)?,
        };
        let known = Mutex::new(Known { approvals, stamp, ..Known::default() });
        let unsaved = Mutex::default();
        let saving = TaskTracker::new();
        Ok(Self { path, set_aside, patience: PATIENCE, known, saving, unsaved })
    }

    /// Where the file was moved because it could not be understood, if so.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// What is known of a tool that now has this fingerprint.
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

    /// Approves a tool as it is, and saves that. Reads and writes a file: not for the hot path.
    ///
    /// # Errors
    /// If it cannot be saved. Then it is not approved.
    pub fn approve(&self, server: &str, tool: &str, fingerprint: Fingerprint) -> io::Result<()> {
        self.approve_all(server, [(tool, fingerprint)])
    }

    /// Lets an agent call a tool, as it is, without asking, and saves that.
    ///
    /// # Errors
    /// If it cannot be saved. Then it is not approved.
    pub fn set_free(&self, server: &str, tool: &str, fingerprint: Fingerprint) -> io::Result<()> {
        let approved = Approved { fingerprint, since: now(), for_good: true };
        self.change(|approvals| {
            approvals.entry(server.to_owned()).or_default().insert(tool.to_owned(), approved);
        })
    }

    /// Approves several tools of a server, and saves that once.
    ///
    /// # Errors
    /// If it cannot be saved. Then none is approved.
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

    /// Approves a tool as it is, for one call or for good, and saves that elsewhere: a disk takes longer
    /// than many a server. It counts at once; if it cannot be saved, no longer than until that is known, which
    /// is logged, and [`Pins::saved`] says so.
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
                tracing::warn!(%server, ?tool, %error, "the approval cannot be kept");
                pins.unsaved.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
            pins.known().is_done_with(&server, &tool, &approved);
        });
    }

    /// Waits until all that is to be kept is saved.
    ///
    /// # Errors
    /// Why the first one was not that could not be saved since somebody asked last.
    pub(crate) async fn saved(&self) -> Result<(), Unsaved> {
        self.saving.close();
        self.saving.wait().await;
        let unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).take();
        unsaved.map_or(Ok(()), |cause| Err(self.not_saved(cause)))
    }

    pub(crate) fn not_saved(&self, cause: impl Into<io::Error>) -> Unsaved {
        Unsaved { file: self.path.clone(), cause: cause.into() }
    }

    /// Forgets all approvals of a server.
    ///
    /// # Errors
    /// If that cannot be saved.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        self.change(|approvals| {
            approvals.remove(server);
        })
    }

    /// Changes what is in the file now: another program may have approved something meanwhile. Calls go
    /// on while the disk takes its time.
    fn change(&self, change: impl FnOnce(&mut Approvals)) -> io::Result<()> {
        // Until the end: two threads of this program take turns, too.
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

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Known {
    fn approved(&self, server: &str, tool: &str) -> Option<&Approved> {
        let being_saved = self.being_saved.get(server).and_then(|tools| tools.get(tool));
        being_saved.or_else(|| self.approvals.get(server)?.get(tool))
    }

    /// It was saved, or cannot be. Another approval of the tool may have been given since.
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

    /// Reads the file if it is not the one that was read last; says whether it did. A file that cannot be
    /// read or understood changes nothing.
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
                tracing::warn!(file = %path.display(), %error, "approvals cannot be read again");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
