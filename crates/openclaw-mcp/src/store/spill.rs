//! Stores large results in files that an agent can read in parts (B6).
//!
//! The folder and its files are private to the user. Files are removed after a while, and the
//! oldest ones when they exceed the size limit. Symbolic links are not followed, and files with
//! other names are not touched.
//!
//! The content is untrusted and stored unchanged: a reader that passes it to a model must label it
//! again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The suffix of our files.
const ENDING: &str = ".result.txt";
/// The prefix of temporary files.
const UNFINISHED: &str = ".result-";
/// An older temporary file was abandoned.
const MAX_UNFINISHED_AGE: Duration = Duration::from_secs(60 * 60);
/// The maximum number of files per cleanup; the rest is left for the next one.
const MAX_ENTRIES: usize = 20_000;
/// Cleanup runs after this many files.
const FILES_BETWEEN_CLEANINGS: u32 = 64;
/// The maximum length of a server or tool name in a file name.
const NAME_CHARS: usize = 40;

/// How long files are kept, and how large they may be together.
#[derive(Debug, Clone, Copy)]
pub struct SpillLimits {
    /// Older files are removed.
    pub max_age: Duration,
    /// The maximum total size; beyond it the oldest files are removed.
    pub max_bytes: u64,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(7 * 24 * 60 * 60), max_bytes: 512 * 1024 * 1024 }
    }
}

/// The folder of large results.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    limits: SpillLimits,
    usage: Mutex<Usage>,
}

/// The usage of the folder, as far as it is known without reading it.
#[derive(Debug, Default)]
struct Usage {
    bytes: u64,
    files_since_cleaning: u32,
}

impl Spill {
    /// Creates the folder if it does not exist, and cleans it up.
    ///
    /// # Errors
    /// If it cannot be created or read, or is a symbolic link.
    pub fn open(folder: impl Into<PathBuf>, limits: SpillLimits) -> io::Result<Self> {
        let folder = folder.into();
        openclaw_files::make_folder(&folder)?;
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                "the folder is a symbolic link",
            ));
        }
        // An existing folder may be accessible to others.
        #[cfg(unix)]
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let spill = Self { folder, limits, usage: Mutex::default() };
        spill.clean(&mut spill.usage(), 0)?;
        Ok(spill)
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a text and returns its file, which gets its name only when it is complete. Blocks on
    /// the disk: do not call it with large texts on an async thread.
    ///
    /// # Errors
    /// If it cannot be written, or is larger than the size limit.
    pub fn keep(&self, server: &str, tool: &str, text: &str) -> io::Result<PathBuf> {
        self.make_room(text.len() as u64)?;
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        let path = self.folder.join(name(server, tool)?);
        file.persist_noclobber(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// Reserves space for a file that is about to be written, and cleans up if that is due.
    fn make_room(&self, size: u64) -> io::Result<()> {
        if size > self.limits.max_bytes {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large to be stored"));
        }
        let mut usage = self.usage();
        usage.files_since_cleaning += 1;
        usage.bytes += size;
        let is_full = usage.bytes > self.limits.max_bytes;
        if is_full || usage.files_since_cleaning >= FILES_BETWEEN_CLEANINGS {
            self.clean(&mut usage, size)?;
        }
        Ok(())
    }

    fn usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes expired files, and the oldest ones until there is space for `needed` bytes.
    fn clean(&self, usage: &mut Usage, needed: u64) -> io::Result<()> {
        let now = SystemTime::now();
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)?.take(MAX_ENTRIES).flatten() {
            let Some(file) = Kept::read(&entry, now) else { continue };
            let max_age = if file.is_finished { self.limits.max_age } else { MAX_UNFINISHED_AGE };
            if file.age > max_age {
                file.remove();
            } else if file.is_finished {
                kept.push(file);
            }
        }
        kept.sort_unstable_by_key(|file| file.age);
        let mut bytes = needed;
        for file in kept {
            if bytes + file.size > self.limits.max_bytes {
                file.remove();
            } else {
                bytes += file.size;
            }
        }
        *usage = Usage { bytes, files_since_cleaning: 0 };
        Ok(())
    }
}

/// One of our files in the folder.
struct Kept {
    path: PathBuf,
    size: u64,
    age: Duration,
    is_finished: bool,
}

impl Kept {
    fn read(entry: &fs::DirEntry, now: SystemTime) -> Option<Self> {
        let name = entry.file_name();
        let name = name.to_str()?;
        let is_finished = name.ends_with(ENDING);
        if !is_finished && !name.starts_with(UNFINISHED) {
            return None;
        }
        // Of the entry itself: links are not followed.
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        // A modification time in the future counts as now.
        let age = now.duration_since(metadata.modified().ok()?).unwrap_or_default();
        Some(Self { path: entry.path(), size: metadata.len(), age, is_finished })
    }

    fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(file = %self.path.display(), %error, "cannot remove a large result");
        }
    }
}

/// The file name: server and tool for users, and a random part, so that it is unique and cannot be
/// guessed.
fn name(server: &str, tool: &str) -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let random = u64::from_be_bytes(random);
    Ok(format!("{}-{}-{random:016x}{ENDING}", harmless(server), harmless(tool)))
}

fn harmless(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().take(NAME_CHARS).map(|c| if fits(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(folder: &tempfile::TempDir, max_bytes: u64) -> Spill {
        let limits = SpillLimits { max_bytes, ..SpillLimits::default() };
        Spill::open(folder.path().join("spill"), limits).unwrap()
    }

    fn names(spill: &Spill) -> Vec<PathBuf> {
        fs::read_dir(spill.folder()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn make_older(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn a_text_is_kept_whole_under_a_harmless_name() {
        let folder = tempfile::tempdir().unwrap();
        let spill = spill(&folder, 1_000);
        let path = spill.keep("my.files", "../../etc/pass\0wd", "one two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
        assert_eq!(path.parent(), Some(spill.folder()));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("my_files-______etc_pass_wd-"), "{name}");
        assert_ne!(spill.keep("my.files", "x", "one").unwrap(), path);
        assert_eq!(names(&spill).len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn folder_and_files_are_private_even_if_the_folder_was_not() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("spill");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
        let path = spill(&folder, 1_000).keep("a", "b", "text").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(inner.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_oldest_files_are_removed_when_the_limit_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let spill = spill(&folder, 25);
        let oldest = spill.keep("a", "b", "0123456789").unwrap();
        make_older(&oldest, 100);
        let older = spill.keep("a", "b", "0123456789").unwrap();
        make_older(&older, 50);
        let newest = spill.keep("a", "b", "0123456789").unwrap();
        assert!(!oldest.exists() && older.exists() && newest.exists());
        let too_large = spill.keep("a", "b", &"0123456789".repeat(3));
        assert_eq!(too_large.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(newest.exists());
    }

    #[test]
    fn expired_files_are_removed_and_foreign_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let week = 7 * 24 * 60 * 60;
        let spilled = spill(&folder, 1_000);
        let ours = spilled.keep("a", "b", "text").unwrap();
        let theirs = spilled.folder().join("notes.txt");
        let unfinished = spilled.folder().join(".result-abc");
        fs::write(&theirs, "text").unwrap();
        fs::write(&unfinished, "te").unwrap();
        for path in [&ours, &theirs, &unfinished] {
            make_older(path, week + 60);
        }
        let spill = spill(&folder, 1_000);
        assert_eq!(names(&spill), [theirs]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside.txt");
        fs::write(&outside, "0123456789").unwrap();
        make_older(&outside, 1_000_000_000);
        let inner = spill(&folder, 1_000).folder().to_owned();
        std::os::unix::fs::symlink(&outside, inner.join("a-b-0.result.txt")).unwrap();
        spill(&folder, 1_000);
        assert!(outside.exists() && inner.join("a-b-0.result.txt").is_symlink());

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        assert!(Spill::open(link, SpillLimits::default()).is_err());
    }
}
