//! Approvals of native tools for later calls (B9, B17).
//!
//! They are stored in a private file, which is replaced atomically. Concurrent programs lock it for
//! changes and see each other's approvals: it is read again at most once per second, if it was
//! modified. An approval that is limited to a session is not stored.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use openclaw_files::Stamp;
use serde::{Deserialize, Serialize};

use crate::grant::GrantRule;

/// The version of the file.
const VERSION: u32 = 1;
/// A larger file is invalid.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// The number of stored approvals.
const MAX_STORED: usize = 5_000;
/// How often the file is checked for changes by another program.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which later calls an approval applies to: who, where, what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApprovalKey {
    /// The agent.
    pub agent: String,
    /// Its workspace; `None` for a tool that does not work in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The session, for an approval that is limited to one.
    #[serde(skip)]
    pub session: Option<String>,
    /// The tool.
    pub tool: String,
    /// What is covered.
    pub grant: GrantRule,
}

/// Approvals of native tools. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// `None`: they are valid until this process exits.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// As last read from the file.
    stored: BTreeSet<ApprovalKey>,
    /// Those that are not stored.
    transient: BTreeSet<ApprovalKey>,
    /// The version of the file that was read.
    stamp: Option<Stamp>,
    looked: Option<Instant>,
}

#[derive(Deserialize)]
struct File {
    approvals: BTreeSet<ApprovalKey>,
}

impl Approvals {
    /// Approvals that are stored in a file. It is read on first use, and may be missing.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared { file: Some(file.into()), known: Mutex::default() }))
    }

    /// Returns whether approvals outlive this process.
    pub fn are_stored(&self) -> bool {
        self.0.file.is_some()
    }

    /// Adds an approval. It is valid at once, even if it cannot be stored. Writes a file.
    ///
    /// # Errors
    /// If it cannot be stored: it is then valid until this process exits.
    pub fn remember(&self, key: ApprovalKey) -> io::Result<()> {
        let Some(file) = self.0.file.as_deref().filter(|_| key.session.is_none()) else {
            self.lock().transient.insert(key);
            return Ok(());
        };
        let added = self.change(file, |stored| {
            if stored.len() >= MAX_STORED && !stored.contains(&key) {
                return Err(io::Error::other("too many approvals"));
            }
            Ok(stored.insert(key.clone()))
        });
        if added.is_err() {
            self.lock().transient.insert(key);
        }
        added.map(drop)
    }

    /// Revokes an approval. Returns whether it was there. Writes a file.
    ///
    /// # Errors
    /// If that cannot be stored: the approval is then still valid.
    pub fn forget(&self, key: &ApprovalKey) -> io::Result<bool> {
        let was_transient = self.lock().transient.remove(key);
        let Some(file) = self.0.file.as_deref().filter(|_| key.session.is_none()) else {
            return Ok(was_transient);
        };
        Ok(self.change(file, |stored| Ok(stored.remove(key)))? || was_transient)
    }

    /// Returns whether an approval was given.
    pub fn contains(&self, key: &ApprovalKey) -> bool {
        let known = self.current();
        known.stored.contains(key) || known.transient.contains(key)
    }

    /// Returns whether any approval matches.
    pub fn any(&self, is_meant: impl FnMut(&ApprovalKey) -> bool) -> bool {
        let known = self.current();
        known.stored.iter().chain(&known.transient).any(is_meant)
    }

    /// Returns all approvals.
    pub fn list(&self) -> Vec<ApprovalKey> {
        let known = self.current();
        known.stored.union(&known.transient).cloned().collect()
    }

    /// Changes the content of the file, which another program may have modified. Returns whether
    /// anything was changed.
    fn change(
        &self,
        file: &Path,
        change: impl FnOnce(&mut BTreeSet<ApprovalKey>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        if let Some(folder) = file.parent() {
            openclaw_files::make_folder(folder)?;
        }
        // Held until the end: it also serializes threads of this program.
        let _turn = openclaw_files::lock(&file.with_extension("lock"), PATIENCE)?;
        let mut stored = match read(file) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let aside = file.with_extension("corrupt.json");
                openclaw_files::rename(file, &aside)?;
                let (file, set_aside) = (file.display(), aside.display());
                tracing::warn!(%file, %set_aside, "invalid file of approvals");
                BTreeSet::new()
            }
            read => read?,
        };
        let is_changed = change(&mut stored)?;
        if is_changed {
            let file_ref = FileRef { version: VERSION, approvals: &stored };
            let mut text = serde_json::to_vec_pretty(&file_ref)?;
            text.push(b'\n');
            openclaw_files::replace(file, &text)?;
        }
        let stamp = Stamp::of(file);
        let mut known = self.lock();
        (known.stored, known.stamp) = (stored, stamp);
        Ok(is_changed)
    }

    /// The approvals, read again if that is due.
    fn current(&self) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        let Some(file) = &self.0.file else { return known };
        let now = Instant::now();
        if known.looked.is_some_and(|looked| now.duration_since(looked) < LOOK_EVERY) {
            return known;
        }
        known.looked = Some(now);
        let stamp = Stamp::of(file);
        if stamp == known.stamp {
            return known;
        }
        known.stamp = stamp;
        match read(file) {
            Ok(stored) => known.stored = stored,
            Err(error) => {
                let file = file.display();
                tracing::warn!(%file, %error, "cannot read the approvals; every call needs approval");
                known.stored.clear();
            }
        }
        known
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize)]
struct FileRef<'a> {
    version: u32,
    approvals: &'a BTreeSet<ApprovalKey>,
}

/// Reads the file; it may be missing. The kind is `InvalidData` if it is invalid.
fn read(file: &Path) -> io::Result<BTreeSet<ApprovalKey>> {
    let text = match openclaw_files::read(file, MAX_FILE) {
        // A power cut may leave an empty file.
        Ok(text) if text.is_empty() => return Ok(BTreeSet::new()),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Err(error) => return Err(error),
    };
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let Version { version } = serde_json::from_slice(&text).map_err(invalid)?;
    if version > VERSION {
        let words = "the approvals were written by a newer version of this program";
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    let file: File = serde_json::from_slice(&text).map_err(invalid)?;
    Ok(file.approvals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(words: &[&str], session: Option<&str>) -> ApprovalKey {
        ApprovalKey {
            agent: "main".to_owned(),
            workspace: Some("/w".into()),
            session: session.map(ToOwned::to_owned),
            tool: "exec".to_owned(),
            grant: GrantRule::CommandPrefix(words.iter().map(|word| (*word).to_owned()).collect()),
        }
    }

    #[test]
    fn approvals_outlive_the_process_unless_they_are_for_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new").join("approvals.json");
        let (stored, session) = (key(&["git"], None), key(&["ls"], Some("s")));
        let first = Approvals::in_file(&file);
        assert_eq!(first.list(), []);
        first.remember(stored.clone()).unwrap();
        first.remember(session.clone()).unwrap();
        assert!(first.contains(&stored) && first.contains(&session));
        let second = Approvals::in_file(&file);
        assert_eq!(second.list(), std::slice::from_ref(&stored));
        assert!(second.forget(&stored).unwrap() && !second.forget(&stored).unwrap());
        assert_eq!(Approvals::in_file(&file).list(), []);
        // A running program sees it when it looks again.
        first.lock().looked = None;
        assert!(!first.contains(&stored) && first.contains(&session));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_private() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approvals.json");
        Approvals::in_file(&file).remember(key(&["git"], None)).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_invalid_file_approves_nothing_and_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approvals.json");
        std::fs::write(&file, "{").unwrap();
        let approvals = Approvals::in_file(&file);
        assert_eq!(approvals.list(), []);
        approvals.remember(key(&["git"], None)).unwrap();
        assert_eq!(Approvals::in_file(&file).list().len(), 1);
        assert!(folder.path().join("approvals.corrupt.json").exists());
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approvals.json");
        let text = r#"{"version": 2, "approvals": "?"}"#;
        std::fs::write(&file, text).unwrap();
        let approvals = Approvals::in_file(&file);
        assert!(approvals.remember(key(&["git"], None)).is_err());
        assert!(approvals.contains(&key(&["git"], None)), "valid until the process exits");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
