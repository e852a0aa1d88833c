//! The keychain of the operating system, with the service name `openclaw`.
//!
//! macOS: Keychain Services. Windows: Credential Manager. Elsewhere: the Secret Service (GNOME
//! Keyring, KWallet, KeePassXC) over D-Bus; its C library is part of the program, so none has to be
//! installed.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use keyring_core::api::CredentialStoreApi as _;
use keyring_core::{Entry, Error, Result};

use crate::SecretString;

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
#[cfg(all(unix, not(target_os = "macos")))]
use dbus_secret_service_keyring_store::Store;
#[cfg(windows)]
use windows_native_keyring_store::Store;

/// The service name of all entries.
pub const SERVICE: &str = "openclaw";

/// How long the keychain may take: it may ask the user to unlock it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why an entry cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeychainError {
    /// There is no such entry.
    #[error("no such entry")]
    NoEntry,
    /// There are several.
    #[error("several entries have this name")]
    Ambiguous,
    /// No keychain is running.
    #[error("no keychain is running")]
    NoKeychain,
    /// It is locked, or the user denied access.
    #[error("the keychain is locked or access was denied")]
    Locked,
    /// It did not respond in time.
    #[error("the keychain does not respond")]
    Silent,
    /// The entry is not UTF-8.
    #[error("the entry is not UTF-8 text")]
    NotText,
    /// Anything else.
    #[error("the keychain failed")]
    Failed,
}

/// By variant only: the text of an error may contain the entry (`BadEncoding`).
impl From<Error> for KeychainError {
    fn from(error: Error) -> Self {
        match error {
            Error::NoEntry => Self::NoEntry,
            Error::Ambiguous(_) => Self::Ambiguous,
            Error::NoDefaultStore | Error::NotSupportedByStore(_) => Self::NoKeychain,
            Error::NoStorageAccess(_) => Self::Locked,
            Error::BadEncoding(_) => Self::NotText,
            _ => Self::Failed,
        }
    }
}

/// Returns an entry. Blocks, and may prompt the user: it can take a minute.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn get(name: &str) -> std::result::Result<SecretString, KeychainError> {
    let name = name.to_owned();
    bounded(move || Ok(entry(&name).and_then(|entry| entry.get_password())?.into()))
}

/// Creates or replaces an entry. Blocks like [`get`].
///
/// # Errors
/// If it cannot be written.
pub fn set(name: &str, value: &SecretString) -> std::result::Result<(), KeychainError> {
    let (name, value) = (name.to_owned(), value.clone());
    bounded(move || Ok(entry(&name).and_then(|entry| entry.set_password(value.expose()))?))
}

/// Runs an access in a thread, which keeps waiting if it takes too long: it cannot be interrupted.
fn bounded<T: Send + 'static>(
    access: impl FnOnce() -> std::result::Result<T, KeychainError> + Send + 'static,
) -> std::result::Result<T, KeychainError> {
    let (sender, result) = mpsc::channel();
    let thread = thread::Builder::new().name("keychain".to_owned());
    thread.spawn(move || drop(sender.send(access()))).map_err(|_| KeychainError::Failed)?;
    match result.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(KeychainError::Silent),
        // The library panicked.
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(KeychainError::Failed),
    }
}

/// Connects for every access: a connection that was kept would not survive a restart of the service.
fn entry(name: &str) -> Result<Entry> {
    let store = Store::new().map_err(|_| Error::NoDefaultStore)?;
    store.build(SERVICE, name, None)
}
