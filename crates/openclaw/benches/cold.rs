//! The wall time of one whole command, `openclaw mcp call`, and of the handshake of `openclaw
//! mcp-server`, compared with `openclaw --version`.
//!
//! Runs are interleaved and the best of each counts: the machine is shared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its results")]

mod program;

use openclaw_testkit::bench::{load, repeats, verdict};
use openclaw_testkit::{Script, TestServer};
use program::Program;
use serde_json::json;

/// With 30 runs, the best still varies by 10% between takes.
const RUNS: usize = 200;
/// The limit for a call and for a handshake, as a multiple of the time of `openclaw --version`.
const BUDGET: f64 = 3.0;

fn main() {
    let (server, args) = TestServer::stdio(&Script::new());
    let program = Program::with_servers(&json!({ "x": { "command": server, "args": args } }));

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
    println!("{:<40} {version:>8.2} ms", "openclaw --version");
    for (what, ours) in [
        ("openclaw mcp call, server not cached", first),
        ("openclaw mcp call, server cached", again),
        ("openclaw mcp-server, to `initialize`", hello),
    ] {
        let ratio = ours / version;
        println!("{what:<40} {ours:>8.2} ms {ratio:>6.2} × that   {}", verdict(ratio, BUDGET));
    }
}
