//! Large results: the peak memory of one call over the baseline, and how its CPU time grows with
//! the size. Every value is measured in a process of its own, which makes one call.

use std::path::Path;
use std::process::Command;

use openclaw_testkit::{Script, TestServer, Tool};
use serde_json::json;

use crate::measure::{Budget, cpu_used, keep_best, pin, repeats};
use crate::sides::{Arguments, Bare, Bridge, local_entry};

const LARGE: usize = 10 * 1024 * 1024;
const SMALL: usize = 1024 * 1024;
const ROUNDS: usize = 7;
const PEAK: Budget = Budget::at_most(2.1);
const GROWTH: Budget = Budget::at_most(15.0);
/// Kinds of text: nothing to decode, occasional line breaks, and every kind of escape.
const TEXTS: [&str; 3] = ["plain", "lines", "escapes"];

pub(crate) fn run() {
    pin();
    if !Path::new("/proc/self/clear_refs").exists() {
        println!("not measured: peak memory is only available on Linux");
        return;
    }
    println!("one call with a text of 10 MB, and of 1 MB; best of {ROUNDS} processes each");
    for text in TEXTS {
        let folder = tempfile::tempdir().unwrap();
        let [large, small] = [LARGE, SMALL].map(|bytes| {
            let file = folder.path().join(bytes.to_string());
            std::fs::write(&file, script(text, bytes).to_json()).unwrap();
            file
        });
        let mut best = [f64::MAX; 6];
        for _ in 0..repeats(ROUNDS) {
            let [peak, cpu] = measured("bridge", &large);
            let [_, small_cpu] = measured("bridge", &small);
            let [bare_peak, bare_cpu] = measured("rmcp", &large);
            let [_, bare_small_cpu] = measured("rmcp", &small);
            keep_best(&mut best, [peak, cpu, small_cpu, bare_peak, bare_cpu, bare_small_cpu]);
        }
        let [peak, cpu, small_cpu, bare_peak, bare_cpu, bare_small_cpu] = best;
        for (side, peak, cpu, small, peak_budget, growth_budget) in [
            ("bridge", peak, cpu, small_cpu, PEAK, GROWTH),
            ("rmcp", bare_peak, bare_cpu, bare_small_cpu, Budget::NONE, Budget::NONE),
        ] {
            let (size, growth) = (peak / LARGE as f64, cpu / small);
            println!(
                "{text:<8} {side:<7} peak {size:>5.2} × its size ({})",
                peak_budget.verdict(size)
            );
            println!(
                "{text:<8} {side:<7} CPU {:>6.1} ms, {growth:>5.1} × that of 1 MB ({})",
                cpu / 1e3,
                growth_budget.verdict(growth)
            );
        }
        println!(
            "{text:<8} bridge ÷ rmcp: peak {:.2}, CPU {:.2}",
            peak / bare_peak,
            cpu / bare_cpu
        );
    }
}

/// Returns the script of a server with a tool that returns such a text, and one with a small
/// result. They are read-only, so that no call needs an approval.
fn script(text: &str, bytes: usize) -> Script {
    let line = match text {
        "plain" => "The quick brown fox jumps over the lazy dog, and nobody is surprised by it.  ",
        "lines" => "The quick brown fox jumps over the lazy dog, and nobody is surprised by it.\n ",
        _ => "\"quotes\" and \\ and a tab\t and an é, a 漢 and a 🦀, and then a line break:\n",
    };
    let tool = |name: &str, text: &str| {
        Tool::new(name)
            .with("annotations", json!({ "readOnlyHint": true }))
            .result(&json!({ "content": [{ "type": "text", "text": text }] }))
    };
    let large = line.repeat(bytes / line.len());
    Script::new().tools([tool("large", &large), tool("small", "small")])
}

/// Measures one call in a process of its own: peak bytes over the baseline, and CPU time in µs.
fn measured(side: &str, script: &Path) -> [f64; 2] {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["__one", side]).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    let mut figures = output.split_whitespace().map(|figure| figure.parse().unwrap());
    [figures.next().unwrap(), figures.next().unwrap()]
}

/// Makes one large call, after a small one, and prints its cost. Only the server reads the script:
/// memory that this process had used and freed would be reused, and hide the growth.
pub(crate) async fn one_call(side: &str, script: &str) {
    let args = ["stdio", "--script", script].map(str::to_owned).to_vec();
    let server = (TestServer::program(), args);
    let arguments = Arguments::new(&json!({}));
    match side {
        "bridge" => {
            let bridge = Bridge::open(local_entry(&server)).await;
            bridge.call("mcp_x_small", &arguments.raw).await;
            Box::pin(watch(bridge.call("mcp_x_large", &arguments.raw))).await;
            bridge.fleet.stop().await;
        }
        _ => {
            let bare = Bare::open(&server).await;
            bare.call("small", &arguments.map).await;
            watch(bare.call("large", &arguments.map)).await;
        }
    }
}

/// Prints the peak growth of resident memory during a call, in bytes, and its CPU time in µs.
async fn watch(call: impl Future<Output = usize>) {
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident("VmRSS:");
    let cpu = cpu_used();
    call.await;
    let (cpu, peak) = (cpu_used() - cpu, resident("VmHWM:"));
    println!("{} {cpu}", peak.saturating_sub(before));
}

/// Returns a field of `/proc/self/status`, in bytes.
fn resident(figure: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
