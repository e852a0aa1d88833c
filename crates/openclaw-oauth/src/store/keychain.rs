//! The keychain of the operating system, asked with a time limit.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::key::KeyFileReason;
use super::key_file::Key;

/// How long the keychain may take. It may be waiting for the user to unlock it.
const LIMIT: Duration = Duration::from_secs(5);
/// How long the creation of a key waits for another process that creates one. Less than `LIMIT`:
/// then the reason of a timeout is known.
const TURN: Duration = Duration::from_secs(4);

/// One entry of a keychain. Both methods block, and may prompt the user.
pub(super) trait KeychainEntry: fmt::Debug + Send + Sync {
    /// Returns the entry, or `None` if there is none.
    fn get(&self) -> Result<Option<Zeroizing<String>>, KeyFileReason>;

    /// Creates or replaces the entry.
    fn set(&self, value: &str) -> Result<(), KeyFileReason>;
}

/// Returns the user's keychain.
#[cfg(feature = "keychain")]
pub(super) fn system() -> Result<Arc<dyn KeychainEntry>, KeyFileReason> {
    Ok(Arc::new(system::SystemKeychain))
}

/// This build has no keychain.
#[cfg(not(feature = "keychain"))]
pub(super) fn system() -> Result<Arc<dyn KeychainEntry>, KeyFileReason> {
    Err(KeyFileReason::NotBuilt)
}

/// Returns the stored key, or `None` if there is none.
pub(super) async fn read(keychain: &Arc<dyn KeychainEntry>) -> Result<Option<Key>, KeyFileReason> {
    let keychain = keychain.clone();
    ask(move || stored(&*keychain)).await
}

/// Returns the stored key; without one, stores `candidate` and returns it. Only one process at a
/// time stores a key: the lock is held until the keychain has responded, also after a timeout.
pub(super) async fn read_or_create(
    keychain: &Arc<dyn KeychainEntry>,
    lock: &Path,
    candidate: Key,
) -> Result<Key, KeyFileReason> {
    let (keychain, lock) = (keychain.clone(), lock.to_owned());
    ask(move || {
        if let Some(key) = stored(&*keychain)? {
            return Ok(key);
        }
        let _turn = openclaw_files::lock(&lock, TURN).map_err(|_| KeyFileReason::TimedOut)?;
        if let Some(key) = stored(&*keychain)? {
            return Ok(key);
        }
        keychain.set(&candidate.to_base64())?;
        // Some services accept a value and drop it.
        match stored(&*keychain)? {
            Some(key) if key.id() == candidate.id() => Ok(key),
            _ => Err(KeyFileReason::Failed),
        }
    })
    .await
}

fn stored(keychain: &dyn KeychainEntry) -> Result<Option<Key>, KeyFileReason> {
    let Some(text) = keychain.get()? else { return Ok(None) };
    // An entry of another program is not replaced.
    Key::from_base64(&text).map(Some).ok_or(KeyFileReason::Failed)
}

/// Runs a blocking call with a time limit. It has a thread of its own: one of the runtime would
/// delay the end of the program for as long as the keychain hangs.
async fn ask<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, KeyFileReason> + Send + 'static,
) -> Result<T, KeyFileReason> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("keychain".to_owned());
    let spawned = thread.spawn(move || drop(sender.send(call())));
    spawned.map_err(|_| KeyFileReason::Failed)?;
    match tokio::time::timeout(LIMIT, receiver).await {
        Ok(Ok(result)) => result,
        // The library panicked.
        Ok(Err(_)) => Err(KeyFileReason::Failed),
        Err(_) => Err(KeyFileReason::TimedOut),
    }
}

#[cfg(feature = "keychain")]
mod system {
    use openclaw_secrets::keychain::{self, KeychainError};

    use super::{KeyFileReason, KeychainEntry, Zeroizing};

    const ENTRY: &str = "mcp-token-key";

    /// The keychain of the user's session.
    #[derive(Debug)]
    pub(super) struct SystemKeychain;

    impl KeychainEntry for SystemKeychain {
        fn get(&self) -> Result<Option<Zeroizing<String>>, KeyFileReason> {
            match keychain::get(ENTRY) {
                Ok(value) => Ok(Some(Zeroizing::new(value.expose().to_owned()))),
                Err(KeychainError::NoEntry) => Ok(None),
                Err(error) => Err(reason(error)),
            }
        }

        fn set(&self, value: &str) -> Result<(), KeyFileReason> {
            keychain::set(ENTRY, &value.into()).map_err(reason)
        }
    }

    fn reason(error: KeychainError) -> KeyFileReason {
        match error {
            KeychainError::NoKeychain => KeyFileReason::NoKeychain,
            KeychainError::Locked => KeyFileReason::Locked,
            KeychainError::Silent => KeyFileReason::TimedOut,
            _ => KeyFileReason::Failed,
        }
    }
}
