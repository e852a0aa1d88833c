//! Opens the program's own files: private to the user, without blocking, regular files only.
//!
//! Opening a pipe blocks until its other end is opened, in a system call that no signal handler of
//! an async runtime interrupts. Reading a device may never end, and renaming a file over one breaks
//! what uses it. So every file of the state directory is opened and replaced here.

mod path;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use path::canonical;

/// Polling interval for a lock held by another process.
const PAUSE: Duration = Duration::from_millis(5);
/// The name prefix of the temporary files of [`replace`].
const UNFINISHED: &str = ".unfinished-";
/// Older temporary files were left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// Creates a directory and its parents, private to the user. Existing directories are left
/// unchanged.
///
/// # Errors
/// If it cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns options that create files private to the user, for [`open_with`].
pub fn private() -> OpenOptions {
    #[allow(unused_mut, reason = "only Unix modifies it")]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file for reading.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file with these options.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // A terminal must not become the controlling one.
    #[cfg(unix)]
    set_flags(options, nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY);
    open_regular(path, options)
}

/// Opens or creates a lock file, private to the user. It is not followed if it is a symbolic link:
/// a link to a missing file would create that.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = private();
    options.read(true).write(true).create(true).truncate(false);
    open_itself(path, &mut options)
}

/// Opens a file, but not through a symbolic link.
fn open_itself(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use nix::libc::{O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
        set_flags(options, O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    }
    open_regular(path, options)
}

/// Opens or creates a lock file and locks it until the returned value is dropped. Blocks for at
/// most `patience`.
///
/// # Errors
/// If it cannot be opened or locked. The kind is `TimedOut` if another process holds the lock.
pub fn lock(path: &Path, patience: Duration) -> io::Result<File> {
    let file = open_lock(path)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                let message = format!("another process has locked {}", path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

/// Reads a whole file.
///
/// # Errors
/// If it cannot be read, or is not a regular file. The kind is `FileTooLarge` if it has more than
/// `max_bytes` bytes.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_all(open(path)?, max_bytes)
}

/// Reads a whole file with a key or tokens. It must be the user's own, and no link: another user
/// could let it lead elsewhere.
///
/// # Errors
/// Like [`read`], and if it is a symbolic link or belongs to another user.
pub fn read_secret(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_itself(path, OpenOptions::new().read(true))?;
    #[cfg(unix)]
    {
        let owner = std::os::unix::fs::MetadataExt::uid(&file.metadata()?);
        if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
            let message = format!("it belongs to another user (uid {owner}); change its owner");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
    }
    read_all(file, max_bytes)
}

/// Like [`read_secret`], for text.
///
/// # Errors
/// Like [`read_secret`]. The kind is `InvalidData` if it is not UTF-8.
pub fn read_secret_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    text(read_secret(path, max_bytes)?)
}

fn read_all(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let too_large = || {
        let message = format!("larger than {max_bytes} bytes");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
    };
    if length > max_bytes {
        return too_large();
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // It may grow meanwhile.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return too_large();
    }
    Ok(bytes)
}

/// Like [`read`], for text.
///
/// # Errors
/// Like [`read`]. The kind is `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    text(read(path, max_bytes)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}

/// Identifies a version of a file. [`replace`] creates a new file, so usually the inode is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Stamp {
    /// Returns the current version; `None` if there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self { modified: about.modified().ok(), length: about.len(), number })
    }
}

/// Creates or replaces a file atomically, private to the user. Returns when it is on disk: after a
/// crash or a power cut the path holds either the old content or all of `bytes`.
///
/// The folder must exist.
///
/// # Errors
/// If it cannot be written, or the path is that of something else than a regular file, such as a
/// link, a pipe or a device. The old content is left unchanged, unless only the last step failed:
/// syncing the folder.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = draft(path, bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|error| error.error)?;
    sync_folder(folder_of(path))
}

/// Like [`replace`], without waiting for the disk: after a power cut the file may be empty. For what
/// can be obtained again.
///
/// # Errors
/// Like [`replace`]. The old content is left unchanged.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    draft(path, bytes)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Renames a file. What has the new name already is replaced if it is a regular file.
///
/// # Errors
/// If it cannot be renamed, or what has the new name is no regular file.
pub fn rename(path: &Path, new_path: &Path) -> io::Result<()> {
    // Callers name the file that they rename.
    let explain = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot replace {}: {error}", new_path.display()))
    };
    check_replaceable(new_path).map_err(explain)?;
    std::fs::rename(path, new_path)
}

/// Checks what a file is to be renamed over: a regular file or nothing.
///
/// # Errors
/// If it is something else, such as a link, a pipe or a device, or this cannot be found out.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => Ok(()),
        Ok(about) if about.is_symlink() => Err(symbolic_link()),
        Ok(about) if about.is_dir() => {
            Err(io::Error::new(io::ErrorKind::IsADirectory, "a folder, not a file"))
        }
        Ok(_) => Err(not_regular()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes the new content of a file beside it.
fn draft(path: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    check_replaceable(path)?;
    let folder = folder_of(path);
    remove_abandoned(folder);
    // Created in the same folder: a rename cannot cross file systems. Its mode is 0600.
    let mut draft = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    draft.write_all(bytes)?;
    Ok(draft)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a rename durable. Not all file systems support it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Returns the temporary files of [`replace`] in a folder: of writes in progress, and of processes that
/// were killed before the last step. Their content may be complete or not.
pub fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let ours =
        entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()));
    ours.map(|entry| entry.path()).collect()
}

/// Removes temporary files of processes that were killed while they wrote one. Errors are ignored: the
/// next call tries again.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let written = || entry.metadata().and_then(|about| about.modified()).ok();
        let age = || written().and_then(|written| written.elapsed().ok());
        if is_ours && age().is_some_and(|age| age > ABANDONED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
fn set_flags(options: &mut OpenOptions, flags: i32) {
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
}

fn open_regular(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.open(path).map_err(explain)?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

/// Replaces the messages of the operating system for sockets, pipes without a reader, and links.
fn explain(error: io::Error) -> io::Error {
    #[cfg(unix)]
    match error.raw_os_error() {
        Some(nix::libc::ENXIO | nix::libc::EOPNOTSUPP) => return not_regular(),
        Some(nix::libc::ELOOP) => return symbolic_link(),
        _ => {}
    }
    error
}

fn symbolic_link() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a symbolic link")
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use super::*;

    /// Paths to a pipe, a socket and a folder. The socket is removed when the listener is dropped.
    fn special(folder: &Path) -> ([std::path::PathBuf; 3], std::os::unix::net::UnixListener) {
        let [pipe, socket, inner] = ["pipe", "socket", "folder"].map(|name| folder.join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::create_dir(&inner).unwrap();
        ([pipe, socket, inner], listener)
    }

    #[test]
    fn what_is_not_a_regular_file_is_rejected_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let (paths, _listener) = special(folder.path());
        for path in &paths {
            for result in [
                read(path, 10).map(drop),
                open(path).map(drop),
                open_lock(path).map(drop),
                lock(path, Duration::ZERO).map(drop),
                open_with(path, private().append(true).create(true)).map(drop),
                open_with(path, private().read(true).append(true).create(true)).map(drop),
            ] {
                let error = result.unwrap_err();
                let is_folder = error.kind() == io::ErrorKind::IsADirectory;
                assert!(
                    is_folder || error.to_string() == "not a regular file",
                    "{path:?}: {error}"
                );
            }
        }
        assert!(open(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_link_is_followed_to_a_regular_file_but_not_for_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [link, target] = ["link", "target"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(open_lock(&link).unwrap_err().to_string(), "a symbolic link");
        assert!(!target.exists());
        std::fs::write(&target, "text").unwrap();
        assert_eq!(read_text(&link, 4).unwrap(), "text");
    }

    #[test]
    fn what_is_not_a_regular_file_is_never_renamed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (paths, _listener) = special(folder.path());
        let [link, dead_link, target] =
            ["link", "dead", "target"].map(|name| folder.path().join(name));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        std::os::unix::fs::symlink("missing", &dead_link).unwrap();
        let kind = |path: &Path| std::fs::symlink_metadata(path).unwrap().file_type();
        for path in paths.iter().chain([&link, &dead_link]) {
            let before = kind(path);
            let source = folder.path().join("source");
            std::fs::write(&source, "new").unwrap();
            for result in [
                replace(path, b"new"),
                replace_unsynced(path, b"new"),
                rename(&source, path),
                check_replaceable(path),
            ] {
                let error = result.unwrap_err().to_string();
                let known = ["not a regular file", "a symbolic link", "a folder, not a file"];
                assert!(known.iter().any(|it| error.ends_with(it)), "{path:?}: {error}");
            }
            assert_eq!(kind(path), before, "{path:?}");
            assert!(source.exists());
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        rename(&folder.path().join("source"), &target).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, paths.len() + 3, "no draft is left");
    }

    #[test]
    fn a_secret_is_read_from_the_users_own_regular_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
        std::fs::write(&file, "secret").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_secret_text(&file, 10).unwrap(), "secret");
        assert_eq!(read_secret(&link, 10).unwrap_err().to_string(), "a symbolic link");
        assert_eq!(read_secret(&file, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let (paths, _listener) = special(folder.path());
        for path in paths {
            assert!(read_secret(&path, 10).is_err(), "{path:?}");
        }
        // Only root can give a file to another user.
        if nix::unistd::geteuid().is_root() {
            nix::unistd::chown(&file, Some(nix::unistd::Uid::from_raw(12_345)), None).unwrap();
            let error = read_secret(&file, 10).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("uid 12345"), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_replaced_file_is_private_and_an_abandoned_draft_is_removed() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "old").unwrap();
        let draft = folder.path().join(".unfinished-1");
        let recent = folder.path().join(".unfinished-2");
        std::fs::write(&recent, "").unwrap();
        let file = File::create(&draft).unwrap();
        file.set_modified(std::time::SystemTime::now() - 2 * ABANDONED).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!draft.exists() && recent.exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_held_lock_times_out_and_a_new_lock_file_is_private() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock(&path, Duration::ZERO).unwrap();
        assert_eq!(held.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let error = lock(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(held);
        assert!(lock(&path, Duration::ZERO).is_ok());
    }
}
