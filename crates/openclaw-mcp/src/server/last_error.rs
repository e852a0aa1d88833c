//! Why a server could not be used when it was last tried, on disk: so that commands that start no
//! server can report it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::server::status::ServerState;
use crate::server::supervisor::{ServerError, StateChange};
use crate::store::memory::{self, Memory};

/// The maximum size of the file.
const MAX_BYTES: u64 = 256 * 1024;

/// The file of one server.
#[derive(Debug, Default)]
pub struct TroubleFile {
    path: Option<PathBuf>,
}

/// Why a server could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastTrouble {
    at_ms: u64,
    /// The error.
    pub error: ServerError,
    /// Whether a login was required.
    #[serde(default)]
    pub needs_auth: bool,
}

impl LastTrouble {
    /// Returns how long ago it was.
    #[must_use]
    pub fn age(&self) -> Duration {
        let at = UNIX_EPOCH.checked_add(Duration::from_millis(self.at_ms));
        at.and_then(|at| at.elapsed().ok()).unwrap_or_default()
    }
}

impl Memory {
    /// The file next to the cache, with the last error of the server.
    pub fn trouble(&self) -> TroubleFile {
        TroubleFile { path: self.beside("error.json") }
    }
}

impl TroubleFile {
    /// Reads the file; `None` if the server was usable when it was last tried, or never tried.
    /// Blocks.
    #[must_use]
    pub fn read(&self) -> Option<LastTrouble> {
        let bytes = openclaw_files::read(self.path.as_ref()?, MAX_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes the error of a state change, or removes that of the past. Errors are only logged.
    /// Blocks, but not for long: the file is small, and states change rarely.
    pub(crate) fn note(&self, change: StateChange<'_>) {
        let Some(path) = &self.path else { return };
        let done = match (change.state, change.trouble) {
            (ServerState::Ready, _) => match std::fs::remove_file(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
            (
                ServerState::Restarting | ServerState::Failed | ServerState::NeedsAuth,
                Some(error),
            ) => {
                let needs_auth = change.state == ServerState::NeedsAuth;
                return self.write(error.clone(), needs_auth);
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::debug!(%error, "cannot remove the last error of a server");
        }
    }

    /// Writes an error. Blocks.
    pub fn keep(&self, error: ServerError) {
        self.write(error, false);
    }

    fn write(&self, error: ServerError, needs_auth: bool) {
        let Some(path) = &self.path else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let trouble = serde_json::to_vec(&LastTrouble { at_ms, error, needs_auth });
        let trouble = trouble.unwrap_or_default();
        if let Err(error) = memory::write(path, &trouble) {
            tracing::debug!(%error, "cannot write the last error of a server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_kept_until_the_server_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = TroubleFile { path: Some(folder.path().join("not-yet").join("x.json")) };
        assert_eq!(file.read(), None);
        let error = ServerError::new("connection refused");
        let change = |state, trouble| file.note(StateChange { state, restarts: 0, trouble });
        change(ServerState::Failed, Some(&error));
        change(ServerState::Closed, None);
        let trouble = file.read().unwrap();
        assert_eq!(trouble.error, error);
        assert!(trouble.age() < Duration::from_secs(600));
        assert!(!trouble.needs_auth);
        change(ServerState::NeedsAuth, Some(&error));
        assert!(file.read().unwrap().needs_auth);
        change(ServerState::Ready, None);
        assert_eq!(file.read(), None);
    }
}
