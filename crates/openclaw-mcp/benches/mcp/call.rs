//! A tool call over stdio: the whole bridge and the fast lane alone, beside a bare `rmcp` client.

use std::hint::black_box;
use std::time::Duration;

use openclaw_mcp::results::{Origin, ResultLimits, outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::measure::{
    Budget, IN_FLIGHT, ROUNDS, cpu, cpu_used, heading, keep_best, line, median, pin,
};
use crate::sides::{Arguments, Bare, Bridge, Lane, local_entry, usual};
use crate::{runtime, syscalls};

const P50: Budget = Budget::at_most(0.6);
const CPU: Budget = Budget::at_most(0.4);

/// A call, and how much of it is measured.
struct Kind {
    what: &'static str,
    tool: &'static str,
    arguments: Value,
    calls: usize,
    has_budget: bool,
}

pub(crate) fn run() {
    pin();
    println!(
        "tool calls over stdio, best of {ROUNDS} rounds: p50 one after the other, CPU of this \
         process a call with {IN_FLIGHT} in flight"
    );
    println!("the bridge speaks 2026-07-28, `rmcp` 2025-11-25: with less to send");
    heading("rmcp");
    let kinds = [
        Kind {
            what: "16 bytes",
            tool: "echo",
            arguments: json!({ "text": "x".repeat(16) }),
            calls: 3_000,
            has_budget: true,
        },
        Kind {
            what: "4 KB result",
            tool: "big",
            arguments: json!({ "bytes": 4 * 1024 }),
            calls: 2_000,
            has_budget: false,
        },
        Kind {
            what: "64 KB result",
            tool: "big",
            arguments: json!({ "bytes": 64 * 1024 }),
            calls: 600,
            has_budget: false,
        },
    ];
    let runtime = runtime();
    for kind in kinds {
        runtime.block_on(compare(&kind));
    }
    syscalls::report();
}

async fn compare(kind: &Kind) {
    let Kind { what, tool, calls, .. } = *kind;
    let arguments = Arguments::new(&kind.arguments);
    let (raw, map, name) = (&*arguments.raw, &arguments.map, format!("mcp_x_{tool}"));
    let server = usual();
    let bridge = Bridge::open(local_entry(&server), false).await;
    let audited = Bridge::open(local_entry(&server), true).await;
    let lane = Lane::open(&server).await;
    let bare = Bare::open(&server).await;
    bridge.approve(&name, raw).await;
    audited.approve(&name, raw).await;

    let mut best = [f64::MAX; 8];
    for _ in 0..ROUNDS {
        let round = [
            median(calls, || bridge.call(&name, raw)).await,
            median(calls, || bare.call(tool, map)).await,
            median(calls, || audited.call(&name, raw)).await,
            median(calls, || lane.call(tool, raw)).await,
            cpu(calls, || bridge.call(&name, raw)).await,
            cpu(calls, || bare.call(tool, map)).await,
            cpu(calls, || audited.call(&name, raw)).await,
            cpu(calls, || lane.call(tool, raw)).await,
        ];
        keep_best(&mut best, round);
    }
    let budget = |budget| if kind.has_budget { budget } else { Budget::NONE };
    let [p50, rmcp_p50, audited_p50, lane_p50, used, rmcp_used, audited_used, lane_used] = best;
    for (side, ours, of) in [
        ("bridge", p50, rmcp_p50),
        ("bridge, audited", audited_p50, rmcp_p50),
        ("fast lane alone", lane_p50, rmcp_p50),
    ] {
        line(&format!("{what}, p50, {side}"), "µs", ours, of, budget(P50));
    }
    for (side, ours, of) in [
        ("bridge", used, rmcp_used),
        ("bridge, audited", audited_used, rmcp_used),
        ("fast lane alone", lane_used, rmcp_used),
    ] {
        line(&format!("{what}, CPU, {side}"), "µs", ours, of, budget(CPU));
    }
    shares(what, wrapping(&lane.answer(tool, raw).await), lane_used, used, audited_used);
    bridge.fleet.stop().await;
    audited.fleet.stop().await;
}

/// Says what the CPU time of a call goes to, and to what most of it. Wrapping is measured by itself; what
/// the lane, wrapping and the audit line leave over are the checks, with all that lies between.
fn shares(what: &str, wrapping: f64, lane: f64, bridge: f64, audited: f64) {
    let checks = (bridge - lane - wrapping).max(0.0);
    let audit = (audited - bridge).max(0.0);
    let shares = [("wire", lane), ("checks", checks), ("wrapping", wrapping), ("audit", audit)];
    let listed = shares.map(|(part, micros)| format!("{part} {micros:.2}"));
    let most = shares.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or("", |(part, _)| part);
    println!("{what}, CPU goes to (µs): {}; most to: {most}", listed.join(", "));
}

/// The CPU time to make an outcome of an answer, in microseconds.
fn wrapping(answer: &RawValue) -> f64 {
    let repeats = (4 * 1024 * 1024 / answer.get().len()).clamp(50, 2_000);
    let origin = Origin { server: "x", tool: "echo" };
    let limits = ResultLimits { max_chars: 100_000_000, everything: false };
    let round = || {
        let start = cpu_used();
        for _ in 0..repeats {
            let outcome = outcome(answer.to_owned(), origin, limits, None, Duration::ZERO);
            assert!(!black_box(outcome).is_error);
        }
        (cpu_used() - start) / repeats as f64
    };
    (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min)
}
