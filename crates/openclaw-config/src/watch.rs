//! Reports when a configuration was saved (C9).
//!
//! Only the content of the files counts. Events of the operating system just trigger a check: they
//! differ between systems and editors, and some get lost. A file may be written in two steps, be
//! replaced by a rename, be a symlink, or not exist yet, nor its folder: so the folders are
//! watched, not the files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::files::ReadFile;

/// Files are checked after this long without an event, or after [`PATIENCE`] at the latest.
const QUIET: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(2);
/// How many symlinks are followed, and how often folders may change while they are resolved.
const MAX_LINKS: usize = 40;
const MAX_ROUNDS: usize = 8;

/// The operating system cannot watch a folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {} for changes", .folder.display())]
pub struct WatchError {
    /// The folder.
    pub folder: PathBuf,
    #[source]
    source: notify::Error,
}

/// Watches the files of a configuration.
///
/// ```no_run
/// # use openclaw_config::{LoadEnvironment, Watcher, load};
/// # async fn example(file: &std::path::Path, environment: LoadEnvironment<'_>) -> Result<(), openclaw_config::WatchError> {
/// let mut loaded = load(file, environment);
/// let mut watcher = Watcher::new(loaded.files.clone())?;
/// loop {
///     watcher.changed().await?;
///     loaded = load(file, environment);
///     watcher.watch(loaded.files.clone())?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Watcher {
    system: RecommendedWatcher,
    files: Vec<ReadFile>,
    folders: BTreeSet<PathBuf>,
    /// The paths whose events count. The watcher's thread reads it.
    heeded: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// One pending tick means the same as many: nothing is lost when the channel is full.
    ticks: mpsc::Receiver<()>,
    tick: mpsc::Sender<()>,
    /// Whether a tick was received and the files have not been checked since.
    is_due: bool,
}

impl Watcher {
    /// Watches the files that a configuration was read from (`Loaded::files`). Changes since then
    /// are reported, too.
    ///
    /// # Errors
    /// If the operating system cannot watch them.
    pub fn new(files: Vec<ReadFile>) -> Result<Self, WatchError> {
        let (tick, ticks) = mpsc::channel(1);
        let heeded = Arc::new(Mutex::new(BTreeSet::new()));
        let (sender, heeds) = (tick.clone(), Arc::clone(&heeded));
        let system = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let heeded = heeds.lock().unwrap_or_else(PoisonError::into_inner);
            if event.is_err() || event.is_ok_and(|event| matters(&event, &heeded)) {
                // Full: a check is pending anyway.
                let _ = sender.try_send(());
            }
        });
        let folder = || files.first().map(|file| file.path.clone()).unwrap_or_default();
        let system = system.map_err(|source| WatchError { folder: folder(), source })?;
        let folders = BTreeSet::new();
        let mut watcher = Self { system, files, folders, heeded, ticks, tick, is_due: true };
        watcher.aim()?;
        Ok(watcher)
    }

    /// Replaces the watched files with those that the configuration was last read from.
    ///
    /// # Errors
    /// If the operating system cannot watch them.
    pub fn watch(&mut self, files: Vec<ReadFile>) -> Result<(), WatchError> {
        self.files = files;
        self.is_due = true;
        self.aim()
    }

    /// Waits until the content of a file differs from when it was last read or reported, and
    /// returns its path. Creation and removal count as changes. Cancel safe: no change is lost.
    ///
    /// # Errors
    /// If the operating system cannot watch the files any more.
    pub async fn changed(&mut self) -> Result<Vec<PathBuf>, WatchError> {
        loop {
            if !self.is_due {
                // `self` holds a sender, so the channel never closes.
                self.ticks.recv().await;
                self.is_due = true;
            }
            self.quiet().await;
            self.aim()?;
            self.is_due = false;
            let mut changed = Vec::new();
            for file in &mut self.files {
                let now = ReadFile::now(file.path.as_path());
                if *file != now {
                    changed.push(now.path.clone());
                    *file = now;
                }
            }
            if !changed.is_empty() {
                return Ok(changed);
            }
        }
    }

    /// Waits until the writer has most likely finished.
    async fn quiet(&mut self) {
        let patience = Instant::now() + PATIENCE;
        let next_tick = async { while timeout(QUIET, self.ticks.recv()).await.is_ok() {} };
        drop(timeout_at(patience, next_tick).await);
    }

    /// Watches the folders whose entries determine the content of the files.
    fn aim(&mut self) -> Result<(), WatchError> {
        let mut refused = None;
        for _ in 0..MAX_ROUNDS {
            let places = places(self.files.iter().map(|file| file.path.as_path()));
            let folders: BTreeSet<PathBuf> =
                places.iter().filter_map(|place| place.parent().map(Path::to_path_buf)).collect();
            let mut heeded = places.clone();
            heeded.extend(folders.iter().cloned());
            *self.heeded.lock().unwrap_or_else(PoisonError::into_inner) = heeded;
            refused = None;
            // Watch all of them again: a folder that was removed and recreated is a different one
            // to the system.
            for folder in std::mem::take(&mut self.folders) {
                drop(self.system.unwatch(&folder));
            }
            for folder in folders {
                match self.system.watch(&folder, RecursiveMode::NonRecursive) {
                    Ok(()) => drop(self.folders.insert(folder)),
                    Err(source) => refused = Some(WatchError { folder, source }),
                }
            }
            // A folder that was created or removed meanwhile is seen now, or an event follows.
            let now = self::places(self.files.iter().map(|file| file.path.as_path()));
            if refused.is_none() && now == places {
                return Ok(());
            }
        }
        // The folders keep changing: schedule another check.
        let _ = self.tick.try_send(());
        refused.map_or(Ok(()), Err)
    }
}

/// Whether an event requires a check. Reads do not: we read the files ourselves.
fn matters(event: &Event, heeded: &BTreeSet<PathBuf>) -> bool {
    let is_reading = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    };
    let is_ours = |path: &PathBuf| heeded.contains(path);
    event.need_rescan()
        || !is_reading && (event.paths.is_empty() || event.paths.iter().any(is_ours))
}

/// Returns the folder entries that determine the content of the files: the files themselves, the
/// symlinks on the way to them, and the first missing entry on the way.
fn places<'a>(files: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let mut places = BTreeSet::new();
    for file in files {
        let mut next = Some(std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf()));
        for _ in 0..MAX_LINKS {
            let Some(path) = next else { break };
            next = first_place(&path, &mut places);
        }
    }
    places
}

/// Adds the first relevant entry of a path. If it is a symlink, returns the path behind it.
fn first_place(path: &Path, places: &mut BTreeSet<PathBuf>) -> Option<PathBuf> {
    let mut way = PathBuf::new();
    let mut steps = path.components();
    while let Some(step) = steps.next() {
        way.push(step);
        let Ok(metadata) = way.symlink_metadata() else { break };
        if let (true, Ok(target)) = (metadata.is_symlink(), way.read_link()) {
            let folder = way.parent().unwrap_or(Path::new(""));
            let onward = folder.join(target).join(steps.as_path());
            places.insert(way);
            return Some(onward);
        }
    }
    places.insert(way);
    None
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag};

    use super::*;

    #[test]
    fn writes_trigger_a_check_and_reads_do_not() {
        let heeded = BTreeSet::from([PathBuf::from("/c/openclaw.json")]);
        let event = |kind, path: &str| Event::new(kind).add_path(PathBuf::from(path));
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let created = EventKind::Create(CreateKind::File);
        assert!(!matters(&event(open, "/c/openclaw.json"), &heeded));
        assert!(matters(&event(written, "/c/openclaw.json"), &heeded));
        assert!(matters(&event(created, "/c/openclaw.json"), &heeded));
        assert!(!matters(&event(created, "/c/sessions.db"), &heeded));
        let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert!(matters(&lost, &heeded), "events were lost: anything may have happened");
    }
}
