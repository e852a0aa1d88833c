//! The on-disk cache of a server: its protocol era and its inventory. So the era of a known server
//! need not be probed, and the tools of a lazy one are available before it runs (L2).
//!
//! A file has three lines: the protocol, the introduction and the lists. Usually only the first, short one
//! is needed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use openclaw_config::ServerConnection;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::inventory::Inventory;
use crate::store::identity;
use openclaw_mcp_client::connection::ServerIntroduction;
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::connection::remote::HttpTransport;

/// The version of the file format.
const FORMAT: u32 = 4;
/// At most this much of a file is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The cached information about a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remembered {
    /// Its protocol.
    pub manner: KnownProtocol,
    /// Its inventory.
    pub inventory: Inventory,
}

/// The protocol of a server, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProtocol {
    format: u32,
    /// Its era.
    pub era: Option<Era>,
    /// The HTTP transport of a remote server.
    pub flavour: Option<HttpTransport>,
}

impl KnownProtocol {
    /// Creates one with this era and transport.
    pub fn new(era: Era, flavour: Option<HttpTransport>) -> Self {
        Self { format: FORMAT, era: Some(era), flavour }
    }
}

/// The cache file of one server.
#[derive(Debug)]
pub struct Memory {
    file: Option<PathBuf>,
}

impl Memory {
    /// The cache of a server in this folder. The file depends on the name and on the command or
    /// URL: another command or URL is another server.
    pub fn of(folder: &Path, name: &str, connection: &ServerConnection) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(name);
        identity::parts(connection, &mut add);
        // With another version a server may have another era, and other tools.
        if let Some(version) = connection.protocol_version {
            add(version.as_str());
        }
        let hash = HEXLOWER.encode(&hash.finalize());
        Self { file: Some(folder.join(format!("{}.json", &hash[..32]))) }
    }

    /// Returns the path next to the file, with this extension.
    pub(crate) fn beside(&self, extension: &str) -> Option<PathBuf> {
        self.file.as_ref().map(|file| file.with_extension(extension))
    }

    /// A cache that stores nothing.
    pub fn none() -> Self {
        Self { file: None }
    }

    /// Reads the cache; empty if it cannot be read. Blocks.
    pub fn recall(&self) -> Remembered {
        let read = || {
            let (manner, mut rest) = self.open()?;
            let introduction = introduction(&mut rest)?;
            let mut inventory = Vec::new();
            rest.read_to_end(&mut inventory).ok()?;
            let inventory = serde_json::from_slice(&inventory).ok()?;
            Some(Remembered { manner, inventory: Inventory { introduction, ..inventory } })
        };
        read().unwrap_or_default()
    }

    /// Reads only what the server told its clients. Blocks.
    pub fn recall_introduction(&self) -> ServerIntroduction {
        let read = || introduction(&mut self.open()?.1);
        read().unwrap_or_default()
    }

    /// Reads only the protocol. Blocks.
    pub fn recall_manner(&self) -> KnownProtocol {
        self.open().map(|(manner, _)| manner).unwrap_or_default()
    }

    /// Parses the first line of the file, and returns a reader for the rest.
    fn open(&self) -> Option<(KnownProtocol, impl std::io::BufRead)> {
        let file = openclaw_files::open(self.file.as_ref()?).ok()?;
        let mut file = BufReader::with_capacity(512, file.take(MAX_BYTES));
        let mut line = String::new();
        file.read_line(&mut line).ok()?;
        let manner: KnownProtocol = serde_json::from_str(&line).ok()?;
        (manner.format == FORMAT).then_some((manner, file))
    }

    /// Writes the cache. Errors are only logged. Blocks.
    pub fn keep(&self, manner: KnownProtocol, inventory: &Inventory) {
        let Some(file) = &self.file else { return };
        let now = written_down(manner, inventory);
        if openclaw_files::read(file, MAX_BYTES).is_ok_and(|known| known == now) {
            return;
        }
        if let Err(error) = write(file, &now) {
            tracing::debug!(%error, "cannot write the cache of a server");
        }
    }
}

/// Parses the second line of a file.
fn introduction(file: &mut impl std::io::BufRead) -> Option<ServerIntroduction> {
    let mut line = String::new();
    file.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn written_down(manner: KnownProtocol, inventory: &Inventory) -> Vec<u8> {
    // Serializing plain data cannot fail.
    let mut bytes = serde_json::to_vec(&manner).unwrap_or_default();
    bytes.push(b'\n');
    let _ = serde_json::to_writer(&mut bytes, &inventory.introduction);
    bytes.push(b'\n');
    let _ = serde_json::to_writer(&mut bytes, inventory);
    bytes
}

/// Replaces the file as a whole, so that a partial one is never read.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    openclaw_files::make_folder(folder)?;
    openclaw_files::replace_unsynced(file, bytes)
}
