//! The catalogue of fifty servers with twenty tools each: the time to build it, from scratch and
//! after one list has changed, and to look up a tool.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::services::CallServices;
use openclaw_testkit::TestServer;
use openclaw_tools::CallContext;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fleet::{SERVERS, TOOLS, entries, script};
use crate::measure::{Budget, ROUNDS, micros, pin, repeats};
use crate::runtime;
use crate::sides::{config, local_entry, setup};

const BUILD_MS: Budget = Budget::at_most(20.0);
const LOOKUP_NS: Budget = Budget::at_most(200.0);
/// A tool that one server lists, but rejects as unknown when it is called.
const GONE: &str = "search_issues_7";
const GONE_NAMED: &str = "mcp_changing_search_issues_7";
const ARGUMENTS: &str = r#"{"owner":"a","repo":"b","query":"c"}"#;

pub(crate) fn run() {
    pin();
    println!("{} servers of {TOOLS} tools; best of {ROUNDS} rounds", SERVERS + 1);
    runtime().block_on(measure());
}

async fn measure() {
    let mut entries = entries(&script());
    entries["changing"] = local_entry(&TestServer::stdio(&script().unknown_tool(GONE)));
    let config = config(&entries);
    let fleet = Fleet::start(&config, setup(CallServices::none(), StorageFolders::default()));
    fleet.tried().await;

    // The same servers with another setting, so that the agent rebuilds its tools.
    let mut other = config.clone();
    for server in other.agents[0].mcp.servers.values_mut() {
        server.options.max_result_chars += 1;
    }
    let mut best = [f64::MAX; 4];
    for round in 0..repeats(ROUNDS) {
        fleet.apply(if round % 2 == 0 { &other } else { &config });
        let tools = fleet.agent("main").unwrap();
        let (from_nothing, _) = build(&tools);
        let without = without_a_tool(&tools).await;
        let with_again = until_it_is_back(&tools).await;
        let parsed = parse(&tools);
        for (best, now) in best.iter_mut().zip([from_nothing, without, with_again, parsed]) {
            *best = best.min(micros(now) / 1e3);
        }
    }
    let [from_nothing, without, with_again, parsed] = best;
    println!("{:<52} {parsed:>9.2} ms", "`rmcp` parsing the same lists");
    for (what, ours) in [
        ("built from scratch", from_nothing),
        ("built after one server lost a tool", without),
        ("built after one server listed its tools again", with_again),
    ] {
        let (ratio, verdict) = (ours / parsed, BUILD_MS.verdict(ours));
        println!("{what:<52} {ours:>9.2} ms {ratio:>6.2} × that   {verdict}");
    }
    lookups(&fleet.agent("main").unwrap());
    fleet.stop().await;
}

/// Builds the catalogue if something has changed. Returns the time taken and the number of tools.
fn build(tools: &AgentTools) -> (Duration, usize) {
    let start = Instant::now();
    let catalogue = tools.catalogue();
    (start.elapsed(), catalogue.all().len())
}

/// Makes a server reject a tool as unknown, which removes it (B11), and rebuilds the catalogue.
async fn without_a_tool(tools: &AgentTools) -> Duration {
    let arguments = RawValue::from_string(ARGUMENTS.to_owned()).unwrap();
    let outcome = tools.call(GONE_NAMED, &arguments, &CallContext::by_hand("bench")).await;
    assert!(outcome.is_error, "{}", outcome.text());
    let (took, count) = build(tools);
    assert_eq!(count, (SERVERS + 1) * TOOLS - 1);
    took
}

/// Waits until the list is read again, which still contains the tool.
async fn until_it_is_back(tools: &AgentTools) -> Duration {
    let wait = async {
        loop {
            let (took, count) = build(tools);
            if count == (SERVERS + 1) * TOOLS {
                return took;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap()
}

/// Measures how long a bare client takes to parse the same lists.
fn parse(tools: &AgentTools) -> Duration {
    let definitions: Vec<Value> = tools
        .catalogue()
        .all()
        .iter()
        .map(|tool| {
            let listed = tool.listed();
            json!({
                "name": listed.name,
                "description": listed.description,
                "inputSchema": *listed.input_schema,
                "annotations": { "readOnlyHint": true },
            })
        })
        .collect();
    let lists: Vec<String> =
        definitions.chunks(TOOLS).map(|chunk| json!({ "tools": chunk }).to_string()).collect();
    let start = Instant::now();
    for list in &lists {
        black_box(serde_json::from_str::<rmcp::model::ListToolsResult>(list).unwrap());
    }
    start.elapsed()
}

fn lookups(tools: &Arc<AgentTools>) {
    const REPEATS: usize = 20;
    let catalogue = tools.catalogue();
    let names: Vec<String> =
        catalogue.all().iter().map(|tool| tool.spec.name.as_str().to_owned()).collect();
    let plain: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let each = |look: &dyn Fn(&str)| {
        let start = Instant::now();
        for _ in 0..repeats(REPEATS) {
            for name in &names {
                look(black_box(name));
            }
        }
        micros(start.elapsed()) * 1e3 / (REPEATS * names.len()) as f64
    };
    let mut best = [f64::MAX; 3];
    for _ in 0..repeats(ROUNDS) {
        let round = [
            each(&|name| {
                black_box(catalogue.get(name));
            }),
            each(&|name| {
                black_box(tools.catalogue().get(name));
            }),
            each(&|name| {
                black_box(plain.get(name));
            }),
        ];
        crate::measure::keep_best(&mut best, round);
    }
    let [held, fetched, plain] = best;
    println!("{:<52} {plain:>9.0} ns", "lookup in a plain hash map");
    for (what, ours) in [("lookup in a catalogue", held), ("fetched first, as in a call", fetched)]
    {
        let (ratio, verdict) = (ours / plain, LOOKUP_NS.verdict(ours));
        println!("{what:<52} {ours:>9.0} ns {ratio:>6.2} × that   {verdict}");
    }
}
