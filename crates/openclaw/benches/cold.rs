//! What one command costs from its start to its end: `openclaw mcp call`, beside `openclaw --version`.
//!
//! Runs are interleaved and the best of each counts: the machine is shared. The program is built as for
//! a release but for its links between crates; another one is measured with `OPENCLAW_BENCH_PROGRAM`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to a person")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use openclaw_testkit::{Script, TestServer};
use serde_json::json;

const RUNS: usize = 30;
/// How many times the time of `openclaw --version` a call may take.
const BUDGET: f64 = 3.0;

/// The program, with a home, a configuration and a state folder of its own.
struct Program<'a> {
    path: OsString,
    folder: &'a Path,
}

impl Program<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.folder)
            .env("OPENCLAW_CONFIG_PATH", self.folder.join("openclaw.json"))
            .env("OPENCLAW_STATE_DIR", self.folder.join("state"))
            .stdin(Stdio::null());
        command
    }

    /// Whole milliseconds and parts, from before the start until all is read and the process is gone.
    fn run(&self, args: &[&str]) -> (f64, Output) {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        (start.elapsed().as_secs_f64() * 1e3, output)
    }

    fn timed(&self, args: &[&str]) -> f64 {
        let (took, output) = self.run(args);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`openclaw {}`: {words}", args.join(" "));
        took
    }

    fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.folder.join("state"));
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("OPENCLAW_BENCH_PROGRAM");
    let path = path.unwrap_or_else(|| env!("CARGO_BIN_EXE_openclaw").into());
    let program = Program { path, folder: folder.path() };
    let (server, args) = TestServer::stdio(&Script::new());
    let config = json!({ "mcp": { "servers": { "x": { "command": server, "args": args } } } });
    std::fs::write(folder.path().join("openclaw.json"), config.to_string()).unwrap();

    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("whole processes, wall time, best of {RUNS}; load of the machine: {}", load.trim());
    let call = ["mcp", "call", "x", "echo", "text=hi"];
    if !program.run(&["mcp", "call", "--help"]).1.status.success() {
        println!("not measured: this program has no `openclaw mcp call` yet");
        return;
    }
    let (_, answer) = program.run(&call);
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.contains("hi"), "the call does not answer with its text: {answer}");

    let mut best = [f64::MAX; 3];
    for _ in 0..RUNS {
        program.forget();
        let first = program.timed(&call);
        let again = program.timed(&call);
        let version = program.timed(&["--version"]);
        for (best, now) in best.iter_mut().zip([first, again, version]) {
            *best = best.min(now);
        }
    }
    let [first, again, version] = best;
    println!("{:<40} {version:>8.2} ms", "openclaw --version");
    for (what, ours) in [
        ("openclaw mcp call, server not known yet", first),
        ("openclaw mcp call, server known", again),
    ] {
        let ratio = ours / version;
        let verdict = if ratio <= BUDGET { "met" } else { "MISSED" };
        println!("{what:<40} {ours:>8.2} ms {ratio:>6.2} × that   budget {BUDGET}: {verdict}");
    }
}
