//! Over stdio: time and throughput of calls, memory, and the time to start.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use openclaw_testkit::bench::{repeats, verdict, verdict_at_least};
use openclaw_testkit::{Script, TestServer};
use serde_json::json;

use crate::program::Program;
use crate::{MODERN, VERSION, bridge, line, with_servers};

const ROUNDS: usize = 15;
const CALLS: usize = 1_000;
/// Calls in flight, and how often that many are made.
const IN_FLIGHT: usize = 64;
const BATCHES: usize = 60;
/// The budgets.
const LATENCY: f64 = 3.2;
const THROUGHPUT: f64 = 7.5;
const LARGE: usize = 10_000_000;
const PEAK: f64 = 2.1;
const STARTS: usize = 20;
const START: f64 = 3.0;
const IDLE_SERVERS: usize = 20;
const IDLE_MB: f64 = 8.0;
/// How long the hub is left idle before it is measured.
const IDLE_SECONDS: usize = 5;

/// A process that is reached by lines, as its client sees it. It is killed on drop.
pub(crate) struct Lines {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    answer: Vec<u8>,
}

impl Lines {
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::with_capacity(1 << 16, output), answer: Vec::new() }
    }

    /// Performs the handshake.
    pub(crate) fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        self.send(format!("{hello}\n").as_bytes());
        self.receive();
    }

    /// Completes the handshake, and waits until the tools are listed.
    pub(crate) fn ready(mut self) -> Self {
        self.initialize();
        self.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        self.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}\n");
        self.receive();
        self
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
    }

    /// Reads a response, and returns its length.
    fn receive(&mut self) -> usize {
        loop {
            self.answer.clear();
            assert!(self.output.read_until(b'\n', &mut self.answer).unwrap() > 0, "it has exited");
            let is_response =
                memchr::memmem::find(&self.answer[..self.answer.len().min(80)], b"\"id\"");
            if is_response.is_some() {
                return self.answer.len();
            }
        }
    }

    /// Returns the median time of sequential calls, in µs.
    fn median(&mut self, call: &str) -> f64 {
        let mut times: Vec<Duration> = (0..repeats(CALLS))
            .map(|_| {
                let start = Instant::now();
                self.send(call.as_bytes());
                self.receive();
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e6
    }

    /// Returns the time per call, in µs, with many in flight.
    fn in_flight(&mut self, batch: &str) -> f64 {
        let start = Instant::now();
        for _ in 0..repeats(BATCHES) {
            self.send(batch.as_bytes());
            (0..IN_FLIGHT).for_each(|_| {
                self.receive();
            });
        }
        start.elapsed().as_secs_f64() * 1e6 / (BATCHES * IN_FLIGHT) as f64
    }

    /// Returns a number of `/proc/<pid>/status`, in kB.
    fn figure(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(id: usize, tool: &str, arguments: &serde_json::Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    format!("{call}\n")
}

fn echo(id: usize) -> String {
    call(id, "echo", &json!({ "text": "x".repeat(66) }))
}

fn direct() -> Lines {
    let (program, args) = TestServer::stdio(&Script::new());
    Lines::start(Command::new(program).args(args)).ready()
}

fn hub(program: &Program) -> Lines {
    Lines::start(&mut program.command(&["mcp-server", "--hub"])).ready()
}

fn rmcp_bridge() -> Lines {
    let (program, args) = TestServer::stdio(&Script::new());
    let mut command = Command::new(std::env::current_exe().unwrap());
    Lines::start(command.arg(bridge::ARGUMENT).arg(program).args(args)).ready()
}

/// Measures sequential calls: short ones, and ones with 64 KB of result.
pub(crate) fn latency() {
    let [program, modern] = [VERSION, MODERN].map(|version| with_servers(1, version));
    let mut sides = [direct(), hub(&program), rmcp_bridge(), hub(&modern)];
    println!("{:<44} {:>10} {:>10}", "stdio, best of the medians", "hub", "direct");
    for (what, line_of_call, budget) in [
        ("call of 66 bytes", echo(7), Some(LATENCY)),
        ("result of 64 KB", call(7, "big", &json!({ "bytes": 65_536 })), None),
    ] {
        let mut best = [f64::MAX; 4];
        for _ in 0..repeats(ROUNDS) {
            for (best, side) in best.iter_mut().zip(&mut sides) {
                *best = best.min(side.median(&line_of_call));
            }
        }
        line(what, "µs", best[1], best[0], budget);
        line(&format!("{what}, rmcp bridge"), "µs", best[2], best[0], None);
        line(&format!("{what}, server of {MODERN}"), "µs", best[3], best[0], None);
    }
}

/// Measures calls per second with many in flight.
pub(crate) fn throughput() {
    let [program, modern] = [VERSION, MODERN].map(|version| with_servers(1, version));
    let mut sides = [hub(&program), rmcp_bridge(), hub(&modern)];
    let batch: String = (0..IN_FLIGHT).map(|id| echo(id + 10)).collect();
    let mut best = [f64::MAX; 3];
    for _ in 0..repeats(ROUNDS) {
        for (best, side) in best.iter_mut().zip(&mut sides) {
            *best = best.min(side.in_flight(&batch));
        }
    }
    let [hub, bridge, modern] = best.map(|micros| 1e6 / micros);
    let ratio = hub / bridge;
    println!(
        "{:<44} {hub:>10.0} {bridge:>10.0} calls/s {ratio:>6.2} ×   {}",
        "64 in flight, against the rmcp bridge",
        verdict_at_least(ratio, THROUGHPUT)
    );
    line(&format!("64 in flight, server of {MODERN}"), "calls/s", modern, bridge, None);
}

/// Measures the peak memory for a large result.
pub(crate) fn large_result() {
    let program = with_servers(1, VERSION);
    let mut hub = hub(&program);
    let before = hub.figure("VmHWM:");
    hub.send(call(7, "big", &json!({ "bytes": LARGE })).as_bytes());
    let length = hub.receive();
    assert!(length > LARGE, "{length}");
    let peak = (hub.figure("VmHWM:") - before) * 1024.0;
    line("peak of a result of 10 MB", "MB", peak / 1e6, LARGE as f64 / 1e6, Some(PEAK));
}

/// Measures the time from before the spawn until the response to `initialize`.
pub(crate) fn start() {
    let program = with_servers(1, VERSION);
    let mut best = [f64::MAX; 2];
    for _ in 0..repeats(STARTS) {
        let begun = Instant::now();
        let mut hub = Lines::start(&mut program.command(&["mcp-server", "--hub"]));
        hub.initialize();
        let took = begun.elapsed().as_secs_f64() * 1e3;
        drop(hub);
        best = [best[0].min(took), best[1].min(program.timed(&["--version"]))];
    }
    line("start to `initialize`, against --version", "ms", best[0], best[1], Some(START));
}

/// Measures the anonymous memory with idle servers.
pub(crate) fn idle() {
    let program = with_servers(IDLE_SERVERS, VERSION);
    let hub = hub(&program);
    sleep(Duration::from_secs(repeats(IDLE_SECONDS) as u64));
    let anonymous = hub.figure("RssAnon:") / 1024.0;
    println!(
        "{:<44} {anonymous:>10.2} {:>10} MB      {}",
        "anonymous memory with 20 idle servers",
        "",
        verdict(anonymous, IDLE_MB)
    );
}
