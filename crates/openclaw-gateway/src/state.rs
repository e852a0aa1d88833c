//! Files of a running gateway in the state folder: lock, address, token.
//!
//! - `gateway.lock` is locked while the gateway runs. The OS releases the lock however the process
//!   exits, so a killed gateway is never taken for a running one.
//! - `gateway.json` holds its address. It is valid only while the lock is held.
//! - `gateway-token` is created at the first start and reused later.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use openclaw_secrets::{Redactor, SecretString};
use serde::{Deserialize, Serialize};

const LOCK: &str = "gateway.lock";
const CARD: &str = "gateway.json";
const TOKEN: &str = "gateway-token";
/// The format of `gateway.json`.
const VERSION: u32 = 1;
/// Maximum size of a file read here, in bytes.
const MAX_FILE: u64 = 64 * 1024;
/// [`find`] holds the lock for a moment: a claim retries this often, with this delay.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// A gateway's claim to a state folder. Released when dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    /// Holds the lock.
    _lock: File,
}

/// Why a state folder cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another gateway has claimed it.
    #[error("a gateway is already running{}", running_at(.0.as_deref()))]
    Taken(Option<Box<GatewayRecord>>),
    /// A file cannot be used.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

fn running_at(running: Option<&GatewayRecord>) -> String {
    running.map(|it| format!(" at {} (PID {})", it.url, it.pid)).unwrap_or_default()
}

/// A running gateway.
#[derive(Debug, Clone)]
pub struct GatewayRecord {
    /// Its WebSocket URL.
    pub url: String,
    /// The token that clients authenticate with. [`find`] does not register it with a redactor.
    pub token: Option<SecretString>,
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

/// `gateway.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayFile {
    version: u32,
    url: String,
    token: Option<String>,
    pid: u32,
    started_at_ms: u64,
    program_version: String,
}

impl Claim {
    /// Claims a state folder and creates it if necessary. Blocks briefly while [`find`] holds
    /// the lock.
    ///
    /// # Errors
    /// Fails if another gateway has claimed it, or its files cannot be used.
    pub fn take(folder: &Path) -> Result<Self, ClaimError> {
        let path = folder.join(LOCK);
        let failed = |error| ClaimError::File { path: path.clone(), error };
        openclaw_files::make_folder(folder).map_err(failed)?;
        let lock = openclaw_files::open_lock(&path).map_err(failed)?;
        for _ in 0..TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { folder: folder.to_owned(), _lock: lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(ClaimError::Taken(read_card(folder).map(Box::new)))
    }

    /// Returns the token of this directory, and creates it if there is none. It is registered with
    /// the redactor.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or no random numbers are available.
    pub fn token(&self, redactor: &Redactor) -> io::Result<SecretString> {
        let path = self.folder.join(TOKEN);
        let token = self.read_or_make_token(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        redactor.add(&token);
        Ok(token)
    }

    fn read_or_make_token(&self, path: &Path) -> io::Result<SecretString> {
        match openclaw_files::read_secret_text(path, MAX_FILE) {
            Ok(text) if !text.trim().is_empty() => {
                make_private(path)?;
                Ok(SecretString::from(text.trim().to_owned()))
            }
            Ok(_) => self.new_token(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.new_token(path),
            Err(error) => Err(error),
        }
    }

    fn new_token(&self, path: &Path) -> io::Result<SecretString> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let token = SecretString::from(HEXLOWER.encode(&bytes));
        openclaw_files::replace(path, token.expose().as_bytes())?;
        Ok(token)
    }

    /// Publishes the address of the gateway for front ends.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn publish(
        &self,
        address: SocketAddr,
        token: Option<&SecretString>,
        program_version: &str,
    ) -> io::Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let card = GatewayFile {
            version: VERSION,
            url: url(address),
            token: token.map(|token| token.expose().to_owned()),
            pid: std::process::id(),
            started_at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            program_version: program_version.to_owned(),
        };
        openclaw_files::replace(&self.folder.join(CARD), &serde_json::to_vec_pretty(&card)?)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Before the lock is released: otherwise this could remove the file of the next gateway.
        let _ = fs::remove_file(self.folder.join(CARD));
    }
}

/// Finds the gateway that runs on this state folder. Cheap: whether it responds is not checked.
#[must_use]
pub fn find(folder: &Path) -> Option<GatewayRecord> {
    let running = read_card(folder)?;
    let lock = openclaw_files::open(&folder.join(LOCK)).ok()?;
    match lock.try_lock_shared() {
        // The lock is free: the file was left by a gateway that was killed.
        Ok(()) => None,
        // Where locks are not supported, only connecting to it tells.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Some(running),
    }
}

fn read_card(folder: &Path) -> Option<GatewayRecord> {
    let text = openclaw_files::read_secret_text(&folder.join(CARD), MAX_FILE).ok()?;
    let card: GatewayFile = serde_json::from_str(&text).ok()?;
    (card.version == VERSION).then(|| GatewayRecord {
        url: card.url,
        token: card.token.map(SecretString::from),
        pid: card.pid,
        version: card.program_version,
    })
}

/// The URL to connect to; localhost if the gateway listens on all interfaces.
fn url(mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("ws://{address}")
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
