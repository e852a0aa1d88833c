//! `cargo xtask compat`: this program and the Node OpenClaw, whose package is too large for every test run.
//!
//! The front ends of the Node OpenClaw run against our gateway (`xtask/compat`), and ours against its
//! gateway (the tests `foreign`).

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::peers;
use crate::shell::{Failure, Run as _, cargo, root};

/// The tests of our front ends.
const TESTS: [&str; 4] = ["--workspace", "--all-features", "--test", "foreign"];

/// Installs the package, builds our program, and runs everything, or the scenarios with these names.
pub(crate) fn run(names: &[&str]) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        println!("compat: skipped; the scenarios need Linux (`script` of util-linux)");
        return Ok(());
    }
    let started = Instant::now();
    let folder = peers::install_compat()?;
    // With the tests, which build the program with the same features.
    cargo("test").args(TESTS).arg("--no-run").run()?;
    let installed = started.elapsed().as_secs();
    let outcome = scenarios(&folder, names).and_then(|()| match names {
        [] => our_front_ends(&folder),
        _ => Ok(()),
    });
    let all = started.elapsed().as_secs();
    println!(
        "compat: {all} s, of which {installed} s to install and build; output in target/compat/output"
    );
    outcome
}

/// Runs the front ends of the Node OpenClaw on our gateway.
fn scenarios(folder: &Path, names: &[&str]) -> Result<(), Failure> {
    let root = root().canonicalize().map_err(|error| Failure::new(error.to_string()))?;
    Command::new(peers::node::program(folder))
        .arg(root.join("xtask/compat/run.mjs"))
        .arg(folder.join("node_modules"))
        .arg(root.join("target/debug/openclaw"))
        .arg(root.join("target/compat/output"))
        .args(names)
        .run()
}

/// Runs our front ends on a Node gateway.
fn our_front_ends(folder: &Path) -> Result<(), Failure> {
    cargo("test")
        .args(TESTS)
        .args(["--", "node_gateway::"])
        .env("OPENCLAW_NODE_PACKAGE", folder.join("node_modules/openclaw"))
        .run()
}
