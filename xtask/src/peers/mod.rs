//! Third-party programs for the tests: from package registries, with pinned versions, installed into
//! `target/peers`; for `cargo xtask compat` into `target/compat`.

pub(crate) mod node;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell::{Failure, Run as _, empty_folder, failed, hold};

/// The AWS emulator.
const AWS: &str = include_str!("../../peers/python.txt");
/// MCP servers in Python, separate from the emulator, so that their dependencies do not conflict.
const MCP: &str = include_str!("../../peers/python-mcp.txt");

/// Installs missing or outdated peers; returns the folder.
pub(crate) fn install() -> Result<PathBuf, Failure> {
    let (peers, _lock) = hold("peers")?;
    python::install(&peers.join("python"), AWS)?;
    python::install(&peers.join("python-mcp"), MCP)?;
    node::install(&peers.join("node"), &node::TESTS)?;
    Ok(peers)
}

/// What `cargo xtask compat` needs.
#[derive(Debug)]
pub(crate) struct Compat {
    /// The folder with the Node OpenClaw.
    pub(crate) modules: PathBuf,
    /// The folder of the other peers.
    pub(crate) peers: PathBuf,
    /// The Node to run it with.
    pub(crate) node: PathBuf,
}

/// Installs the Node OpenClaw, if it is missing or outdated. It is large: only `cargo xtask compat`
/// needs it.
pub(crate) fn install_compat() -> Result<Compat, Failure> {
    let (peers, lock) = hold("peers")?;
    node::install(&peers.join("node"), &node::TESTS)?;
    let node = node::program(&peers.join("node"));
    drop(lock);
    let (compat, _lock) = hold("compat")?;
    node::install(&compat.join("node"), &node::COMPAT)?;
    let modules = compat.join("node/node_modules");
    // Its first start completes the installation, and fails if there are two at the same time.
    let mut first = Command::new(&node);
    first.arg(modules.join("openclaw/openclaw.mjs")).arg("--version").env("HOME", &compat);
    first.stdout(Stdio::null()).run()?;
    Ok(Compat { modules, peers, node })
}

/// Creates a folder and calls `fill`, unless it was filled with the same `pinned` versions before.
fn once(
    folder: &Path,
    pinned: &str,
    fill: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    println!("Installing packages for the tests into {}", folder.display());
    empty_folder(folder)?;
    fill()?;
    // Written last: an interrupted installation is repeated.
    write(&stamp, pinned)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| failed(path, &error))
}
