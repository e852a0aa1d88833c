//! Our front ends on a Node gateway.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::peers::{self, node};
use crate::shell::{Failure, Run as _, cargo};

const PACKAGES: &str = include_str!("../../peers/openclaw/package.json");
const LOCK: &str = include_str!("../../peers/openclaw/package-lock.json");

/// Installs the package, and runs the tests with it.
pub(super) fn run(peers: &Path) -> Result<(), Failure> {
    let package = install(peers)?;
    let started = Instant::now();
    cargo("test")
        .args(["--workspace", "--all-features", "--test", "foreign", "--", "node_gateway::"])
        .env("OPENCLAW_PEERS", peers)
        .env("OPENCLAW_NODE_PACKAGE", package)
        .run()?;
    println!("Our front ends on a Node gateway: {} s", started.elapsed().as_secs());
    Ok(())
}

/// Installs the locked version of the package, without its install scripts; returns its folder.
fn install(peers: &Path) -> Result<PathBuf, Failure> {
    let folder = peers.join("openclaw");
    peers::once(&folder, &format!("{PACKAGES}{LOCK}"), || {
        peers::write(&folder.join("package.json"), PACKAGES)?;
        peers::write(&folder.join("package-lock.json"), LOCK)?;
        node::npm(&folder)
    })?;
    Ok(folder.join("node_modules/openclaw"))
}
