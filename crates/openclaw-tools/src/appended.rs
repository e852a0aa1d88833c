//! A log file shared by several processes. A process that finds it full rotates it, replacing the
//! previously rotated file, and starts a new one.
//!
//! Writers hold a lock on the file, and first check that it is still the one at its path: no lines
//! are added to a rotated file, and no file is rotated that is not full.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Polling interval for a lock held by another process.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of rotations by other processes before one write.
const MAX_TURNS: usize = 100;

/// A shared log file, with the path that it is rotated to.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
    older: PathBuf,
    max_bytes: u64,
    /// How long to wait for the lock. Other processes hold it for one write.
    patience: Duration,
    file: File,
    /// Size when last checked.
    size: u64,
    /// Whether the last wait for the lock timed out: later writes do not wait again.
    is_stuck: bool,
}

impl Appended {
    /// Opens the file, creating it if necessary.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a regular file.
    pub fn open(
        path: PathBuf,
        older: PathBuf,
        max_bytes: u64,
        patience: Duration,
    ) -> io::Result<Self> {
        let (file, size) = open(&path)?;
        Ok(Self { path, older, max_bytes, patience, file, size, is_stuck: false })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether `length` more bytes exceed the limit, judging by the last known size.
    pub fn is_full_with(&self, length: u64) -> bool {
        self.size + length > self.max_bytes
    }

    /// Appends whole lines in one write: lines of several processes do not mix.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        for _ in 0..MAX_TURNS {
            let is_locked = self.lock();
            let written = self.add_or_put_aside(lines, is_locked);
            // Unlocking a file that is not locked is harmless.
            let _ = self.file.unlock();
            if written? {
                return Ok(());
            }
            (self.file, self.size) = open(&self.path)?;
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "the file is rotated too often"))
    }

    /// Returns whether the lines were added; if not, the file must be reopened.
    fn add_or_put_aside(&mut self, lines: &[u8], is_locked: bool) -> io::Result<bool> {
        if !self.is_at_its_path()? {
            return Ok(false);
        }
        let length = lines.len() as u64;
        if is_locked && self.size > 0 && self.is_full_with(length) {
            openclaw_files::rename(&self.path, &self.older)?;
            return Ok(false);
        }
        self.file.write_all(lines)?;
        self.size += length;
        Ok(true)
    }

    /// Takes the lock and returns whether that succeeded. If another process does not release it,
    /// lines are added anyway, and the file is not rotated.
    fn lock(&mut self) -> bool {
        let started = Instant::now();
        loop {
            match self.file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    self.is_stuck |= started.elapsed() >= self.patience;
                    if self.is_stuck {
                        return false;
                    }
                    std::thread::sleep(PAUSE);
                }
                // Some file systems do not support locks: continue without one.
                Ok(()) | Err(TryLockError::Error(_)) => {
                    self.is_stuck = false;
                    return true;
                }
            }
        }
    }

    /// Returns whether the file has not been rotated. Updates its size.
    fn is_at_its_path(&mut self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        self.size = ours.len();
        match std::fs::metadata(&self.path) {
            Ok(there) => Ok(is_same(&ours, &there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files have no stable identity here. While the file is locked, only another file has another
/// length.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len()
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = openclaw_files::private();
    // Some systems cannot lock a file opened for appending only.
    options.read(true).append(true).create(true);
    let file = openclaw_files::open_with(path, &mut options)?;
    let about = file.metadata()?;
    // An existing file may be accessible to other users.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok((file, about.len()))
}

#[cfg(test)]
#[path = "appended_tests.rs"]
mod tests;
