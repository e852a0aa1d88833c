//! What a tool call costs: the fast lane beside a bare `rmcp` client, on the same kind of server, in one
//! run. Rounds are interleaved and the best of each counts: the machine is shared.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to a person")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use openclaw_mcp::guard::Guard;
use openclaw_mcp::process::{Launch, Pipes, Process};
use openclaw_mcp::wire::{self, FastLane, Limits, ToolCall};
use openclaw_testkit::{Script, TestServer};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::RunningService;
use serde_json::value::RawValue;

const ROUNDS: usize = 9;
const CALLS: usize = 3_000;
const IN_FLIGHT: usize = 64;
const LIMITS: Limits = Limits { timeout: Duration::from_secs(60), cap: Duration::from_secs(60) };

type Rmcp = RunningService<RoleClient, ClientConfig>;

fn start() -> (Process, Pipes) {
    let (program, args) = TestServer::stdio(&Script::new());
    let program = program.to_str().unwrap().to_owned();
    let launch = Launch { program, args, env: BTreeMap::new(), cwd: None };
    Process::spawn(&launch, &Guard::none()).unwrap()
}

fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("bench", "0"))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

async fn fast_call(lane: &FastLane, arguments: &RawValue) -> usize {
    lane.call_tool(ToolCall { tool: "echo", arguments, meta: "", more: "", headers: &[] }, LIMITS)
        .await
        .unwrap()
        .get()
        .len()
}

async fn rmcp_call(rmcp: &Rmcp, arguments: &serde_json::Map<String, serde_json::Value>) -> usize {
    let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
    rmcp.call_tool(params).await.unwrap().content.len()
}

/// The median time of a call, one after the other.
async fn median<F: Future<Output = usize>>(call: impl Fn() -> F) -> f64 {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[CALLS / 2].as_secs_f64() * 1e6
}

/// The CPU time of this process for a call, with many in flight.
async fn cpu<F: Future<Output = usize>>(call: impl Fn() -> F) -> f64 {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    };
    let before = used();
    let mut flight: FuturesUnordered<_> = (0..IN_FLIGHT).map(|_| call()).collect();
    for _ in 0..CALLS {
        flight.next().await;
        flight.push(call());
    }
    while flight.next().await.is_some() {}
    (used() - before) as f64 / (CALLS + IN_FLIGHT) as f64
}

async fn compare(size: usize) {
    let text = "x".repeat(size);
    let object = serde_json::json!({ "text": text });
    let raw = serde_json::value::to_raw_value(&object).unwrap();
    let map = object.as_object().unwrap().clone();

    let (_ours, pipes) = start();
    let (lane, slow) = wire::open(pipes.stdin, pipes.stdout).unwrap();
    let _rmcp_beside = rmcp::serve_client(client(), slow).await.unwrap();
    let (_theirs, pipes) = start();
    let bare = rmcp::serve_client(client(), (pipes.stdout, pipes.stdin)).await.unwrap();

    let mut best = [f64::MAX; 4];
    for _ in 0..ROUNDS {
        let round = [
            median(|| fast_call(&lane, &raw)).await,
            median(|| rmcp_call(&bare, &map)).await,
            cpu(|| fast_call(&lane, &raw)).await,
            cpu(|| rmcp_call(&bare, &map)).await,
        ];
        for (best, now) in best.iter_mut().zip(round) {
            *best = best.min(now);
        }
    }
    let [fast, bare, fast_cpu, bare_cpu] = best;
    println!(
        "{size:>8} {fast:>14.1} {bare:>14.1} {:>8.2} {fast_cpu:>16.1} {bare_cpu:>14.1} {:>8.2}",
        fast / bare,
        fast_cpu / bare_cpu
    );
}

/// One core for both ends: between two, what is measured is how long it takes to wake the other.
#[cfg(target_os = "linux")]
fn pin() {
    let mut cores = nix::sched::CpuSet::new();
    let pinned = cores
        .set(1)
        .and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores));
    println!("pinned to one core: {}", pinned.is_ok());
}

#[cfg(not(target_os = "linux"))]
fn pin() {}

fn main() {
    pin();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("tool calls over stdio; µs, best of {ROUNDS} rounds; {IN_FLIGHT} in flight for CPU");
    println!(
        "{:>8} {:>14} {:>14} {:>8} {:>16} {:>14} {:>8}",
        "bytes", "fast lane p50", "rmcp p50", "ratio", "fast lane CPU", "rmcp CPU", "ratio"
    );
    for size in [16, 4 * 1024, 64 * 1024] {
        runtime.block_on(compare(size));
    }
}
