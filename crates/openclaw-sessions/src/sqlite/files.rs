//! The files of a database: their location, permissions and replacement.
//!
//! The database file is never opened here: closing any descriptor of a file drops all POSIX locks
//! that this process, and thereby SQLite, has on it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use super::stamp::stamp;
use crate::error::StoreError;

/// Polling interval for the lock file.
const TURN_INTERVAL: Duration = Duration::from_millis(10);
/// Files that SQLite keeps beside a database. They are moved before it: a leftover log would be
/// replayed into the next database of that name.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// The files of one database.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
}

/// Identity of a file, independent of its name: a replaced file has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

/// Lock that keeps other processes from creating the database or moving it aside.
#[derive(Debug)]
pub(super) struct CreationLock(#[expect(dead_code, reason = "holds the lock")] fs::File);

impl Files {
    /// Locates the database at a path, which need not exist.
    pub(super) fn at(path: &Path) -> Result<Self, StoreError> {
        // SQLite keeps its companions beside the target of a symbolic link; so do we.
        #[expect(
            clippy::disallowed_methods,
            reason = "SQLite takes paths of more than 260 characters only as `\\\\?\\`"
        )]
        let found = match dunce::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path),
            found => found,
        };
        match found {
            Ok(path) => Ok(Self { path }),
            Err(error) => Err(file_error("cannot find", path, error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the current file, if it exists.
    pub(super) fn identity(&self) -> Result<Option<FileIdentity>, StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_file() => {
                let error = match found.is_dir() {
                    true => io::ErrorKind::IsADirectory.into(),
                    false => not_regular(),
                };
                Err(file_error("cannot keep sessions in", &self.path, error))
            }
            Ok(found) => Ok(Some(identity_of(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("cannot access", &self.path, error)),
        }
    }

    /// Creates the directory, private to the user.
    pub(super) fn make_folder(&self) -> Result<&Path, StoreError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        openclaw_files::make_folder(folder)
            .map_err(|error| file_error("cannot create the folder", folder, error))?;
        Ok(folder)
    }

    /// Checks that SQLite will not block on a pipe that has the name of one of its files.
    pub(super) fn check_companions(&self) -> Result<(), StoreError> {
        for path in self.companions() {
            if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
                return Err(file_error("cannot use", &path, not_regular()));
            }
        }
        Ok(())
    }

    /// Removes access to the files for all other users.
    pub(super) fn make_private(&self) {
        #[cfg(unix)]
        for path in self.companions().chain([self.path.clone()]) {
            use std::os::unix::fs::PermissionsExt as _;
            let Ok(found) = fs::metadata(&path) else { continue };
            if found.permissions().mode() & 0o077 != 0
                && let Err(error) = fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            {
                tracing::warn!(file = %path.display(), %error, "other users may read the sessions");
            }
        }
    }

    /// Waits until no other process is creating the database or moving it aside.
    pub(super) async fn take_turn(&self, patience: Duration) -> Result<CreationLock, StoreError> {
        let path = self.sibling("-lock");
        let cannot = |error| file_error("cannot lock", &path, error);
        let file = openclaw_files::open_lock(&path).map_err(cannot)?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(CreationLock(file)),
                Err(fs::TryLockError::Error(error)) => {
                    return Err(cannot(error));
                }
                Err(fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(StoreError::Locked { path, waited: patience });
                }
                Err(fs::TryLockError::WouldBlock) => sleep(TURN_INTERVAL).await,
            }
        }
    }

    /// Moves a finished database into place, where there is none.
    pub(super) fn put_in_place(
        &self,
        made: tempfile::TempPath,
        _turn: &CreationLock,
    ) -> Result<(), StoreError> {
        // Companions without a database are left over from one that was removed.
        self.move_companions(&self.unused_name("orphaned"))?;
        made.persist_noclobber(&self.path)
            .map_err(|error| file_error("cannot create", &self.path, error.error))
    }

    /// Moves the database and its companions to another name, which is returned.
    pub(super) fn set_aside(&self, _turn: &CreationLock) -> Result<PathBuf, StoreError> {
        let aside = self.unused_name("corrupt");
        self.move_companions(&aside)?;
        fs::rename(&self.path, &aside)
            .map_err(|error| file_error("cannot move aside", &self.path, error))?;
        self.clear_suspicion();
        Ok(aside)
    }

    /// Records that damage was found, so that the next start checks the whole database.
    pub(super) fn suspect(&self) {
        let mut options = openclaw_files::private();
        options.append(true).create(true);
        if let Err(error) = openclaw_files::open_with(&self.sibling("-suspect"), &mut options) {
            tracing::warn!(file = %self.path.display(), %error, "cannot record the damage");
        }
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.sibling("-suspect").exists()
    }

    pub(super) fn clear_suspicion(&self) {
        // If this fails, the next start is only slower.
        let _ = fs::remove_file(self.sibling("-suspect"));
    }

    fn move_companions(&self, aside: &Path) -> Result<(), StoreError> {
        for companion in COMPANIONS {
            let from = self.sibling(companion);
            match fs::rename(&from, with_suffix(aside, companion)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error("cannot move aside", &from, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn unused_name(&self, why: &str) -> PathBuf {
        let base = self.sibling(&format!(".{why}-{}", stamp(SystemTime::now())));
        let numbered = (2..1_000).map(|number| with_suffix(&base, &format!("-{number}")));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        names.find(|name| !name.exists()).unwrap_or(base)
    }

    fn companions(&self) -> impl Iterator<Item = PathBuf> {
        COMPANIONS.into_iter().map(|companion| self.sibling(companion))
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        with_suffix(&self.path, suffix)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Classifies an I/O error on a file.
pub(super) fn file_error(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let path = path.to_owned();
    match source.kind() {
        PermissionDenied | ReadOnlyFilesystem => {
            StoreError::NotWritable { path, source: source.into() }
        }
        StorageFull | QuotaExceeded => StoreError::Full { path },
        _ => StoreError::File { action, path, source },
    }
}

#[cfg(unix)]
fn identity_of(found: &fs::Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt as _;
    FileIdentity(found.dev(), found.ino())
}

/// Where open files cannot be replaced, one identity suffices.
#[cfg(not(unix))]
fn identity_of(_: &fs::Metadata) -> FileIdentity {
    FileIdentity(0, 0)
}
