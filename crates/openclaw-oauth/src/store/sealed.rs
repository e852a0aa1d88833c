//! The encrypted files of a folder, and the locks beside them.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::envelope::{self, Damage, EnvelopeKind, StoredEnvelope};
use super::key::{KeyPlace, Keys, MissingKey};
use super::key_file::{Key, blocking};
use super::{GrantLock, Version};
use crate::error::AuthError;
use crate::grant::GrantKey;

/// A larger file is invalid.
const MAX_FILE: u64 = 1024 * 1024;
/// Polling interval for a lease.
const PAUSE: Duration = Duration::from_millis(20);

/// A folder of encrypted files, with the keys for them.
#[derive(Debug, Clone)]
pub(super) struct SealedFiles {
    folder: PathBuf,
    keys: Arc<Keys>,
}

impl SealedFiles {
    pub(super) fn new(folder: PathBuf, keys: Keys) -> Self {
        Self { folder, keys: Arc::new(keys) }
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, owner: &GrantKey, kind: EnvelopeKind) -> PathBuf {
        self.folder.join(format!("{}{}", envelope::file_stem(owner), kind.suffix()))
    }

    fn lock_path(&self, owner: &GrantKey) -> PathBuf {
        self.folder.join(format!("{}.lock", envelope::file_stem(owner)))
    }

    /// Reads and decrypts a file. `None` if there is none.
    pub(super) async fn read(
        &self,
        owner: &GrantKey,
        kind: EnvelopeKind,
    ) -> Result<Option<(Zeroizing<Vec<u8>>, Version)>, AuthError> {
        let path = self.path(owner, kind);
        let unusable = |cause: &dyn std::fmt::Display| unusable(&path, &owner.server, cause);
        match read(path.clone()).await {
            Ok(bytes) => {
                let envelope = StoredEnvelope::parse(&bytes).map_err(|damage| unusable(&damage))?;
                let content = self.open(&path, &envelope, owner, kind).await?;
                Ok(Some((content, version(&bytes))))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&error)),
        }
    }

    async fn open(
        &self,
        path: &Path,
        envelope: &StoredEnvelope,
        owner: &GrantKey,
        kind: EnvelopeKind,
    ) -> Result<Zeroizing<Vec<u8>>, AuthError> {
        let id = envelope.key_id();
        let key = self.keys.find(id).await.map_err(|missing| match missing {
            MissingKey::Unknown => {
                unusable(path, &owner.server, &"its key is neither in the keychain nor in a file")
            }
            MissingKey::Keychain(reason) => AuthError::Store(format!(
                "cannot decrypt {}: its key may be in the keychain, but {reason}; {}log in again \
                 with `openclaw mcp login {}`",
                path.display(),
                if reason.is_temporary() { "unlock the keychain, or " } else { "" },
                owner.server
            )),
            MissingKey::File(error) => self.bad_key_file(&error),
        })?;
        envelope.open(kind, owner, &key).map_err(|damage| unusable(path, &owner.server, &damage))
    }

    fn bad_key_file(&self, error: &io::Error) -> AuthError {
        let path = self.keys.file().path();
        let hint = match error.kind() {
            io::ErrorKind::InvalidData => {
                "; restore it, or delete it and log in to every server again"
            }
            _ => "",
        };
        AuthError::Store(format!("cannot use the key file {}: {error}{hint}", path.display()))
    }

    /// Encrypts and writes a file. From the moment it is being written, it completes even if the
    /// caller is cancelled, and the lease is held until then.
    pub(super) async fn write(
        &self,
        lease: Option<&GrantLock>,
        owner: &GrantKey,
        kind: EnvelopeKind,
        content: Zeroizing<Vec<u8>>,
    ) -> Result<Version, AuthError> {
        let path = self.path(owner, kind);
        let (key, _) = self.keys.for_saving().await.map_err(|error| self.bad_key_file(&error))?;
        let (store, owner) = (self.clone(), owner.clone());
        let (target, lease) = (path.clone(), lease.cloned());
        let write = move || {
            let _lease = lease;
            store.seal_and_replace(&target, &key, &owner, kind, &content)
        };
        blocking(write).await.map_err(|error| unwritable(&path, &error))
    }

    fn seal_and_replace(
        &self,
        path: &Path,
        key: &Key,
        owner: &GrantKey,
        kind: EnvelopeKind,
        content: &[u8],
    ) -> io::Result<Version> {
        let bytes = envelope::seal(kind, owner, key, content).map_err(io::Error::other)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the tokens are too large"));
        }
        openclaw_files::make_folder(&self.folder)?;
        openclaw_files::replace(path, &bytes)?;
        Ok(version(&bytes))
    }

    /// Returns paths and contents of one owner's files whose writers were killed before the file had its name.
    /// The writers held the lease, so none of them is still running.
    pub(super) async fn unfinished(
        &self,
        lease: &GrantLock,
        kind: EnvelopeKind,
    ) -> Vec<(PathBuf, Zeroizing<Vec<u8>>)> {
        let folder = self.folder.clone();
        let paths = blocking(move || Ok(openclaw_files::unfinished(&folder))).await;
        let mut found = Vec::new();
        for path in paths.unwrap_or_default() {
            // Not readable, or not complete: as good as not written.
            let Ok(bytes) = read(path.clone()).await else { continue };
            let Ok(envelope) = StoredEnvelope::parse(&bytes) else { continue };
            if envelope.owner() == *lease.key() {
                let content = self.open(&path, &envelope, lease.key(), kind).await;
                found.extend(content.ok().map(|content| (path, content)));
            }
        }
        found
    }

    /// Waits for the exclusive right to change the grant of this key.
    pub(super) async fn lock(
        &self,
        owner: &GrantKey,
        patience: Duration,
    ) -> Result<GrantLock, AuthError> {
        let started = Instant::now();
        let path = self.lock_path(owner);
        let (folder, lock) = (self.folder.clone(), path.clone());
        let open = move || {
            openclaw_files::make_folder(&folder)?;
            openclaw_files::open_lock(&lock)
        };
        let file = blocking(open).await.map_err(|error| unwritable(&path, &error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(GrantLock::new(owner.clone(), file)),
                Err(TryLockError::Error(error)) => return Err(unwritable(&path, &error)),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    return Err(AuthError::Store(format!(
                        "another login or refresh for `{}` is running; waited {} s",
                        owner.server,
                        patience.as_secs()
                    )));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Returns the paths of all files with a name of this kind.
    pub(super) async fn all(&self, kind: EnvelopeKind) -> Result<Vec<PathBuf>, AuthError> {
        let folder = self.folder.clone();
        let failed =
            |error| AuthError::Store(format!("cannot read {}: {error}", self.folder.display()));
        blocking(move || files(&folder, kind)).await.map_err(failed)
    }

    /// Returns whose content a file holds, by what it says itself, or `None` if it does not exist.
    /// Fails if its name is that of another owner.
    pub(super) async fn owner_of(
        &self,
        path: &Path,
        kind: EnvelopeKind,
    ) -> Result<Option<GrantKey>, AuthError> {
        let bytes = match read(path.to_owned()).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| unusable(path, "NAME", &error))?,
        };
        match StoredEnvelope::parse(&bytes).map(|envelope| envelope.owner()) {
            Ok(owner) if self.path(&owner, kind) == path => Ok(Some(owner)),
            Ok(_) => Err(unusable(path, "NAME", &Damage::Foreign)),
            Err(damage) => Err(unusable(path, "NAME", &damage)),
        }
    }

    /// Returns the version of a grant, or `None` without one.
    pub(super) async fn version(&self, owner: &GrantKey) -> Result<Option<Version>, AuthError> {
        let path = self.path(owner, EnvelopeKind::Grant);
        match read(path.clone()).await {
            Ok(bytes) => Ok(Some(version(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &owner.server, &error)),
        }
    }

    /// Returns where the key is kept.
    pub(super) async fn key_place(&self) -> KeyPlace {
        self.keys.place().await
    }

    /// Deletes a file. Returns whether there was one.
    pub(super) async fn remove(
        &self,
        owner: &GrantKey,
        kind: EnvelopeKind,
    ) -> Result<bool, AuthError> {
        let path = self.path(owner, kind);
        let file = path.clone();
        match blocking(move || std::fs::remove_file(file)).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(AuthError::Store(format!("cannot delete {}: {error}", path.display())))
            }
        }
    }

    /// Fails if a file of this owner could not be written, or its key not be created.
    pub(super) async fn check(&self, owner: &GrantKey) -> Result<(), AuthError> {
        let folder = self.folder.clone();
        let probe = move || {
            openclaw_files::make_folder(&folder)?;
            // The prefix of temporary files: it is removed also after a crash.
            let probe = folder.join(format!(".unfinished-probe-{}", std::process::id()));
            openclaw_files::replace(&probe, &[0; 4096])?;
            match std::fs::remove_file(&probe) {
                // Removed by another task that checks.
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        };
        blocking(probe).await.map_err(|error| unwritable(&self.folder, &error))?;
        let kinds = [EnvelopeKind::Grant, EnvelopeKind::Login, EnvelopeKind::Issuer];
        let paths = kinds.map(|kind| self.path(owner, kind));
        for path in paths.into_iter().chain([self.lock_path(owner)]) {
            let file = path.clone();
            let checking = blocking(move || openclaw_files::check_replaceable(&file));
            checking.await.map_err(|error| unwritable(&path, &error))?;
        }
        self.keys.for_saving().await.map(drop).map_err(|error| self.bad_key_file(&error))
    }
}

async fn read(path: PathBuf) -> io::Result<Vec<u8>> {
    blocking(move || openclaw_files::read_secret(&path, MAX_FILE)).await
}

/// Returns the paths of all files with a name of this kind, or none without folder. Blocks.
fn files(folder: &Path, kind: EnvelopeKind) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_suffix(kind.suffix()).is_some_and(|stem| {
            stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(is_wanted);
    paths.sort();
    Ok(paths)
}

/// A hash of the file. Every write has a new nonce, so the hash changes with every write.
fn version(bytes: &[u8]) -> Version {
    let hash = Sha256::digest(bytes);
    Version::new(hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

pub(super) fn unusable(path: &Path, server: &str, cause: &dyn std::fmt::Display) -> AuthError {
    let first = obstacle(path).map(|it| format!("remove {it}, then ")).unwrap_or_default();
    AuthError::Store(format!(
        "cannot use {}: {cause}; {first}log in again with `openclaw mcp login {server}`",
        path.display()
    ))
}

fn unwritable(path: &Path, error: &io::Error) -> AuthError {
    let remedy = obstacle(path).map(|it| format!("; remove {it}")).unwrap_or_default();
    AuthError::Store(format!("cannot write {}: {error}{remedy}", path.display()))
}

/// Returns what a login does not replace, if it is there.
fn obstacle(path: &Path) -> Option<&'static str> {
    let about = path.symlink_metadata().ok()?;
    match () {
        () if about.is_symlink() => Some("the link"),
        () if about.is_file() || about.is_dir() => None,
        () => Some("it"),
    }
}
