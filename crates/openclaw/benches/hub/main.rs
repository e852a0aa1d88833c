//! The hub as a process between a client and its servers, compared with a direct connection, and with a
//! bridge made of the client and the server of `rmcp`: `cargo xtask bench hub`.
//!
//! All processes are pinned to one core, rounds are interleaved and the best of each side counts. All
//! checks, wrapping and the audit log are on, and all sides speak the same protocol version. A missed budget is printed; it does not fail the run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark prints its results"
)]

mod bridge;
mod http;
#[allow(dead_code, reason = "other benchmarks use more of it")]
#[path = "../program/mod.rs"]
mod program;
#[allow(dead_code, reason = "other benchmarks use more of it")]
#[path = "../running/mod.rs"]
mod running;
mod stdio;

use openclaw_testkit::{Script, TestServer};
use program::{Program, load, verdict};
use serde_json::{Map, Value, json};

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [first, program, rest @ ..] = args.as_slice()
        && first == bridge::ARGUMENT
    {
        return bridge::run(program, rest);
    }
    let is_pinned = pin(1) || pin(0);
    println!("pinned to one core: {is_pinned}; load average: {}", load());
    stdio::latency();
    stdio::throughput();
    http::latency();
    stdio::large_result();
    stdio::start();
    stdio::idle();
}

#[cfg(target_os = "linux")]
fn pin(core: usize) -> bool {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    cores.set(core).is_ok() && sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) -> bool {
    false
}

/// The protocol version of all sides, unless stated otherwise.
const VERSION: &str = "2025-11-25";
/// The version whose calls carry the client's name and capabilities. Neither the direct client nor the
/// bridge speaks it.
const MODERN: &str = "2026-07-28";

/// Returns the program with this many identical servers, which it speaks this version to.
fn with_servers(count: usize, version: &str) -> Program {
    let (server, args) = TestServer::stdio(&Script::new());
    let entry = json!({
        "command": server, "args": args, "approval": "never", "protocolVersion": version,
    });
    let servers: Map<String, Value> =
        (0..count).map(|number| (format!("x{number}"), entry.clone())).collect();
    Program::with_servers(&Value::Object(servers))
}

/// Prints a measurement, its ratio to another one, and whether that is within the budget.
fn line(what: &str, unit: &str, ours: f64, other: f64, budget: Option<f64>) {
    let ratio = ours / other;
    let verdict = budget.map_or_else(String::new, |budget| verdict(ratio, budget));
    println!("{what:<44} {ours:>10.2} {other:>10.2} {unit:<7} {ratio:>6.2} ×   {verdict}");
}
