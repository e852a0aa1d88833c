use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use openclaw_config::{Config, EntryChange, LoadEnvironment, ServerChange, load_text};
use openclaw_secrets::Environment;
use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fleet::{Fleet, FleetSetup};
use crate::server::Server;
use crate::server::dial::DialContext;

/// An entry: enabled, connection, options.
type Entry = (bool, u8, u8);
/// The servers of each agent.
type Agents = BTreeMap<String, BTreeMap<String, Entry>>;

fn agents() -> impl Strategy<Value = Agents> {
    let entry = (any::<bool>(), 0..2_u8, 0..2_u8);
    let servers = btree_map("[ab]", entry, 0..3);
    btree_map("[xyz]", servers, 1..4)
}

/// All servers are lazy, so that none is started.
fn config(agents: &Agents) -> Config {
    let entry = |(enabled, connection, options): &Entry| {
        json!({
            "command": "openclaw-no-such-program", "args": [connection.to_string()], "lazy": true,
            "enabled": enabled, "toolTimeout": 1_000 + u64::from(*options),
        })
    };
    let list = agents.iter().map(|(id, servers)| {
        let servers: BTreeMap<&String, Value> =
            servers.iter().map(|(name, it)| (name, entry(it))).collect();
        json!({ "id": id, "mcp": { "servers": servers } })
    });
    let text = json!({ "agents": { "list": list.collect::<Vec<_>>() } }).to_string();
    let loaded = load_text(Path::new("openclaw.json"), &text, LoadEnvironment::empty());
    loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.report))
}

fn setup() -> FleetSetup {
    FleetSetup::new(DialContext::new(Environment::new(|_| None)))
}

fn server(fleet: &Fleet, agent: &str, name: &str) -> Option<Arc<Server>> {
    fleet.agent(agent)?.server(name).map(Arc::clone)
}

/// Checks that the reported changes match the servers and the configuration.
fn check(fleet: &Fleet, steps: &[Agents]) {
    for pair in steps.windows(2) {
        let [old, new] = pair else { continue };
        let names = ["x", "y", "z"].into_iter().flat_map(|a| [(a, "a"), (a, "b")]);
        let before: BTreeMap<_, _> =
            names.map(|(agent, name)| ((agent, name), server(fleet, agent, name))).collect();
        let changes = fleet.apply(&config(new)).changes;
        for ((agent, name), before) in &before {
            let after = server(fleet, agent, name);
            let change = changes.agents.get(*agent).and_then(|it| it.servers.get(*name));
            let is_same = match (before, &after) {
                (Some(before), Some(after)) => Arc::ptr_eq(before, after),
                _ => false,
            };
            let expected = match (before, &after) {
                (None, None) => {
                    matches!(change, None | Some(ServerChange::Same | ServerChange::NotRunning))
                }
                (None, Some(_)) => change == Some(&ServerChange::Added),
                (Some(_), None) => change == Some(&ServerChange::Removed),
                (Some(_), Some(_)) if is_same => {
                    matches!(change, Some(ServerChange::Same | ServerChange::Updated))
                }
                (Some(_), Some(_)) => change == Some(&ServerChange::Restarted),
            };
            assert!(expected, "{agent} {name}: {change:?}, {old:?} to {new:?}");
        }
        in_force(fleet, new);
        let is_same = |id: &String| {
            changes.agents[id.as_str()].settings == EntryChange::Same && old.get(id) == new.get(id)
        };
        for id in new.keys().filter(|id| is_same(id)) {
            assert!(
                changes.agents[id.as_str()].servers.values().all(|it| *it == ServerChange::Same)
            );
        }
    }
}

/// Checks that each agent has its enabled servers with its own options, and shares those with the
/// same connection.
fn in_force(fleet: &Fleet, agents: &Agents) {
    let mut running = BTreeMap::new();
    for (id, servers) in agents {
        let tools = fleet.agent(id).unwrap();
        for (name, (enabled, connection, options)) in servers {
            let member = tools.member(name);
            assert_eq!(member.is_some(), *enabled);
            let Some(member) = member else { continue };
            let timeout = member.limits.timeout.as_millis();
            assert_eq!(timeout, 1_000 + u128::from(*options));
            let first =
                running.entry((name, connection)).or_insert_with(|| Arc::clone(&member.server));
            assert!(Arc::ptr_eq(first, &member.server), "{id} shares {name}");
        }
    }
    assert_eq!(fleet.servers().len(), running.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reported_changes_match_the_servers(steps in proptest::collection::vec(agents(), 2..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fleet = Fleet::start(&config(&steps[0]), setup());
            in_force(&fleet, &steps[0]);
            check(&fleet, &steps);
            fleet.stop().await;
        });
    }
}
