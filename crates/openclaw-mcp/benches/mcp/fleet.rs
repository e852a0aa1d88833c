//! Startup of fifty servers with twenty tools each: our fleet, compared with bare `rmcp` clients
//! that start the same processes concurrently and list their tools.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::services::CallServices;
use openclaw_testkit::{Script, TestServer, Tool};
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

use crate::measure::{Budget, cpu_used, heading, keep_best, line, micros, pin, repeats, unpin};
use crate::runtime;
use crate::sides::{Rmcp, client, config, local_entry, setup};

pub(crate) const SERVERS: usize = 50;
pub(crate) const TOOLS: usize = 20;
const ROUNDS: usize = 25;
const READY: Budget = Budget::at_most(1.05);
const BUILT: Budget = Budget::at_most(1.1);

/// A server with realistic tools: a few described parameters of several types.
pub(crate) fn script() -> Script {
    let tools = (0..TOOLS).map(|number| {
        Tool::new(format!("search_issues_{number}"))
            .description(
                "Searches the issues of a repository by text, state and labels, newest first. \
                 Use it before opening a new one.",
            )
            .schema(json!({
                "type": "object",
                "properties": {
                    "owner": { "type": "string", "description": "Who the repository belongs to." },
                    "repo": { "type": "string", "description": "The name of the repository." },
                    "query": { "type": "string", "minLength": 1, "description": "What to look for." },
                    "state": { "type": "string", "enum": ["open", "closed", "all"], "default": "open" },
                    "labels": { "type": "array", "items": { "type": "string" }, "maxItems": 20 },
                    "page": { "type": "integer", "minimum": 1, "default": 1 },
                },
                "required": ["owner", "repo", "query"],
                "additionalProperties": false,
            }))
            .with("annotations", json!({ "readOnlyHint": true }))
    });
    Script::new().tools(tools).tools_only()
}

/// Returns the configuration entries of all servers.
pub(crate) fn entries(script: &Script) -> Value {
    let entry = local_entry(&TestServer::stdio(script));
    let all: Map<String, Value> =
        (0..SERVERS).map(|number| (format!("server{number}"), entry.clone())).collect();
    Value::Object(all)
}

pub(crate) fn run() {
    println!(
        "{SERVERS} servers of {TOOLS} tools, until all can be called; best of {ROUNDS} rounds"
    );
    println!("CPU is that of this process, including spawning");
    pin();
    heading("rmcp");
    runtime().block_on(compare(READY, BUILT));
    unpin();
    println!("on all cores:");
    runtime().block_on(compare(Budget::NONE, Budget::NONE));
}

async fn compare(ready: Budget, built: Budget) {
    let script = script();
    let entries = entries(&script);
    let mut best = [f64::MAX; 8];
    for _ in 0..repeats(ROUNDS) {
        let folder = tempfile::tempdir().unwrap();
        let [first, first_built, first_cpu] = ours(&entries, folder.path()).await;
        let [bare, bare_cpu] = theirs(&script).await;
        let [again, again_built, again_cpu] = ours(&entries, folder.path()).await;
        let round = [first, first_built, first_cpu, again, again_built, again_cpu, bare, bare_cpu];
        keep_best(&mut best, round);
    }
    let best = best.map(|micros| micros / 1e3);
    let [first, first_built, first_cpu, again, again_built, again_cpu, bare, bare_cpu] = best;
    line("wall, cold cache", "ms", first, bare, ready);
    line("wall, warm cache", "ms", again, bare, ready);
    line("wall, cold cache, catalogue built", "ms", first_built, bare, built);
    line("wall, warm cache, catalogue built", "ms", again_built, bare, built);
    line("CPU, cold cache", "ms", first_cpu, bare_cpu, Budget::NONE);
    line("CPU, warm cache", "ms", again_cpu, bare_cpu, Budget::NONE);
}

/// Measures our fleet: the time until all servers are ready, the time until the catalogue is built
/// too, and the CPU time of both.
async fn ours(entries: &Value, folder: &Path) -> [f64; 3] {
    let folders = StorageFolders { catalogue: Some(folder.to_owned()), logs: None };
    let config = config(entries);
    let (cpu, start) = (cpu_used(), Instant::now());
    let fleet: Arc<Fleet> = Fleet::start(&config, setup(CallServices::none(), folders));
    let tried = fleet.tried().await;
    let ready = micros(start.elapsed());
    let catalogue = fleet.agent("main").unwrap().catalogue();
    let spent = [ready, micros(start.elapsed()), cpu_used() - cpu];
    assert_eq!((tried.ready, catalogue.all().len()), (SERVERS, SERVERS * TOOLS));
    fleet.stop().await;
    spent
}

/// Measures bare clients: the time until all servers are ready, and the CPU time.
async fn theirs(script: &Script) -> [f64; 2] {
    let (program, args) = TestServer::stdio(script);
    let (cpu, start) = (cpu_used(), Instant::now());
    let one = || async {
        let mut child: Child = Command::new(&program)
            .args(&args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let rmcp: Rmcp = rmcp::serve_client(client(), pipes).await.unwrap();
        let tools = rmcp.list_all_tools().await.unwrap();
        (tools.len(), rmcp, child)
    };
    let ready = join_all((0..SERVERS).map(|_| one())).await;
    let spent = [micros(start.elapsed()), cpu_used() - cpu];
    for (tools, rmcp, mut child) in ready {
        assert_eq!(tools, TOOLS);
        let _ = rmcp.cancel().await;
        let _ = child.kill().await;
    }
    spent
}
