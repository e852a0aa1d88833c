//! The four layers of servers, later ones win (C2), and the origin of each value (C8).

use std::time::Duration;

use crate::support::*;
use openclaw_config::{ServerChange, SettingOrigin, Transport};

const FOUR_PLACES: &str = r#"{
  plugins: { entries: { "mcp-client": { config: {
    servers: { x: { command: "one", timeout: 1, toolTimeout: 1, maxRestarts: 1, env: { A: "1", B: "1" } } },
    maxConcurrentServers: 1, toolDiscoveryInterval: 0 } } } },
  mcp: { servers: { x: { timeout: 2, toolTimeout: 2, maxRestarts: 2, env: { B: "2" } }, y: { command: "y" } },
    maxConcurrentServers: 2 },
  agents: {
    defaults: { mcp: { servers: { x: { toolTimeout: 3, maxRestarts: 3 } } } },
    list: [ { id: "a", mcp: { servers: { x: { maxRestarts: 4 }, y: { enabled: false } } } }, { id: "b" } ],
    entries: { c: { mcp: { servers: { z: { url: "https://z.example" } } } } },
  },
}"#;

#[test]
fn later_places_win_field_by_field() {
    let config = good(FOUR_PLACES);
    let x = &config.agent(Some("a")).unwrap().mcp.servers["x"];
    let Transport::Stdio(stdio) = &x.connection.transport else { panic!("not stdio") };
    assert_eq!(stdio.command.as_str(), "one");
    assert_eq!(x.options.timeout, Duration::from_millis(2));
    assert_eq!(x.options.tool_timeout, Duration::from_millis(3));
    assert_eq!(x.options.max_restarts, 4);
    assert_eq!(stdio.env.len(), 2, "variables are merged individually");
    assert_eq!(config.agents[0].mcp.settings.max_concurrent_servers, 2);
    assert_eq!(config.agents[0].mcp.settings.tool_discovery_interval, None, "0 means never");
}

#[test]
fn an_agent_can_switch_an_inherited_server_off_for_itself() {
    let config = good(FOUR_PLACES);
    assert!(!config.agent(Some("a")).unwrap().mcp.servers["y"].enabled);
    assert!(config.agent(Some("b")).unwrap().mcp.servers["y"].enabled);
    assert!(config.agent(Some("c")).unwrap().mcp.servers.contains_key("z"));
    assert!(!config.agent(Some("b")).unwrap().mcp.servers.contains_key("z"));
}

#[test]
fn the_plugin_switch_turns_mcp_off_as_a_whole() {
    let config = good(
        "{ plugins: { entries: { 'mcp-client': { enabled: false } } }, mcp: { servers: { x: { command: 'a' } } } }",
    );
    assert!(!config.agents[0].mcp.enabled);
    assert!(config.agents[0].mcp.servers.is_empty());
}

#[test]
fn a_url_that_overrides_a_command_is_an_error_that_shows_both_places() {
    let said = bad(
        "{ mcp: { servers: { x: { command: 'a' } } },\n agents: { defaults: { mcp: { servers: { x: { url: 'https://x' } } } } } }",
    );
    assert_says(&said, &["both `command` and `url`", "openclaw.json:1:35", "openclaw.json:2"]);
}

#[test]
fn disabling_an_unknown_server_is_an_error_with_the_nearest_name() {
    let said = bad(
        "{ mcp: { servers: { github: { command: 'a' } } }, agents: { list: [ { id: 'a', mcp: { servers: { githb: { enabled: false } } } } ] } }",
    );
    assert_says(&said, &["did you mean the server `github`?", "agents.list[0].mcp.servers.githb"]);
}

#[test]
fn every_value_says_where_it_comes_from() {
    let config = good(FOUR_PLACES);
    let settings = &config.agent(Some("a")).unwrap().mcp.origins.servers["x"];
    let origin =
        |key: &str| settings.iter().find(|setting| setting.key == key).unwrap().origin.clone();
    let place = |key: &str| match origin(key) {
        SettingOrigin::File { location, path } => (path, location.line),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        place("command"),
        (r#"plugins.entries.mcp-client.config.servers.x.command"#.to_owned(), 3)
    );
    assert_eq!(place("timeout"), ("mcp.servers.x.timeout".to_owned(), 5));
    assert_eq!(place("toolTimeout"), ("agents.defaults.mcp.servers.x.toolTimeout".to_owned(), 8));
    assert_eq!(place("maxRestarts"), ("agents.list[0].mcp.servers.x.maxRestarts".to_owned(), 9));
    assert_eq!(place("env.A").1, 3);
    assert_eq!(place("env.B").1, 5);
    assert_eq!(origin("lazy"), SettingOrigin::Default);
    assert_eq!(origin("transport"), SettingOrigin::Inferred { from: "command" });
}

#[test]
fn displayed_values_contain_no_credentials_and_no_variable_values() {
    let config = good(
        "{ mcp: { servers: {\n\
         a: { command: '$TOKEN', args: ['--token', 'sesame', '--key=sesame', '${TOKEN}'], env: { A: 'sesame', B: 'x ${TOKEN}', C: 'secret://env/C' } },\n\
         b: { url: 'https://u:sesame@${HOST}/mcp?key=sesame', apiKey: 'sesame', auth: { clientId: 'i', clientSecret: 'sesame' }, proxy: 'http://u:sesame@p' } } } }",
    );
    let shown = format!("{config:?}");
    let json = serde_json::to_string(&config.agents[0].mcp.origins.servers["a"]).unwrap()
        + &serde_json::to_string(&config.agents[0].mcp.origins.servers["b"]).unwrap();
    for text in [&shown, &json] {
        assert!(!text.contains("sesame"), "{text}");
        assert!(!text.contains("token-from-the-environment"), "{text}");
    }
    assert!(json.contains("secret://env/C") && json.contains("${TOKEN}"), "{json}");
}

#[test]
fn a_diff_reports_how_each_server_changed() {
    let old = good(
        "{ mcp: { servers: { same: { command: 'a', env: { API_KEY: '${TOKEN}' } }, changed: { command: 'a' }, gone: { command: 'a' }, held: { command: 'a' } } } }",
    );
    // `same` is written differently and in another layer, but means the same.
    let new = good(
        "{ mcp: { servers: { changed: { command: 'a', env: { A: 'secret://env/B' } }, fresh: { command: 'a' }, held: { command: '$NOPE' } } },\n\
          agents: { defaults: { mcp: { servers: { same: { transport: 'stdio', timeout: 30000, command: 'a', env: { API_KEY: 'token-from-the-environment' } } } } } } }",
    );
    let diff = old.agents[0].mcp.diff(&new.agents[0].mcp);
    assert_eq!(diff["changed"], ServerChange::Restarted);
    assert_eq!(diff["gone"], ServerChange::Removed);
    assert_eq!(diff["fresh"], ServerChange::Added);
    assert_eq!(diff["held"], ServerChange::Removed);
    assert_eq!(diff["same"], ServerChange::Same);
    let unchanged = old.agents[0].mcp.diff(&old.agents[0].mcp);
    assert!(unchanged.values().all(|change| *change == ServerChange::Same));
}
