//! The state folder: its size, the free disk space, and its permissions.

use std::fs;
use std::path::Path;

use crate::commands::check::Check;

/// The maximum number of files to count.
const MAX_FILES: usize = 100_000;
/// Files and folders that may grow, with their labels.
const PARTS: [(&[&str], &str); 4] = [
    (&["sessions.db", "sessions.db-wal", "sessions.db-shm"], "sessions"),
    (&["logs"], "logs"),
    (&["spill"], "large results"),
    (&["mcp"], "server data"),
];
/// Below this many free bytes, nothing can be saved: the database grows by more.
const FULL: u64 = 1_000_000;
/// Below this many free bytes, the disk is almost full.
const LITTLE: u64 = 50_000_000;
/// Files that other users must not be able to read.
#[cfg(unix)]
const PRIVATE: [&str; 8] = [
    "gateway-token",
    "gateway.json",
    "sessions.db",
    "sessions.db-wal",
    "chat-history",
    "logs",
    "mcp/tokens",
    "mcp/tokens.key",
];

/// Checks the free disk space, and reports the size of the folder.
pub(super) fn sizes(state: &Path) -> Vec<Check> {
    let checks = room_left(state).and_then(|left| room(left, state)).into_iter();
    checks.chain([parts(state)]).collect()
}

/// Checks the free disk space; `None` if there is enough.
fn room(left: u64, state: &Path) -> Option<Check> {
    let (state, left_words) = (state.display(), words(left));
    let advice =
        format!("free some disk space; files in {state}/logs and {state}/spill can be deleted");
    match left {
        0..FULL => {
            let words = format!("the disk of {state} is full ({left_words} left): saving may fail");
            Some(Check::bad(words, Some(advice)))
        }
        FULL..LITTLE => {
            let words = format!("the disk of {state} is almost full: {left_words} left");
            Some(Check { advice: Some(advice), ..Check::note(words) })
        }
        LITTLE.. => None,
    }
}

/// Returns the free bytes on the disk of the folder, or of its nearest existing parent.
#[cfg(unix)]
fn room_left(state: &Path) -> Option<u64> {
    let there = state.ancestors().find(|folder| folder.exists())?;
    let disk = nix::sys::statvfs::statvfs(there).ok()?;
    Some(product(disk.blocks_available(), disk.fragment_size()))
}

/// Multiplies what is not of the same type on every system.
#[cfg(unix)]
fn product(blocks: impl Into<u64>, size: impl Into<u64>) -> u64 {
    blocks.into().saturating_mul(size.into())
}

#[cfg(not(unix))]
fn room_left(_: &Path) -> Option<u64> {
    None
}

fn parts(state: &Path) -> Check {
    if !state.exists() {
        return Check::note(format!("{} does not exist yet", state.display()));
    }
    let parts = PARTS.iter().filter_map(|(names, what)| {
        let size: u64 = names.iter().map(|name| size(&state.join(name))).sum();
        (size > 0).then(|| format!("{what} {}", words(size)))
    });
    let parts: Vec<String> = parts.collect();
    let total = words(size(state));
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    Check::good(format!("{}: {total}{parts}", state.display()))
}

/// Returns the size of a file, or of all files in a folder. Symlinks are not followed.
fn size(path: &Path) -> u64 {
    let mut waiting = vec![path.to_owned()];
    let (mut total, mut seen) = (0_u64, 0);
    while let Some(path) = waiting.pop() {
        seen += 1;
        if seen > MAX_FILES {
            break;
        }
        let Ok(about) = path.symlink_metadata() else { continue };
        if about.is_dir() {
            let inside = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(inside.map(|entry| entry.path()));
        } else {
            total = total.saturating_add(about.len());
        }
    }
    total
}

/// Formats a size: "12 KB".
fn words(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Checks that other users cannot read the folder or its private files.
#[cfg(unix)]
pub(super) fn permissions(state: &Path) -> Vec<Check> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut checks = Vec::new();
    for path in std::iter::once(state.to_owned()).chain(PRIVATE.map(|name| state.join(name))) {
        let Ok(about) = path.metadata() else { continue };
        let mode = about.permissions().mode() & 0o777;
        // Other users cannot read anything in a folder that they cannot enter.
        if mode & 0o077 != 0 && path != state && is_closed(state) {
            continue;
        }
        if mode & 0o077 != 0 {
            let wanted = if about.is_dir() { "700" } else { "600" };
            let shown = path.display();
            checks.push(Check::bad(
                format!("{shown} is accessible to other users (mode {mode:o})"),
                Some(format!("run `chmod {wanted} {shown}`")),
            ));
        }
    }
    if checks.is_empty() && state.exists() {
        checks.push(Check::good("only accessible to you"));
    }
    checks
}

#[cfg(unix)]
fn is_closed(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    folder.metadata().is_ok_and(|about| about.permissions().mode() & 0o077 == 0)
}

#[cfg(not(unix))]
pub(super) fn permissions(_: &Path) -> Vec<Check> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::Verdict;

    #[test]
    fn a_full_disk_is_a_problem_and_an_almost_full_one_is_a_note() {
        let verdict = |left| room(left, Path::new("/state")).map(|check| check.verdict);
        assert_eq!(verdict(0), Some(Verdict::Bad));
        assert_eq!(verdict(20_000), Some(Verdict::Bad));
        assert_eq!(verdict(30_000_000), Some(Verdict::Note));
        assert_eq!(verdict(80_000_000), None);
        let full = room(0, Path::new("/state")).unwrap();
        assert!(full.what.contains("/state is full (0 bytes left)"), "{}", full.what);
        assert!(full.advice.unwrap().contains("/state/logs"));
    }

    #[test]
    fn all_files_of_the_database_are_counted_as_sessions() {
        let state = tempfile::tempdir().unwrap();
        for (name, size) in [("sessions.db", 32_000), ("sessions.db-wal", 241_000)] {
            fs::write(state.path().join(name), vec![0; size]).unwrap();
        }
        let told = parts(state.path()).what;
        assert!(told.ends_with(": 273 KB (sessions 273 KB)"), "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn free_space_of_a_missing_folder_is_that_of_its_parent() {
        let state = tempfile::tempdir().unwrap();
        assert!(room_left(&state.path().join("not/yet")).is_some());
    }
}
