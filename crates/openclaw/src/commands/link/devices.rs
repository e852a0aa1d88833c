//! The keys by which a gateway that pairs devices knows this machine, in the state folder. An operator of
//! the gateway approves each once.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use openclaw_protocol::client::DeviceKey;

/// The name of the key of commands.
pub(super) const OPERATOR: &str = "operator";
/// The number of nodes that can run at the same time.
const MAX_NODES: usize = 64;
/// A larger file is invalid.
const MAX_FILE: u64 = 4 * 1024;

/// The folder of the keys.
pub(super) struct Devices(PathBuf);

/// A key that no other process uses, until it is dropped.
pub(super) struct NodeKey {
    pub(super) key: DeviceKey,
    /// Holds the lock.
    pub(super) lock: File,
}

impl Devices {
    pub(super) fn new(state: &Path) -> Self {
        Self(state.join("devices"))
    }

    /// Returns the key of this name. It is generated the first time.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(super) fn key(&self, name: &str) -> io::Result<DeviceKey> {
        let path = self.0.join(format!("{name}.key"));
        openclaw_files::make_folder(&self.0)?;
        match openclaw_files::read_secret_text(&path, MAX_FILE) {
            Ok(text) => {
                let invalid = |error| {
                    let message = format!("{}: {error}; delete the file", path.display());
                    io::Error::new(io::ErrorKind::InvalidData, message)
                };
                DeviceKey::parse(&text).map_err(invalid)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = DeviceKey::generate().map_err(io::Error::other)?;
                openclaw_files::replace(&path, key.secret().expose().as_bytes())?;
                Ok(key)
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }

    /// Returns the first key of a node that is not in use: a gateway knows one connection per device.
    ///
    /// # Errors
    /// If it cannot be read or written, or all are in use.
    pub(super) fn free_node(&self) -> io::Result<NodeKey> {
        openclaw_files::make_folder(&self.0)?;
        for index in 0..MAX_NODES {
            let name = format!("node-{index}");
            let lock = openclaw_files::open_lock(&self.0.join(format!("{name}.lock")))?;
            if lock.try_lock().is_ok() {
                return Ok(NodeKey { key: self.key(&name)?, lock });
            }
        }
        Err(io::Error::other(format!(
            "too many nodes are running on this machine (limit: {MAX_NODES})"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_and_nodes_at_the_same_time_have_their_own() {
        let state = tempfile::tempdir().unwrap();
        let devices = Devices::new(state.path());
        assert_eq!(devices.key(OPERATOR).unwrap().id(), devices.key(OPERATOR).unwrap().id());
        let first = devices.free_node().unwrap();
        let second = devices.free_node().unwrap();
        assert_ne!(first.key.id(), second.key.id());
        let id = first.key.id();
        drop(first);
        assert_eq!(devices.free_node().unwrap().key.id(), id);
        std::fs::write(state.path().join("devices/operator.key"), "nonsense").unwrap();
        assert!(devices.key(OPERATOR).unwrap_err().to_string().contains("delete the file"));
    }
}
