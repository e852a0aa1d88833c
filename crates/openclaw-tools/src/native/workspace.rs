//! The workspace: the one folder whose files may be accessed.
//!
//! Every path is resolved from an open folder (`cap-std`), component by component or by the kernel
//! (`openat2`), so that neither `..` nor a symbolic link leads out, not even one that is created
//! during the resolution.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};

/// The workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {}: {cause}", .folder.display())]
pub struct NoWorkspace {
    folder: PathBuf,
    cause: io::Error,
}

/// Why a file is not accessed; the message follows its name.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    #[error("is not a valid path")]
    NoPath,
    #[error("is outside of the workspace, or reached through a link that leads outside")]
    Outside,
    #[error("does not exist")]
    NotFound,
    #[error("is a folder")]
    Folder,
    #[error("is not a folder, or a part of its path is not")]
    NotAFolder,
    #[error("is a broken link")]
    DeadLink,
    #[error("is neither a file nor a folder")]
    Special,
    #[error("is not accessible to this user (permission denied)")]
    Denied,
    #[error("is write-protected")]
    ReadOnly,
    #[error("has too long a path")]
    TooLong,
    #[error("cannot be used ({})", .0.kind())]
    Other(io::Error),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::NotADirectory => Self::NotAFolder,
            io::ErrorKind::IsADirectory => Self::Folder,
            io::ErrorKind::InvalidFilename => Self::TooLong,
            io::ErrorKind::InvalidInput => Self::NoPath,
            // Errors of the system have a number; those of `cap-std` have none.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::Outside,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error),
        }
    }
}

/// The workspace and the further readable folders.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: PathBuf,
    /// The path without symbolic links, as commands see it.
    real: PathBuf,
    dir: Dir,
    also_readable: Vec<PathBuf>,
    /// Serializes changes, so that no concurrent edit is lost.
    writing: Mutex<()>,
}

/// Excludes all other changes.
pub(super) type WriteLock<'a> = MutexGuard<'a, ()>;

impl Workspace {
    pub(super) fn open(folder: PathBuf, also_readable: Vec<PathBuf>) -> Result<Self, NoWorkspace> {
        let open = || {
            let dir = Dir::open_ambient_dir(&folder, ambient_authority())?;
            Ok((openclaw_files::canonical(&folder)?, dir))
        };
        match open() {
            Ok((real, dir)) => {
                Ok(Self { folder, real, dir, also_readable, writing: Mutex::default() })
            }
            Err(cause) => Err(NoWorkspace { folder, cause }),
        }
    }

    /// Opens a file for reading, in the workspace or in another readable folder.
    pub(super) fn open_file(&self, path: &str) -> Result<(File, Metadata), PathError> {
        match self.inside(path) {
            Err(PathError::Outside) => {
                let besides = self.also_readable.iter();
                let found =
                    besides.filter_map(|folder| Some((folder, beneath(path, folder)?))).next();
                let (folder, path) = found.ok_or(PathError::Outside)?;
                regular_file(&Dir::open_ambient_dir(folder, ambient_authority())?, &path)
            }
            path => regular_file(&self.dir, &path?),
        }
    }

    /// Opens a folder.
    pub(super) fn open_folder(&self, path: &str) -> Result<Dir, PathError> {
        Ok(self.dir.open_dir(self.inside(path)?)?)
    }

    /// Waits until no other call changes a file.
    pub(super) fn turn(&self) -> WriteLock<'_> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces a file atomically, creating missing folders; returns whether it existed. A link to
    /// a file is followed.
    pub(super) fn replace(
        &self,
        _turn: &WriteLock<'_>,
        path: &str,
        content: &[u8],
    ) -> Result<bool, PathError> {
        let path = self.inside(path)?;
        let target = match self.dir.symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => match self.dir.canonicalize(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(PathError::DeadLink);
                }
                target => target?,
            },
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => path,
        };
        let name = target.file_name().ok_or(PathError::Folder)?;
        let parent = match target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => {
                self.dir.create_dir_all(parent)?;
                self.dir.open_dir(parent)?
            }
            None => self.dir.try_clone()?,
        };
        // From here on there is only a name in an open folder: no link is followed.
        let before = match parent.symlink_metadata(name) {
            Ok(found) if found.is_file() => Some(found.permissions()),
            Ok(found) if found.is_dir() => return Err(PathError::Folder),
            Ok(_) => return Err(PathError::Special),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if before.as_ref().is_some_and(Permissions::readonly) {
            return Err(PathError::ReadOnly);
        }
        let was_there = before.is_some();
        let unfinished = unfinished_name()?;
        let written = write_new(&parent, &unfinished, content, before)
            .and_then(|()| parent.rename(&unfinished, &parent, name));
        if let Err(error) = written {
            let _ = parent.remove_file(&unfinished);
            return Err(error.into());
        }
        Ok(was_there)
    }

    /// Returns whether a path is refused without a look at the disk. If not, it may still lead outside.
    pub(super) fn refuses(&self, path: &str) -> bool {
        match self.inside(path) {
            Ok(relative) => {
                let mut parts = relative.components().skip_while(|it| *it == Component::CurDir);
                parts.next() == Some(Component::ParentDir)
            }
            Err(_) => true,
        }
    }

    /// Returns the path relative to the workspace. Whether it stays inside is checked when it is
    /// resolved.
    fn inside(&self, path: &str) -> Result<PathBuf, PathError> {
        if path.is_empty() || path.contains('\0') {
            return Err(PathError::NoPath);
        }
        let relative = if Path::new(path).is_absolute() {
            beneath(path, &self.folder).or_else(|| beneath(path, &self.real))
        } else {
            Some(PathBuf::from(path))
        };
        let relative = relative.ok_or(PathError::Outside)?;
        let is_root = relative.as_os_str().is_empty();
        Ok(if is_root { PathBuf::from(".") } else { relative })
    }
}

/// Returns the part of an absolute path below a folder.
fn beneath(path: &str, folder: &Path) -> Option<PathBuf> {
    Path::new(path).strip_prefix(folder).ok().map(Path::to_owned)
}

fn regular_file(dir: &Dir, path: &Path) -> Result<(File, Metadata), PathError> {
    // Opening a pipe would block until it has a writer.
    let opened = dir.open_with(path, OpenOptions::new().read(true).nonblock(true));
    let is_link = || dir.symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_link() => {
            return Err(PathError::DeadLink);
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    match metadata.file_type() {
        kind if kind.is_file() => Ok((file, metadata)),
        kind if kind.is_dir() => Err(PathError::Folder),
        _ => Err(PathError::Special),
    }
}

fn write_new(
    parent: &Dir,
    name: &OsString,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let mut file = parent.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

/// Returns a random name for a temporary file.
fn unfinished_name() -> io::Result<OsString> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!(".openclaw-{:016x}.tmp", u64::from_be_bytes(random)).into())
}
