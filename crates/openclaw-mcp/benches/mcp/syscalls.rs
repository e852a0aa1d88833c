//! System calls per tool call, counted by `strace` if it is installed: this program runs itself
//! under it twice, with different numbers of calls, and takes the difference.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::call::sampled;
use crate::measure::repeats;
use crate::sides::{Arguments, Bare, Bridge, Lane, local_entry, usual};

const FEW: usize = 500;
const MANY: usize = 2_500;
/// Fewer per call than this come from the timer or the scheduler.
const NOISE: f64 = 0.02;

/// Makes sequential calls and nothing else. Only the main thread is traced, and everything runs on
/// it.
pub(crate) async fn make_calls(side: &str, count: &str) {
    let count: usize = count.parse().unwrap();
    let arguments = Arguments::new(&json!({ "text": "x".repeat(16) }));
    let server = usual();
    match side {
        "bridge" | "counted" | "traced" => {
            let entry = local_entry(&server);
            let bridge = match side {
                "counted" => Bridge::open_counted(entry).await,
                "traced" => Bridge::open_traced(entry, sampled()).await,
                _ => Bridge::open(entry).await,
            };
            bridge.approve("mcp_x_echo", &arguments.raw).await;
            for _ in 0..count {
                bridge.call("mcp_x_echo", &arguments.raw).await;
            }
            bridge.fleet.stop().await;
        }
        "lane" => {
            let lane = Lane::open(&server).await;
            for _ in 0..count {
                lane.call("echo", &arguments.raw).await;
            }
        }
        _ => {
            let bare = Bare::open(&server).await;
            for _ in 0..count {
                bare.call("echo", &arguments.map).await;
            }
        }
    }
}

/// Prints how many system calls a tool call costs on each side.
pub(crate) fn report() {
    for (side, named) in [("bridge", "bridge"), ("lane", "fast lane alone"), ("rmcp", "rmcp")] {
        let (few, many) = (repeats(FEW), repeats(FEW) + repeats(MANY - FEW));
        let Some((few, many)) = count(side, few).zip(count(side, many)) else {
            println!("system calls per call: not counted, `strace` is missing or not permitted");
            return;
        };
        let a_call = |name: &str| {
            let all = |counts: &BTreeMap<String, f64>| counts.get(name).copied().unwrap_or(0.0);
            (all(&many) - all(&few)) / (MANY - FEW) as f64
        };
        let named_each: Vec<_> = many.keys().map(|name| (name, a_call(name))).collect();
        let sum: f64 = named_each.iter().map(|(_, each)| each).sum();
        let each: Vec<String> = named_each
            .iter()
            .filter(|(_, each)| *each > NOISE)
            .map(|(name, each)| format!("{name} {each:.2}"))
            .collect();
        println!("system calls per call, {named}: {sum:.1} ({})", each.join(", "));
    }
}

/// Returns the system calls of a run with this number of tool calls, by name.
fn count(side: &str, calls: usize) -> Option<BTreeMap<String, f64>> {
    let folder = tempfile::tempdir().ok()?;
    let file = folder.path().join("strace");
    let status = Command::new("strace")
        .args(["-c", "-o"])
        .arg(&file)
        .arg(std::env::current_exe().ok()?)
        .args(["__calls", side, &calls.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let table = std::fs::read_to_string(file).ok().filter(|_| status.success())?;
    // % time, seconds, µs per call, calls, (errors,) name
    let rows = table.lines().filter_map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let name = *columns.last()?;
        let count: f64 = columns.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), count))
    });
    Some(rows.collect())
}
