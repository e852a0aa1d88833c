//! The gateway as a process: time to ready, memory with idle servers, and the time of a
//! call through it.
//!
//! Starts are interleaved and the best of each counts: the machine is shared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its results")]

mod program;
mod running;

use std::thread::sleep;
use std::time::Duration;

use openclaw_testkit::bench::{load, repeats, verdict};
use openclaw_testkit::{Script, TestServer};
use program::Program;
use running::{Running, parent};
use serde_json::{Map, Value, json};

const STARTS: usize = 15;
const READY_MS: f64 = 50.0;
/// The time to ready of the Node gateway, measured earlier.
const NODE_MS: f64 = 31_000.0;
const PART_OF_NODE: f64 = 0.01;
const IDLE_SERVERS: usize = 20;
/// The limits of anonymous memory with that many servers, and of each further one.
const IDLE_MB: f64 = 6.0;
const FURTHER_KB: f64 = 100.0;
/// How long the gateway is left idle before it is measured.
const IDLE_SECONDS: usize = 10;
const CALLS: usize = 30;
/// The limit for a call, as a multiple of the time of `openclaw --version`.
const CALL: f64 = 2.0;

fn main() {
    println!("whole processes; load average: {}", load());
    if !cfg!(unix) || !with_servers(0).knows(&["gateway", "run"]) {
        println!("not measured: this program has no `openclaw gateway run` yet");
        return;
    }
    ready();
    idle();
    beside_gateway();
}

/// Returns the program with this many identical servers.
fn with_servers(count: usize) -> Program {
    let (server, args) = TestServer::stdio(&Script::new());
    let entry = json!({ "command": server, "args": args });
    let servers: Map<String, Value> =
        (0..count).map(|number| (format!("x{number}"), entry.clone())).collect();
    Program::with_servers(&Value::Object(servers))
}

/// Measures the time from before the spawn until `/healthz` responds.
fn ready() {
    let (alone, busy) = (with_servers(0), with_servers(IDLE_SERVERS));
    let mut best = [f64::MAX; 4];
    for _ in 0..repeats(STARTS) {
        alone.forget();
        busy.forget();
        let round = [&alone, &alone, &busy, &busy].map(|program| {
            let (running, took) = Running::start(program);
            running.stop();
            took
        });
        for (best, now) in best.iter_mut().zip(round) {
            *best = best.min(now);
        }
    }
    println!("ready: until the first response of /healthz, best of {STARTS}");
    for (what, took) in [
        ("no servers, first start", best[0]),
        ("no servers, started again", best[1]),
        ("20 servers, first start", best[2]),
        ("20 servers, started again", best[3]),
    ] {
        let part = took / NODE_MS;
        println!(
            "{what:<40} {took:>8.2} ms   {}; {part:.5} × Node's {NODE_MS} ms   {}",
            verdict(took, READY_MS),
            verdict(part, PART_OF_NODE)
        );
    }
}

/// Measures the memory of the gateway's own process, and how often it wakes up.
fn idle() {
    let rest = Duration::from_secs(repeats(IDLE_SECONDS) as u64);
    println!("anonymous memory of the gateway process, after {} s idle", rest.as_secs());
    let mut all = [0.0; 3];
    for (servers, all) in [0, IDLE_SERVERS, 2 * IDLE_SERVERS].into_iter().zip(&mut all) {
        let program = with_servers(servers);
        let (running, _) = Running::start(&program);
        running.until_ready(&program, servers);
        // The connections of `gateway status` end.
        sleep(rest);
        let switches = running.wake_ups();
        sleep(rest);
        let wake_ups = (running.wake_ups() - switches) as f64 / rest.as_secs_f64();
        *all = running.figure("RssAnon:") as f64 / 1024.0;
        let threads = running.figure("Threads:");
        let memory = if servers == IDLE_SERVERS { verdict(*all, IDLE_MB) } else { String::new() };
        let waking = if servers == 0 { verdict(wake_ups, 0.0) } else { String::new() };
        println!(
            "{servers:>2} idle servers {all:>31.1} MB   {memory}   {wake_ups:.1} wake-ups a second   \
             {waking} ({threads} threads)"
        );
        running.stop();
    }
    let further = (all[2] - all[1]) * 1024.0 / IDLE_SERVERS as f64;
    println!("{:<40} {further:>8.0} KB   {}", "each further server", verdict(further, FURTHER_KB));
}

/// Measures `openclaw mcp call` while a gateway is running.
fn beside_gateway() {
    let program = with_servers(1);
    let (running, _) = Running::start(&program);
    running.until_ready(&program, 1);
    let (_, answer) = program.run(&["--json", "mcp", "call", "x0", "pids"]);
    if !is_by(&String::from_utf8_lossy(&answer.stdout), &running) {
        println!(
            "not measured: `openclaw mcp call` starts its own server instead of using the gateway"
        );
        running.stop();
        return;
    }
    let mut best = [f64::MAX; 2];
    for _ in 0..repeats(CALLS) {
        let call = program.timed(&["mcp", "call", "x0", "echo", "text=hi"]);
        let version = program.timed(&["--version"]);
        best = [best[0].min(call), best[1].min(version)];
    }
    let [call, version] = best;
    let ratio = call / version;
    println!("{:<40} {version:>8.2} ms   best of {CALLS}", "openclaw --version");
    println!(
        "{:<40} {call:>8.2} ms {ratio:>6.2} × that   {}",
        "openclaw mcp call, through the gateway",
        verdict(ratio, CALL)
    );
    running.stop();
}

/// Whether this gateway spawned the server that replied: the reply contains its pid.
fn is_by(answer: &str, gateway: &Running) -> bool {
    let numbers = answer.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    let mut numbers = numbers;
    numbers.any(|pid: u32| parent(pid) == Some(gateway.pid()))
}
