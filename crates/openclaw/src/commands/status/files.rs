//! The state folder: how large it is, and who may read it.

use std::fs;
use std::path::Path;

use crate::commands::check::Check;

/// More files are not counted.
const MAX_FILES: usize = 100_000;
/// Parts of the folder that may grow, with what they are.
const PARTS: [(&str, &str); 4] = [
    ("sessions.db", "conversations"),
    ("logs", "logs"),
    ("spill", "large results"),
    ("mcp", "what is known of servers"),
];
/// Files that are nobody else's business.
const PRIVATE: [&str; 6] =
    ["gateway-token", "gateway.json", "sessions.db", "sessions.db-wal", "chat-history", "logs"];

/// How large it is.
pub(super) fn sizes(state: &Path) -> Vec<Check> {
    if !state.exists() {
        return vec![Check::note(format!("{} does not exist yet", state.display()))];
    }
    let parts = PARTS.iter().filter_map(|(name, what)| {
        let size = size(&state.join(name));
        (size > 0).then(|| format!("{what} {}", words(size)))
    });
    let parts: Vec<String> = parts.collect();
    let total = words(size(state));
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    vec![Check::good(format!("{}: {total}{parts}", state.display()))]
}

/// The size of a file, or of all files in a folder. Links are not followed.
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

/// "12 KB"
fn words(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Who may read what is kept there.
#[cfg(unix)]
pub(super) fn permissions(state: &Path) -> Vec<Check> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut checks = Vec::new();
    for path in std::iter::once(state.to_owned()).chain(PRIVATE.map(|name| state.join(name))) {
        let Ok(about) = path.metadata() else { continue };
        let mode = about.permissions().mode() & 0o777;
        // In a folder that others cannot enter, nothing can be read by them.
        if mode & 0o077 != 0 && path != state && is_closed(state) {
            continue;
        }
        if mode & 0o077 != 0 {
            let wanted = if about.is_dir() { "700" } else { "600" };
            let shown = path.display();
            checks.push(Check::bad(
                format!("others may use {shown} (mode {mode:o})"),
                Some(format!("`chmod {wanted} {shown}`")),
            ));
        }
    }
    if checks.is_empty() && state.exists() {
        checks.push(Check::good("only you may read what is kept there"));
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
