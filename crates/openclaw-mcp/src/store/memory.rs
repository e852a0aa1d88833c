//! What is remembered about a server from one run to the next: the era that it speaks, and what it
//! has. So a known server is not asked which protocol it speaks, and the tools of a lazy one can be
//! seen before it runs (L2).
//!
//! A file has two lines: how to speak to the server, and what it has. Mostly the first is all that is
//! needed, and the second is long.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use openclaw_config::{Connection, Transport};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::connection::era::Era;
use crate::connection::remote::{Flavour, userinfo};
use crate::inventory::Inventory;
use openclaw_tools::private;

/// The version of the files.
const FORMAT: u32 = 2;
/// A larger file is not read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is remembered about one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remembered {
    /// How to speak to it.
    pub manner: KnownProtocol,
    /// What it had.
    pub inventory: Inventory,
}

/// How to speak to a server, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProtocol {
    format: u32,
    /// The era that it spoke.
    pub era: Option<Era>,
    /// The transport that it spoke over, of a remote server.
    pub flavour: Option<Flavour>,
}

impl KnownProtocol {
    /// This era, over this transport.
    pub fn new(era: Era, flavour: Option<Flavour>) -> Self {
        Self { format: FORMAT, era: Some(era), flavour }
    }
}

/// Where things about one server are remembered.
#[derive(Debug)]
pub struct Memory {
    file: Option<PathBuf>,
}

impl Memory {
    /// In this folder, for a server of this name that is reached this way: another command or address
    /// is another server.
    pub fn of(folder: &Path, name: &str, connection: &Connection) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(name);
        match &connection.transport {
            Transport::Stdio(stdio) => {
                add(stdio.command.as_str());
                stdio.args.iter().for_each(&mut add);
            }
            // A password could be guessed from its hash.
            Transport::Http(http) => add(userinfo::without(http.url.expose()).as_str()),
        }
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { file: Some(folder.join(format!("{}.json", &hash[..32]))) }
    }

    /// Nothing is remembered.
    pub fn none() -> Self {
        Self { file: None }
    }

    /// What is remembered; nothing if it cannot be read. It blocks.
    pub fn recall(&self) -> Remembered {
        let read = || {
            let (manner, mut rest) = self.open()?;
            let mut inventory = Vec::new();
            rest.read_to_end(&mut inventory).ok()?;
            let inventory = serde_json::from_slice(&inventory).ok()?;
            Some(Remembered { manner, inventory })
        };
        read().unwrap_or_default()
    }

    /// How the server wants to be spoken to. It blocks.
    pub fn recall_manner(&self) -> KnownProtocol {
        self.open().map(|(manner, _)| manner).unwrap_or_default()
    }

    /// The first line of the file, and the way to the rest of it.
    fn open(&self) -> Option<(KnownProtocol, impl std::io::Read)> {
        let file = fs::File::open(self.file.as_ref()?).ok()?;
        let mut file = BufReader::with_capacity(512, file.take(MAX_BYTES));
        let mut line = String::new();
        file.read_line(&mut line).ok()?;
        let manner: KnownProtocol = serde_json::from_str(&line).ok()?;
        (manner.format == FORMAT).then_some((manner, file))
    }

    /// Remembers. It is a convenience only: failing is no reason to stop. It blocks.
    pub fn keep(&self, manner: KnownProtocol, inventory: &Inventory) {
        let Some(file) = &self.file else { return };
        let now = written_down(manner, inventory);
        if fs::read(file).is_ok_and(|known| known == now) {
            return;
        }
        if let Err(error) = write(file, &now) {
            tracing::debug!(%error, "what was learnt about a server cannot be remembered");
        }
    }
}

fn written_down(manner: KnownProtocol, inventory: &Inventory) -> Vec<u8> {
    // Serializing plain data cannot fail.
    let mut bytes = serde_json::to_vec(&manner).unwrap_or_default();
    bytes.push(b'\n');
    let _ = serde_json::to_writer(&mut bytes, inventory);
    bytes
}

/// By way of a file of its own: nobody ever reads a half.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private::make_folder(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.persist(file).map_err(|error| error.error)?;
    Ok(())
}
