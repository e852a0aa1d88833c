//! The hub as a process between a client and its servers, compared with a direct connection, and with a
//! bridge made of the client and the server of `rmcp`: `cargo xtask bench hub`.
//!
//! All processes are pinned to one core, rounds are interleaved and the best of each side counts. All
//! checks, wrapping and the audit log are on. The hub and the direct client speak the same protocol
//! version to the server; that of the bridge is chosen by `rmcp`. A missed budget is printed; it does not
//! fail the run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark prints its results"
)]

mod bridge;
mod http;
mod http_bridge;
#[allow(dead_code, reason = "other benchmarks use more of it")]
#[path = "../program/mod.rs"]
mod program;
#[allow(dead_code, reason = "other benchmarks use more of it")]
#[path = "../running/mod.rs"]
mod running;
mod stdio;

use openclaw_testkit::bench::{load, pin, verdict};
use openclaw_testkit::{Script, TestServer};
use program::Program;
use serde_json::{Map, Value, json};

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [first, program, rest @ ..] = args.as_slice()
        && first == bridge::ARGUMENT
    {
        return bridge::run(program, rest);
    }
    if let [first, program, rest @ ..] = args.as_slice()
        && first == http_bridge::ARGUMENT
    {
        return http_bridge::run(program, rest);
    }
    println!("pinned to one core: {}; load average: {}", pin(), load());
    let parts: [(&str, fn()); 6] = [
        ("latency", stdio::latency),
        ("throughput", stdio::throughput),
        ("http", http::latency),
        ("large", stdio::large_result),
        ("start", stdio::start),
        ("idle", stdio::idle),
    ];
    for (name, measure) in parts {
        // Without names, all of them.
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            measure();
        }
    }
}

/// The protocol version of the hub and of the direct client, unless stated otherwise.
const VERSION: &str = "2025-11-25";
/// The version whose calls carry the client's name and capabilities. The direct client does not speak it.
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
