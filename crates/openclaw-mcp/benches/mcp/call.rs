//! Tool calls over stdio: the whole pipeline including the audit line, and the fast lane alone,
//! compared with a bare `rmcp` client.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openclaw_content::Source;
use openclaw_mcp::call::results::{ResultLimits, outcome};
use openclaw_mcp_client::wire::json::Json;
use openclaw_trace::{Sink, SpanRecord, TraceSampler, Tracer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::measure::{
    Budget, IN_FLIGHT, ROUNDS, cpu, cpu_used, heading, in_flight, keep_best, line, median, pin,
    repeats,
};
use crate::sides::{Arguments, Bare, Bridge, Lane, local_entry, usual};
use crate::{runtime, syscalls};

const P50: Budget = Budget::at_most(0.5);
const CPU: Budget = Budget::at_most(0.25);
const CPU_OF_LARGE: Budget = Budget::at_most(0.5);
/// Counting, compared with not counting.
const COUNTING: Budget = Budget::at_most(1.05);

/// A kind of call, with its number of repetitions and its budgets.
struct Kind {
    what: &'static str,
    tool: &'static str,
    arguments: Value,
    calls: usize,
    p50: Budget,
    cpu: Budget,
}

pub(crate) fn run() {
    pin();
    println!(
        "tool calls over stdio, best of {ROUNDS} rounds: p50 one after the other, CPU of this \
         process a call with {IN_FLIGHT} in flight"
    );
    println!("both use 2026-07-28; the older `rmcp` uses 2025-11-25, with less to send");
    heading("rmcp");
    let kinds = [
        Kind {
            what: "16 bytes",
            tool: "echo",
            arguments: json!({ "text": "x".repeat(16) }),
            calls: 3_000,
            p50: P50,
            cpu: CPU,
        },
        Kind {
            what: "4 KB result",
            tool: "big",
            arguments: json!({ "bytes": 4 * 1024 }),
            calls: 2_000,
            p50: Budget::NONE,
            cpu: Budget::NONE,
        },
        Kind {
            what: "64 KB result",
            tool: "big",
            arguments: json!({ "bytes": 64 * 1024 }),
            calls: 600,
            p50: Budget::NONE,
            cpu: CPU_OF_LARGE,
        },
    ];
    let runtime = runtime();
    for kind in kinds {
        runtime.block_on(compare(&kind));
    }
    syscalls::report();
    heading("traces off");
    runtime.block_on(compare_traced());
}

/// Takes spans as the exporter does, without sending them.
#[derive(Debug, Default)]
struct Taken(Mutex<Vec<SpanRecord>>);

impl Sink for Taken {
    fn end(&self, span: SpanRecord) {
        let mut taken = self.0.lock().unwrap();
        if taken.len() == 512 {
            taken.clear();
        }
        taken.push(span);
    }
}

/// A tracer that records one call in a hundred.
pub(crate) fn sampled() -> Tracer {
    let sampler = TraceSampler { follows_parent: true, ratio: 0.01 };
    Tracer::new(Arc::new(Taken::default()), sampler, None)
}

/// Like [`cpu`], for a pipeline: its audit lines are written before and within the measurement, so
/// that it pays for its own ones, and for no others.
async fn cpu_of(bridge: &Bridge, calls: usize, name: &str, raw: &RawValue) -> f64 {
    bridge.settle().await;
    let calls = repeats(calls);
    let before = cpu_used();
    in_flight(calls, || bridge.call(name, raw)).await;
    bridge.settle().await;
    (cpu_used() - before) / (calls + IN_FLIGHT) as f64
}

/// Compares calls of which one in a hundred is recorded with calls without traces.
async fn compare_traced() {
    const CALLS: usize = 3_000;
    const MOST: Budget = Budget::at_most(1.1);
    let arguments = Arguments::new(&json!({ "text": "x".repeat(16) }));
    let (raw, name, server) = (&*arguments.raw, "mcp_x_echo", usual());
    let off = Bridge::open(local_entry(&server)).await;
    let traced = Bridge::open_traced(local_entry(&server), sampled()).await;
    for side in [&off, &traced] {
        side.approve(name, raw).await;
    }
    let mut best = [f64::MAX; 4];
    for _ in 0..repeats(ROUNDS) {
        let round = [
            median(CALLS, || traced.call(name, raw)).await,
            median(CALLS, || off.call(name, raw)).await,
            cpu_of(&traced, CALLS, name, raw).await,
            cpu_of(&off, CALLS, name, raw).await,
        ];
        keep_best(&mut best, round);
    }
    let [p50, p50_off, used, used_off] = best;
    line("16 bytes, p50, traces sampled at 1 %", "µs", p50, p50_off, MOST);
    line("16 bytes, CPU, traces sampled at 1 %", "µs", used, used_off, MOST);
    off.fleet.stop().await;
    traced.fleet.stop().await;
}

async fn compare(kind: &Kind) {
    let Kind { what, tool, calls, .. } = *kind;
    let arguments = Arguments::new(&kind.arguments);
    let (raw, map, name) = (&*arguments.raw, &arguments.map, format!("mcp_x_{tool}"));
    let server = usual();
    let audited = Bridge::open(local_entry(&server)).await;
    let counted = Bridge::open_counted(local_entry(&server)).await;
    let lane = Lane::open(&server).await;
    let bare = Bare::open(&server).await;
    let older = Bare::open_older(&server).await;
    audited.approve(&name, raw).await;
    counted.approve(&name, raw).await;

    let mut best = [f64::MAX; 9];
    for _ in 0..repeats(ROUNDS) {
        let round = [
            median(calls, || audited.call(&name, raw)).await,
            median(calls, || bare.call(tool, map)).await,
            median(calls, || older.call(tool, map)).await,
            median(calls, || lane.call(tool, raw)).await,
            cpu_of(&audited, calls, &name, raw).await,
            cpu(calls, || bare.call(tool, map)).await,
            cpu(calls, || lane.call(tool, raw)).await,
            median(calls, || counted.call(&name, raw)).await,
            cpu_of(&counted, calls, &name, raw).await,
        ];
        keep_best(&mut best, round);
    }
    let [p50, rmcp_p50, older_p50, lane_p50, used, rmcp_used, lane_used, counted_p50, counted_used] =
        best;
    line(&format!("{what}, p50, pipeline"), "µs", p50, rmcp_p50, kind.p50);
    line(&format!("{what}, p50, beside the older rmcp"), "µs", p50, older_p50, kind.p50);
    line(&format!("{what}, p50, fast lane alone"), "µs", lane_p50, rmcp_p50, Budget::NONE);
    line(&format!("{what}, CPU, pipeline"), "µs", used, rmcp_used, kind.cpu);
    line(&format!("{what}, CPU, fast lane alone"), "µs", lane_used, rmcp_used, Budget::NONE);
    line(&format!("{what}, p50, metrics on (baseline: off)"), "µs", counted_p50, p50, COUNTING);
    line(&format!("{what}, CPU, metrics on (baseline: off)"), "µs", counted_used, used, COUNTING);
    shares(what, reading(&lane.answer(tool, raw).await), lane_used, used);
    audited.fleet.stop().await;
    counted.fleet.stop().await;
}

/// Prints the breakdown of a call's CPU time. Reading the result is measured separately; the
/// remainder after the lane and that is attributed to the checks and the audit line.
fn shares(what: &str, reading: f64, lane: f64, pipeline: f64) {
    let rest = (pipeline - lane - reading).max(0.0);
    let shares = [("wire", lane), ("checks and audit", rest), ("reading the result", reading)];
    let listed = shares.map(|(part, micros)| format!("{part} {micros:.2}"));
    let most = shares.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or("", |(part, _)| part);
    println!("{what}, CPU goes to (µs): {}; most to: {most}", listed.join(", "));
}

/// Returns the CPU time of converting a response to an outcome, in microseconds.
fn reading(answer: &Json) -> f64 {
    let calls = (4 * 1024 * 1024 / answer.get().len()).clamp(50, 2_000);
    let source = Arc::new(Source::mcp_tool("x", "echo"));
    let limits = ResultLimits { max_chars: 100_000_000, everything: false };
    let round = || {
        let start = cpu_used();
        for _ in 0..calls {
            let outcome =
                outcome(answer.clone(), Arc::clone(&source), limits, None, Duration::ZERO);
            assert!(!black_box(outcome).is_error);
        }
        (cpu_used() - start) / calls as f64
    };
    (0..repeats(ROUNDS)).map(|_| round()).fold(f64::MAX, f64::min)
}
