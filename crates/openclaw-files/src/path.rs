//! Absolute paths in the form that users and other programs know.

use std::io;
use std::path::{Path, PathBuf};

/// How Windows writes paths that are taken as they stand. Most programs do not take them.
const VERBATIM: &str = r"\\?\";
/// The names of devices, which mean the device in every folder.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// The names of devices that a digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Returns the absolute path of a file or folder that exists, without links.
///
/// On Windows, also one on a share, or with more than 260 characters, is not a `\\?\` path. It is only if
/// it would mean something else otherwise, as `con` does.
///
/// # Errors
/// If it does not exist, or cannot be found.
pub fn canonical(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "what it returns is rewritten here")]
    let found = path.as_ref().canonicalize()?;
    let usual = found.to_str().and_then(usual);
    Ok(usual.map_or(found, PathBuf::from))
}

/// Returns a `\\?\` path as it is usually written; `None` if that would be another path.
fn usual(path: &str) -> Option<String> {
    let path = path.strip_prefix(VERBATIM)?;
    let (start, path, names) = match path.strip_prefix(r"UNC\") {
        Some(share) => (r"\\", share, share),
        None => ("", path, below_disk(path)?),
    };
    // The root of a disk or share ends with a separator.
    let names = names.strip_suffix('\\').unwrap_or(names);
    let are_usual = names.is_empty() || names.split('\\').all(is_usual);
    are_usual.then(|| format!("{start}{path}"))
}

/// Returns what follows `C:\`.
fn below_disk(path: &str) -> Option<&str> {
    let below = path.strip_prefix(|c: char| c.is_ascii_alphabetic())?;
    below.strip_prefix(r":\")
}

/// Whether Windows takes a name as it stands, wherever it is used.
fn is_usual(name: &str) -> bool {
    let is_plain = |c: char| c >= ' ' && !r#"<>:"/|?*"#.contains(c);
    !name.is_empty()
        && name.chars().all(is_plain)
        && !name.ends_with(['.', ' '])
        && !is_device(name)
}

/// Whether a name means a device, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ').to_uppercase();
    let is_numbered = |device: &str| {
        let mut number = stem.strip_prefix(device).unwrap_or_default().chars();
        matches!((number.next(), number.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_disks_and_shares_are_written_as_usual() {
        let long = format!(r"C:\{}", vec!["a folder"; 60].join(r"\"));
        for path in [
            r"C:\",
            r"z:\Users\Zoë\.openclaw",
            r"C:\console\com\lpt10\con-1\nul_",
            r"\\server\share",
            r"\\server\share\",
            r"\\10.0.0.1\c$\My Work\x.y",
            &long,
        ] {
            let verbatim = match path.strip_prefix(r"\\") {
                Some(share) => format!(r"\\?\UNC\{share}"),
                None => format!(r"\\?\{path}"),
            };
            assert_eq!(usual(&verbatim).as_deref(), Some(path));
        }
    }

    #[test]
    fn a_path_that_would_mean_something_else_is_kept() {
        for path in [
            r"\\?\C:\x\con",
            r"\\?\C:\NUL.txt\x",
            r"\\?\C:\lpt1",
            r"\\?\C:\COM¹.log",
            r"\\?\C:\aux .txt",
            r"\\?\C:\x.",
            r"\\?\C:\x \y",
            r"\\?\C:\..\x",
            r"\\?\C:\a/b",
            r"\\?\C:\a:b",
            r"\\?\C:",
            r"\\?\UNC\server\share\prn",
            r"\\?\UNC\server\share\x.",
            r"\\?\Volume{1234}\x",
            r"\\?\GLOBALROOT\Device\x",
        ] {
            assert_eq!(usual(path), None, "{path}");
        }
        for path in [r"C:\x", r"\\server\share", "/home/x", r"\\.\pipe\x", ""] {
            assert_eq!(usual(path), None, "{path} is no such path");
        }
    }

    #[test]
    fn a_folder_is_found_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let found = canonical(folder.path().join(".").join("..").join(folder.path())).unwrap();
        assert!(found.is_absolute() && found.is_dir());
        assert!(!found.to_string_lossy().starts_with(VERBATIM), "{}", found.display());
        assert!(canonical(folder.path().join("none")).is_err());
    }
}
