//! The file of approvals: read, replaced atomically, and locked for changes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Approvals, Approved, PATIENCE, ServerKey};

/// Version 1 knew servers by name only, for all agents.
const VERSION: u32 = 2;
/// A larger file is invalid.
const MAX_FILE: u64 = 32 * 1024 * 1024;
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    servers: Vec<ServerApprovals>,
}

/// The approved tools of a server.
#[derive(Serialize, Deserialize)]
struct ServerApprovals {
    #[serde(flatten)]
    key: ServerKey,
    tools: BTreeMap<String, Approved>,
}

/// Locks the file for changes until the returned value is dropped. Blocks for at most `patience`.
pub(super) fn take_turn(path: &Path, patience: Duration) -> io::Result<std::fs::File> {
    if let Some(folder) = path.parent() {
        openclaw_files::make_folder(folder)?;
    }
    openclaw_files::lock(&path.with_extension("lock"), patience)
}

pub(super) enum LoadedPins {
    Approvals(Approvals),
    Nonsense,
}

pub(super) fn read(path: &Path) -> io::Result<LoadedPins> {
    let text = match openclaw_files::read(path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(LoadedPins::Approvals(Approvals::default()));
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Ok(LoadedPins::Nonsense);
        }
        Err(error) => return Err(error),
    };
    // A power cut during the first write may leave an empty file.
    if text.is_empty() {
        return Ok(LoadedPins::Approvals(Approvals::default()));
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
        // They would apply to whatever has the name now, for every agent.
        Ok(Version { version }) if version < VERSION => {
            let file = path.display();
            tracing::info!(%file, "dropped the tool approvals of an earlier version");
            Ok(LoadedPins::Approvals(Approvals::default()))
        }
        _ => Ok(serde_json::from_slice::<File>(&text).map_or(LoadedPins::Nonsense, |file| {
            let servers = file.servers.into_iter();
            LoadedPins::Approvals(servers.map(|it| (it.key, it.tools)).collect())
        })),
    }
}

/// Replaces the file atomically; the new one is private from its first byte. The caller must hold
/// the lock.
pub(super) fn write(path: &Path, approvals: &Approvals) -> io::Result<()> {
    #[derive(Serialize)]
    struct FileRef<'a> {
        version: u32,
        servers: Vec<ServerRef<'a>>,
    }
    #[derive(Serialize)]
    struct ServerRef<'a> {
        #[serde(flatten)]
        key: &'a ServerKey,
        tools: &'a BTreeMap<String, Approved>,
    }
    let servers = approvals.iter().map(|(key, tools)| ServerRef { key, tools }).collect();
    let mut text = serde_json::to_vec_pretty(&FileRef { version: VERSION, servers })?;
    text.push(b'\n');
    // It could not be read any more.
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other("too many tools"));
    }
    // A power cut must not lose existing approvals or permanent ones. The very first entry without
    // a permanent approval is less important, and that call need not wait for the disk.
    let mut all = approvals.values().flat_map(|tools| tools.values());
    let is_decided = all.any(|it| !it.always.is_empty());
    if is_decided || path.exists() {
        openclaw_files::replace(path, &text)
    } else {
        openclaw_files::replace_unsynced(path, &text)
    }
}

/// Renames an invalid file and returns its new path. Another program may have replaced it with a
/// valid one meanwhile.
pub(super) fn set_aside(path: &Path) -> io::Result<(Approvals, Option<PathBuf>)> {
    let _turn = take_turn(path, PATIENCE)?;
    if let LoadedPins::Approvals(approvals) = read(path)? {
        return Ok((approvals, None));
    }
    let aside = path.with_extension("corrupt.json");
    openclaw_files::rename(path, &aside)?;
    tracing::warn!(
        file = %path.display(),
        set_aside = %aside.display(),
        "invalid file of tool approvals; every tool needs a new approval"
    );
    Ok((Approvals::default(), Some(aside)))
}
