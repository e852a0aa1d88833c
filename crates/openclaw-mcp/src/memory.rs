//! What is remembered about a server from one run to the next: the era that it speaks, and what it
//! has. So a known server is not asked which protocol it speaks, and the tools of a lazy one can be
//! seen before it runs (L2).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use openclaw_config::{ServerConfig, Transport};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::era::Era;
use crate::inventory::Inventory;
use crate::remote::Flavour;

/// The version of the files.
const FORMAT: u32 = 1;
/// A larger file is not read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is remembered about one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    format: u32,
    /// The era that it spoke.
    #[serde(default)]
    pub era: Option<Era>,
    /// The transport that it spoke over, of a remote server.
    #[serde(default)]
    pub flavour: Option<Flavour>,
    /// What it had.
    #[serde(default)]
    pub inventory: Inventory,
}

/// Where things about one server are remembered.
#[derive(Debug)]
pub struct Memory {
    file: Option<PathBuf>,
    /// The hash of what stands in the file: what is there already is not written again.
    written: Mutex<Option<[u8; 32]>>,
}

impl Memory {
    /// In this folder, for a server of this name that is reached this way: another command or address
    /// is another server.
    pub fn of(folder: &Path, name: &str, config: &ServerConfig) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        add(name);
        match &config.transport {
            Transport::Stdio(stdio) => {
                add(stdio.command.as_str());
                stdio.args.iter().for_each(&mut add);
            }
            Transport::Http(http) => add(http.url.expose().as_str()),
        }
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = Some(folder.join(format!("{}.json", &hash[..32])));
        Self { file, written: Mutex::default() }
    }

    /// Nothing is remembered.
    pub fn none() -> Self {
        Self { file: None, written: Mutex::default() }
    }

    /// What is remembered; nothing if it cannot be read.
    pub fn recall(&self) -> Remembered {
        let remembered = self.read::<Remembered>().unwrap_or_default();
        if remembered.format == FORMAT { remembered } else { Remembered::default() }
    }

    /// How the server wants to be spoken to, without what it had: that is most of the file.
    pub fn recall_manner(&self) -> Remembered {
        #[derive(Deserialize)]
        struct Manner {
            format: u32,
            #[serde(default)]
            era: Option<Era>,
            #[serde(default)]
            flavour: Option<Flavour>,
        }
        match self.read() {
            Some(Manner { format: FORMAT, era, flavour }) => {
                Remembered { format: FORMAT, era, flavour, inventory: Inventory::default() }
            }
            _ => Remembered::default(),
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        let file = self.file.as_ref()?;
        let is_small = fs::metadata(file).ok()?.len() <= MAX_BYTES;
        let bytes = if is_small { fs::read(file).ok()? } else { return None };
        *self.written() = Some(hash(&bytes));
        serde_json::from_slice(&bytes).ok()
    }

    /// Remembers. It is a convenience only: failing is no reason to stop. It blocks.
    pub fn keep(&self, era: Era, flavour: Option<Flavour>, inventory: &Inventory) {
        let Some(file) = &self.file else { return };
        let bytes = written_down(era, flavour, inventory);
        let hash = hash(&bytes);
        let mut written = self.written();
        if *written == Some(hash) {
            return;
        }
        match write(file, &bytes) {
            Ok(()) => *written = Some(hash),
            Err(error) => {
                tracing::debug!(%error, "what was learnt about a server cannot be remembered");
            }
        }
    }

    /// Whether that is remembered already, or nothing is.
    pub fn has(&self, era: Era, flavour: Option<Flavour>, inventory: &Inventory) -> bool {
        let is_kept = || Some(hash(&written_down(era, flavour, inventory))) == *self.written();
        self.file.is_none() || is_kept()
    }

    fn written(&self) -> MutexGuard<'_, Option<[u8; 32]>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn written_down(era: Era, flavour: Option<Flavour>, inventory: &Inventory) -> Vec<u8> {
    let remembered =
        Remembered { format: FORMAT, era: Some(era), flavour, inventory: inventory.clone() };
    // Serializing plain data cannot fail.
    serde_json::to_vec(&remembered).unwrap_or_default()
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// By way of a file of its own: nobody ever reads a half.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.persist(file).map_err(|error| error.error)?;
    Ok(())
}
