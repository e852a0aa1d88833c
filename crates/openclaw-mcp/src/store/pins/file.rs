//! The file of approvals: read, replaced at once, and changed by one program at a time.

use std::fs::TryLockError;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::{Approvals, PATIENCE};
use openclaw_tools::private;

const VERSION: u32 = 1;
/// A larger file is none of ours.
const MAX_FILE: u64 = 32 * 1024 * 1024;
/// How long others are left alone whose turn it is.
const PAUSE: Duration = Duration::from_millis(5);
/// The beginning of the name of a file that is being written.
const UNFINISHED: &str = ".pins-";
/// Nobody writes one for so long.
pub(super) const ABANDONED: Duration = Duration::from_secs(60 * 60);

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    servers: Approvals,
}

/// What tells one state of the file from another. It is replaced with every change: mostly the number
/// of the file is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Stamp {
    /// None if there is no file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self { modified: about.modified().ok(), length: about.len(), number })
    }
}

/// Keeps others from changing the file until this is dropped. Blocks, but not for ever.
pub(super) fn take_turn(path: &Path, patience: Duration) -> io::Result<std::fs::File> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    let mut options = private::options();
    options.write(true).create(true).truncate(false);
    let lock = path.with_extension("lock");
    let file = options.open(&lock)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                let message = format!("another process has locked {}", lock.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

pub(super) enum Found {
    Approvals(Approvals),
    Nonsense,
}

pub(super) fn read(path: &Path) -> io::Result<Found> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found::Approvals(Approvals::default()));
        }
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Ok(Found::Nonsense);
    }
    // The first one ever may have been cut short so by a power cut.
    if text.is_empty() {
        return Ok(Found::Approvals(Approvals::default()));
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    match serde_json::from_slice::<Version>(&text) {
        Ok(Version { version }) if version > VERSION => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the tool approvals were written by a newer version of this program",
        )),
        _ => Ok(serde_json::from_slice::<File>(&text)
            .map_or(Found::Nonsense, |file| Found::Approvals(file.servers))),
    }
}

/// Removes what a program left behind that was killed while it wrote.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let written = || entry.metadata().and_then(|about| about.modified()).ok();
        let age = || written().and_then(|written| written.elapsed().ok());
        if is_ours && age().is_some_and(|age| age > ABANDONED) {
            // Next time, then.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A new file takes the place of the old one at once; it is private from its first byte. Only for those
/// whose turn it is.
pub(super) fn write(path: &Path, approvals: &Approvals) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    sweep(folder);
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    #[derive(Serialize)]
    struct FileRef<'a> {
        version: u32,
        servers: &'a Approvals,
    }
    let mut text = serde_json::to_vec_pretty(&FileRef { version: VERSION, servers: approvals })?;
    text.push(b'\n');
    file.write_all(&text)?;
    // A power cut must not cost what was there before, or what somebody has decided for good. That the first
    // tool ever was seen is no such thing, and the first call ever need not wait for the disk.
    let is_decided = approvals.values().flat_map(|tools| tools.values()).any(|it| it.for_good);
    if is_decided || path.exists() {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Moves a file that cannot be understood out of the way; where to. Another program may have done so by
/// now, and written one that can be.
pub(super) fn set_aside(path: &Path) -> io::Result<(Approvals, Option<PathBuf>)> {
    let _turn = take_turn(path, PATIENCE)?;
    if let Found::Approvals(approvals) = read(path)? {
        return Ok((approvals, None));
    }
    let aside = path.with_extension("corrupt.json");
    std::fs::rename(path, &aside)?;
    tracing::warn!(
        file = %path.display(),
        set_aside = %aside.display(),
        "approvals of tools cannot be understood; every tool will be asked about again"
    );
    Ok((Approvals::default(), Some(aside)))
}
