//! Runs the front ends of the Node OpenClaw against our gateway (`xtask/compat`).

use std::process::Command;
use std::time::Instant;

use crate::peers;
use crate::shell::{Failure, Run as _, cargo, root};

/// Installs the package, builds our program, and runs the scenarios, or those with these names.
pub(crate) fn run(names: &[&str]) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        println!("compat: skipped; the scenarios need Linux (`script` of util-linux)");
        return Ok(());
    }
    let started = Instant::now();
    let folder = peers::install_compat()?;
    cargo("build").args(["--workspace", "--all-features", "--bin", "openclaw"]).run()?;
    let installed = started.elapsed().as_secs();
    let root = root().canonicalize().map_err(|error| Failure::new(error.to_string()))?;
    let scenarios = Command::new(peers::node::program(&folder))
        .arg(root.join("xtask/compat/run.mjs"))
        .arg(folder.join("node_modules"))
        .arg(root.join("target/debug/openclaw"))
        .arg(root.join("target/compat/output"))
        .args(names)
        .run();
    let all = started.elapsed().as_secs();
    println!(
        "compat: {all} s, of which {installed} s to install and build; output in target/compat/output"
    );
    scenarios
}
