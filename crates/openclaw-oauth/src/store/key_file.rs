//! A key, and the file that keeps it where there is no keychain.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// The size of a key, in bytes.
const KEY_BYTES: usize = 32;
/// Maximum size of the key file, in bytes.
const MAX_FILE: u64 = 1024;
/// How long a change of the key file waits for another process.
const PATIENCE: Duration = Duration::from_secs(5);

/// A key. `Debug` shows only its id.
#[derive(Clone)]
pub(super) struct Key {
    bytes: Arc<Zeroizing<[u8; KEY_BYTES]>>,
    id: String,
}

impl Key {
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes).map_err(io::Error::from)?;
        Ok(Self::new(bytes))
    }

    fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let id = HEXLOWER.encode(&Sha256::digest(bytes.as_slice())[..4]);
        Self { bytes: Arc::new(bytes), id }
    }

    /// `None` if this is not a key.
    pub(super) fn from_base64(text: &str) -> Option<Self> {
        let decoded = Zeroizing::new(BASE64.decode(text.trim_ascii()).ok()?);
        let bytes = <[u8; KEY_BYTES]>::try_from(decoded.as_slice()).ok()?;
        Some(Self::new(Zeroizing::new(bytes)))
    }

    pub(super) fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64.encode(self.bytes.as_slice()))
    }

    /// Returns the first 8 hex digits of its SHA-256.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.id).finish()
    }
}

/// The file of the key, in a folder that exists when it is written.
#[derive(Debug, Clone)]
pub(super) struct KeyFile {
    folder: PathBuf,
}

impl KeyFile {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("tokens.key")
    }

    pub(super) async fn read_async(&self) -> io::Result<Option<Key>> {
        let file = self.clone();
        blocking(move || file.read()).await
    }

    fn read(&self) -> io::Result<Option<Key>> {
        let path = self.path();
        let text = match openclaw_files::read_secret_text(&path, MAX_FILE) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        make_private(&path)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a key");
        Key::from_base64(&text).map(Some).ok_or_else(invalid)
    }

    fn lock(&self) -> io::Result<File> {
        openclaw_files::make_folder(&self.folder)?;
        openclaw_files::lock(&self.folder.join("tokens.key.lock"), PATIENCE)
    }

    pub(super) fn read_or_create(&self, candidate: &Key) -> io::Result<Key> {
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        let _turn = self.lock()?;
        if let Some(key) = self.read()? {
            return Ok(key);
        }
        let mut text = candidate.to_base64();
        text.push('\n');
        openclaw_files::replace(&self.path(), text.as_bytes())?;
        Ok(candidate.clone())
    }
}

/// A key file that was restored or copied may be readable by others.
fn make_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(file = %path.display(), "other users could read the key file; restricted");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Runs a blocking call on a thread for that. It completes also if the caller is cancelled.
pub(super) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
