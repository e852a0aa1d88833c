//! `cargo xtask compat`: this program and the Node OpenClaw, whose package is too large for every test run.
//!
//! The front ends of the Node OpenClaw run against our gateway (`xtask/compat`), and ours against its
//! gateway (the tests `foreign`).

use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::peers::{self, Compat};
use crate::shell::{Failure, Run as _, cargo, root};

/// The tests of our front ends.
const TESTS: [&str; 4] = ["--workspace", "--all-features", "--test", "foreign"];
/// A test of the package whose server they start. With a package's tests come its programs, and with the
/// features of `cargo xtask test`: nothing is compiled twice.
const SERVER: [&str; 2] = ["--test", "stdio"];

/// Installs the package, builds our program, and runs everything, or the scenarios with these names.
pub(crate) fn run(names: &[&str]) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        println!("compat: skipped; the scenarios need Linux (`script` of util-linux)");
        return Ok(());
    }
    let started = Instant::now();
    let (installed, built) = together(peers::install_compat, || {
        cargo("test").args(TESTS).args(SERVER).arg("--no-run").run()
    });
    let compat = installed?;
    built?;
    let prepared = started.elapsed().as_secs();
    let outcome = match names {
        [] => {
            let (theirs, ours) = together(|| scenarios(&compat, names), || our_front_ends(&compat));
            theirs.and(ours)
        }
        _ => scenarios(&compat, names),
    };
    let all = started.elapsed().as_secs();
    println!(
        "compat: {all} s, of which {prepared} s to install and build; output in target/compat/output"
    );
    outcome
}

/// Does two things at the same time.
fn together<A: Send, B>(
    first: impl FnOnce() -> Result<A, Failure> + Send,
    second: impl FnOnce() -> B,
) -> (Result<A, Failure>, B) {
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        let first = first.join().unwrap_or_else(|_| Err(Failure::new("a task panicked")));
        (first, second)
    })
}

/// Runs the front ends of the Node OpenClaw on our gateway.
fn scenarios(compat: &Compat, names: &[&str]) -> Result<(), Failure> {
    let root =
        openclaw_files::canonical(root()).map_err(|error| Failure::new(error.to_string()))?;
    Command::new(&compat.node)
        .arg(root.join("xtask/compat/run.mjs"))
        .arg(&compat.modules)
        .arg(root.join("target/debug/openclaw"))
        .arg(root.join("target/compat/output"))
        .args(names)
        .run()
}

/// Runs our front ends on a Node gateway.
fn our_front_ends(compat: &Compat) -> Result<(), Failure> {
    cargo("test")
        .args(TESTS)
        .args(["--", "node_gateway::"])
        .env("OPENCLAW_NODE_PACKAGE", compat.modules.join("openclaw"))
        .env("OPENCLAW_PEERS", &compat.peers)
        .run()
}
