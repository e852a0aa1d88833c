//! Files by path. Every path is resolved from an open folder, so that neither `..` nor a symbolic
//! link leads out of it.

use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::{Loaded, too_large};

/// Reads a file, if it is in one of these folders. A relative path is looked for in each.
///
/// # Errors
/// Why it cannot be attached.
pub(super) fn read(path: &str, folders: &[PathBuf], max_bytes: usize) -> Result<Loaded, String> {
    if path.is_empty() {
        return Err("`path` is empty".to_owned());
    }
    let shown: String = path.chars().filter(|c| !c.is_control()).take(200).collect();
    let path = Path::new(path);
    let mut why = "is not in the workspace of the agent, nor in a folder of `--attach-from`";
    let mut problem = None;
    for folder in folders {
        let Some(inside) = relative(path, folder) else { continue };
        match open(folder, &inside, max_bytes) {
            Ok(bytes) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(Loaded { bytes, name, declared: None, url: None });
            }
            // It may be in another folder.
            Err(None) => why = "does not exist",
            Err(Some(other)) => problem = problem.or(Some(other)),
        }
    }
    Err(format!("`{shown}` {}", problem.as_deref().unwrap_or(why)))
}

/// Returns the part of a path below a folder; `None` if it is elsewhere.
fn relative(path: &Path, folder: &Path) -> Option<PathBuf> {
    let inside = match path.is_relative() {
        true => path.to_owned(),
        false => {
            // The folder itself may be reached through a link, as `/tmp` is on macOS.
            let real = openclaw_files::canonical(folder).ok();
            let mut folders = [Some(folder), real.as_deref()].into_iter().flatten();
            folders.find_map(|folder| path.strip_prefix(folder).ok().map(Path::to_owned))?
        }
    };
    let is_root = inside.as_os_str().is_empty();
    Some(if is_root { PathBuf::from(".") } else { inside })
}

/// Reads a file in a folder. The error is `None` if it does not exist.
fn open(folder: &Path, inside: &Path, max_bytes: usize) -> Result<Vec<u8>, Option<String>> {
    // The workspace is created when it is first used.
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(|_| None)?;
    // Opening a pipe would block until it has a writer.
    let opened = dir.open_with(inside, OpenOptions::new().read(true).nonblock(true));
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            Some("leads out of the allowed folders, by `..` or a link".to_owned())
        }
        ErrorKind::NotFound => None,
        kind => Some(format!("cannot be read: {kind}")),
    })?;
    let unreadable = |error: io::Error| Some(format!("cannot be read: {}", error.kind()));
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "is a folder" } else { "is not a regular file" };
        return Err(Some(what.to_owned()));
    }
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let too_large = || Err(Some(format!("is {}", too_large())));
    if metadata.len() > limit {
        return too_large();
    }
    // It may grow while it is read.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > max_bytes { too_large() } else { Ok(bytes) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_below_the_folders_are_read() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [inside.path().to_owned()];
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::fs::write(inside.path().join("notes.txt"), "notes").unwrap();
        std::fs::create_dir(inside.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(&secret, inside.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way")).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(inside.path().join("pipe")).status();
        assert!(pipe.unwrap().success());

        let read = |path: &str, max| read(path, &folders, max).map(|it| it.bytes);
        assert_eq!(read("notes.txt", 5).unwrap(), b"notes");
        let whole = inside.path().join("notes.txt");
        assert_eq!(read(whole.to_str().unwrap(), 5).unwrap(), b"notes");
        assert!(read("notes.txt", 4).unwrap_err().contains("too large"));
        for (path, why) in [
            (secret.to_str().unwrap(), "is not in the workspace"),
            ("/etc/shadow", "is not in the workspace"),
            ("link", "leads out"),
            ("way/secret", "leads out"),
            ("../secret", "leads out"),
            ("folder", "is a folder"),
            ("pipe", "is not a regular file"),
            ("missing", "does not exist"),
            (".", "is a folder"),
            ("", "`path` is empty"),
            ("a\0b", "cannot be read"),
        ] {
            let error = read(path, 100).unwrap_err();
            assert!(error.contains(why), "{path:?}: {error}");
        }
    }

    #[test]
    fn a_huge_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("huge")).unwrap();
        file.set_len(1 << 30).unwrap();
        let error = read("huge", &[folder.path().to_owned()], 1_000).err().unwrap();
        assert!(error.contains("too large"), "{error}");
    }
}
