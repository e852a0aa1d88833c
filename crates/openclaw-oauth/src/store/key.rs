//! The key that encrypts stored grants.
//!
//! It is an entry of the keychain; without one, a file that only the owner can read. A stored grant
//! names its key by id, and every key that is found is tried by id: so grants stay readable when the
//! keychain is not always available.
//!
//! - Reading looks in memory, in the key file, then in the keychain.
//! - Saving uses the key file if there is one, else the keychain. If that does not respond, it
//!   creates a key file.
//!
//! A key file stays in use although the keychain may respond later: some processes of a user reach
//! the keychain and others do not, such as those of a remote shell, and all must read the grants.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::key_file::{Key, KeyFile, blocking};
use super::keychain::{self, KeychainEntry};

/// How long a keychain that failed is not asked again.
const RETRY: Duration = Duration::from_secs(5 * 60);

/// How the key of the stored grants is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOptions {
    /// Whether the keychain of the operating system is used.
    pub use_keychain: bool,
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self { use_keychain: true }
    }
}

/// Where the key of the stored grants is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the keychain of the operating system.
    Keychain,
    /// In a file that only the owner can read.
    File(KeyFileReason),
}

/// Why the key is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileReason {
    /// [`KeyOptions::use_keychain`] is off.
    #[error("the keychain is turned off")]
    Disabled,
    /// The program was built without the feature `keychain`.
    #[error("this build does not support keychains")]
    NotBuilt,
    /// No keychain is running.
    #[error("no keychain is running on this system")]
    NoKeychain,
    /// It is locked, or the user denied the access.
    #[error("the keychain is locked or access was denied")]
    Locked,
    /// It did not respond in time.
    #[error("the keychain did not respond within 5 s")]
    TimedOut,
    /// It failed in another way.
    #[error("the keychain failed")]
    Failed,
    /// It was created when the keychain did not respond, and stays in use.
    #[error("there was no keychain when it was created")]
    Existing,
}

/// The key of an envelope was not found.
#[derive(Debug)]
pub(super) enum MissingKey {
    /// Neither the file nor the keychain has it.
    Unknown,
    /// The keychain may have it, and does not respond.
    Keychain(KeyFileReason),
    /// The key file may have it, and cannot be read.
    File(io::Error),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keychain => f.write_str("keychain"),
            Self::File(reason) => write!(f, "key file ({reason})"),
        }
    }
}

impl KeyFileReason {
    /// Whether the user can change it by unlocking the keychain.
    pub(super) fn is_temporary(self) -> bool {
        matches!(self, Self::Locked | Self::TimedOut | Self::Failed)
    }
}

/// All keys of a state folder.
#[derive(Debug)]
pub(super) struct Keys {
    file: KeyFile,
    keychain: Result<Arc<dyn KeychainEntry>, KeyFileReason>,
    known: Mutex<Known>,
    /// A process has one store: the user is warned once.
    is_warned: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    keychain: Option<Key>,
    file: Option<Key>,
    /// When the keychain failed last.
    failed: Option<(Instant, KeyFileReason)>,
}

impl Keys {
    /// `folder` is where the key file is, if there is one.
    pub(super) fn new(folder: &Path, options: KeyOptions) -> Self {
        let KeyOptions { use_keychain } = options;
        let keychain = if use_keychain { keychain::system() } else { Err(KeyFileReason::Disabled) };
        Self::with_keychain(folder, keychain)
    }

    pub(super) fn with_keychain(
        folder: &Path,
        keychain: Result<Arc<dyn KeychainEntry>, KeyFileReason>,
    ) -> Self {
        Self {
            file: KeyFile::new(folder),
            keychain,
            known: Mutex::default(),
            is_warned: AtomicBool::new(false),
        }
    }

    pub(super) fn file(&self) -> &KeyFile {
        &self.file
    }

    /// Returns the key with this id.
    pub(super) async fn find(&self, id: &str) -> Result<Key, MissingKey> {
        let mut known = self.known.lock().await;
        let is_it = |key: &Option<Key>| key.clone().filter(|key| key.id() == id);
        if let Some(key) = is_it(&known.keychain).or_else(|| is_it(&known.file)) {
            return Ok(key);
        }
        let in_file = self.file.read_async().await;
        if let Ok(Some(key)) = &in_file {
            known.file = Some(key.clone());
            if key.id() == id {
                return Ok(key.clone());
            }
        }
        match self.ask_keychain(&mut known, None).await {
            Ok(Some(key)) if key.id() == id => Ok(key),
            result => Err(match (in_file, result) {
                (Err(error), _) => MissingKey::File(error),
                (_, Err(reason)) => MissingKey::Keychain(reason),
                _ => MissingKey::Unknown,
            }),
        }
    }

    /// Returns the key to encrypt with, and where it is kept. Creates it if necessary.
    pub(super) async fn for_saving(&self) -> io::Result<(Key, KeyPlace)> {
        let mut known = self.known.lock().await;
        if let Some(key) = self.file.read_async().await? {
            known.file = Some(key.clone());
            let reason = self.keychain.as_ref().err().copied().unwrap_or(KeyFileReason::Existing);
            return Ok((key, KeyPlace::File(reason)));
        }
        let candidate = Key::random()?;
        let reason = match self.ask_keychain(&mut known, Some(candidate.clone())).await {
            Ok(Some(key)) => return Ok((key, KeyPlace::Keychain)),
            Ok(None) => KeyFileReason::Failed,
            Err(reason) => reason,
        };
        // A key in memory was used by this process: the file was deleted since.
        let candidate = known.file.clone().unwrap_or(candidate);
        let file = self.file.clone();
        let key = blocking(move || file.read_or_create(&candidate)).await?;
        known.file = Some(key.clone());
        if !self.is_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                file = %self.file.path().display(), %reason,
                "MCP tokens are encrypted with a key in a file, not in the keychain"
            );
        }
        Ok((key, KeyPlace::File(reason)))
    }

    /// Returns where the key is kept, or where it would be created.
    pub(super) async fn place(&self) -> KeyPlace {
        let mut known = self.known.lock().await;
        let asked = match self.file.path().exists() {
            true => {
                self.keychain.as_ref().map_or_else(|it| Err(*it), |_| Err(KeyFileReason::Existing))
            }
            false => self.ask_keychain(&mut known, None).await.map(drop),
        };
        asked.map_or_else(KeyPlace::File, |()| KeyPlace::Keychain)
    }

    /// Reads the key from the keychain; with a candidate, creates it there.
    async fn ask_keychain(
        &self,
        known: &mut Known,
        candidate: Option<Key>,
    ) -> Result<Option<Key>, KeyFileReason> {
        let keychain = self.keychain.as_ref().map_err(|reason| *reason)?;
        if let Some(key) = &known.keychain {
            return Ok(Some(key.clone()));
        }
        if let Some((at, reason)) = known.failed
            && at.elapsed() < RETRY
        {
            return Err(reason);
        }
        let result = match candidate {
            None => keychain::read(keychain).await,
            Some(candidate) => {
                let lock = self.file.folder().join("tokens.keychain.lock");
                keychain::read_or_create(keychain, &lock, candidate).await.map(Some)
            }
        };
        match &result {
            Ok(key) => known.keychain = key.clone(),
            Err(reason) => known.failed = Some((Instant::now(), *reason)),
        }
        result
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
pub(super) mod tests;
