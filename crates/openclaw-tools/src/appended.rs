//! A file that several programs add lines to. Whoever finds it full puts it aside, over the one that was
//! put aside before, and begins another.
//!
//! Who adds something holds a lock on the file meanwhile, and looks first whether it is still the one at
//! its path: so nothing is added to a file that was put aside, and none is put aside that is not full.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::private;

/// How long a lock is left alone that somebody else holds.
const PAUSE: Duration = Duration::from_millis(1);
/// How often others may put the file aside before one write.
const MAX_TURNS: usize = 100;

/// The file at a path, and where it goes when it is full.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
    older: PathBuf,
    max_bytes: u64,
    /// How long others are waited for. They hold the lock for one write.
    patience: Duration,
    file: File,
    /// As it was when it was last looked at.
    size: u64,
    /// Whether somebody held the lock for longer than that: nobody waits for it twice.
    is_stuck: bool,
}

impl Appended {
    /// Opens the file, which is made if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or is nothing that lines can be added to.
    pub fn open(
        path: PathBuf,
        older: PathBuf,
        max_bytes: u64,
        patience: Duration,
    ) -> io::Result<Self> {
        let (file, size) = open(&path)?;
        Ok(Self { path, older, max_bytes, patience, file, size, is_stuck: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has no room for so many bytes more, as far as is known.
    pub fn is_full_with(&self, length: u64) -> bool {
        self.size + length > self.max_bytes
    }

    /// Adds whole lines, in one write: those of two programs do not mix.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        for _ in 0..MAX_TURNS {
            let is_locked = self.lock();
            let written = self.add_or_put_aside(lines, is_locked);
            // What is not locked needs no unlocking.
            let _ = self.file.unlock();
            if written? {
                return Ok(());
            }
            (self.file, self.size) = open(&self.path)?;
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is put aside again and again"))
    }

    /// Says whether the lines were added: otherwise the file is none to add to any more.
    fn add_or_put_aside(&mut self, lines: &[u8], is_locked: bool) -> io::Result<bool> {
        if !self.is_at_its_path()? {
            return Ok(false);
        }
        let length = lines.len() as u64;
        if is_locked && self.size > 0 && self.is_full_with(length) {
            std::fs::rename(&self.path, &self.older)?;
            return Ok(false);
        }
        self.file.write_all(lines)?;
        self.size += length;
        Ok(true)
    }

    /// Keeps others away; says whether it could. If somebody does not let go, lines are added all the
    /// same, and the file stays where it is.
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
                // Some disks have no locks: it is as good as it gets there.
                Ok(()) | Err(TryLockError::Error(_)) => {
                    self.is_stuck = false;
                    return true;
                }
            }
        }
    }

    /// Whether nobody has put the file aside. Its size is known afterwards.
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

/// Files have no numbers here. While it is locked, only another file has another length.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len()
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = private::options();
    // Who only appends cannot lock everywhere.
    options.read(true).append(true).create(true);
    // A pipe would be waited for until somebody reads it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
    let file = options.open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        let message = format!("{} is no regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // It may have been there before, open to others.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok((file, about.len()))
}

#[cfg(test)]
#[path = "appended_tests.rs"]
mod tests;
