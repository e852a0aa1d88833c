//! The wall time of whole commands: `openclaw --version`, `openclaw mcp call`, compared with the same call by
//! `mcporter`, and the handshake of `openclaw mcp-server`, compared with `openclaw --version`.
//!
//! Runs are interleaved and the best of each counts: the machine is shared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its results")]

mod program;

use std::process::Stdio;
use std::time::Instant;

use openclaw_testkit::bench::{load, repeats, verdict};
use openclaw_testkit::{Peers, Script, TestServer};
use program::Program;
use serde_json::json;

/// With 30 runs, the best still varies by 10% between takes.
const RUNS: usize = 200;
/// `mcporter` takes half a second.
const RUNS_OF_MCPORTER: usize = 5;
/// The limits, in milliseconds.
const VERSION_MS: f64 = 1.3;
const CALL_MS: f64 = 6.0;
/// The limit for a call, as a part of the time of `mcporter`.
const PART_OF_MCPORTER: f64 = 1.0 / 80.0;
/// The limit for a handshake, as a multiple of the time of `openclaw --version`.
const HANDSHAKE: f64 = 3.0;

fn main() {
    let (server, args) = TestServer::stdio(&Script::new());
    let servers = json!({ "x": { "command": server, "args": args } });
    let program = Program::with_servers(&servers);

    println!("whole processes, wall time, best of {RUNS}; load average: {}", load());
    let call = ["mcp", "call", "x", "echo", "text=hi"];
    if !program.knows(&["mcp", "call"]) {
        println!("not measured: this program has no `openclaw mcp call` yet");
        return;
    }
    let (_, answer) = program.run(&call);
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.contains("hi"), "the call does not return its text: {answer}");

    let mut best = [f64::MAX; 4];
    for _ in 0..repeats(RUNS) {
        program.forget();
        let first = program.timed(&call);
        let again = program.timed(&call);
        let hello = program.greeted(&["mcp-server"]);
        let version = program.timed(&["--version"]);
        for (best, now) in best.iter_mut().zip([first, again, hello, version]) {
            *best = best.min(now);
        }
    }
    let [first, again, hello, version] = best;
    let mcporter = mcporter(&servers);
    println!("{:<40} {version:>8.2} ms   {}", "openclaw --version", verdict(version, VERSION_MS));
    for (what, ours) in [
        ("openclaw mcp call, server not cached", first),
        ("openclaw mcp call, server cached", again),
    ] {
        println!(
            "{what:<40} {ours:>8.2} ms   {}   1/{:.0} of mcporter's {mcporter:.0} ms: {}",
            verdict(ours, CALL_MS),
            mcporter / ours,
            verdict(ours / mcporter, PART_OF_MCPORTER)
        );
    }
    let ratio = hello / version;
    println!(
        "{:<40} {hello:>8.2} ms   {ratio:>6.2} × --version   {}",
        "openclaw mcp-server, to `initialize`",
        verdict(ratio, HANDSHAKE)
    );
}

/// Returns the milliseconds of the same call by `mcporter`.
fn mcporter(servers: &serde_json::Value) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcporter.json");
    std::fs::write(&file, json!({ "mcpServers": servers }).to_string()).unwrap();
    let args = ["--config", file.to_str().unwrap(), "call", "x.echo", "text=hi"];
    let mut best = f64::MAX;
    for _ in 0..repeats(RUNS_OF_MCPORTER) {
        let mut command = Peers::find().mcporter(&args).command();
        let command = command.env("HOME", folder.path()).stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output().unwrap();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        let answer = String::from_utf8_lossy(&output.stdout);
        assert!(answer.contains("hi"), "{answer} {}", String::from_utf8_lossy(&output.stderr));
    }
    best
}
