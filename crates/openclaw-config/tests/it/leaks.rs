//! Regression tests: credentials and values of variables must not appear in any output.

use openclaw_config::{Config, Loaded, Severity};

use crate::support::*;

/// Everything that is displayed about a configuration.
fn shown(text: &str) -> String {
    let Loaded { config, report, .. } = read(text);
    let mut shown = report.render(Default::default());
    shown += &report.to_json().to_string();
    shown += &format!("{report:?}{config:?}");
    if let Some(config) = config {
        shown += &settings(&config);
    }
    shown
}

fn settings(config: &Config) -> String {
    let agents = config.agents.iter();
    let servers = agents.clone().flat_map(|agent| agent.mcp.origins.servers.values().flatten());
    let of_agents =
        agents.flat_map(|agent| agent.origins.iter().chain(&agent.mcp.origins.settings));
    let all: Vec<_> = config.origins.iter().chain(servers).chain(of_agents).collect();
    serde_json::to_string(&all).unwrap()
}

#[track_caller]
fn assert_hidden(text: &str) {
    let shown = shown(text);
    assert!(!shown.contains("sesame"), "leaked from {text}\n{shown}");
    assert!(!shown.contains("token-from-the-environment"), "variable leaked from {text}\n{shown}");
}

fn entry(entry: &str) -> String {
    format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}")
}

#[test]
fn nothing_leaks_in_the_source_lines_of_messages() {
    for hidden in [
        "{ command: 'x', note: \"a\nb\", apiKey: \"sesame\", foo: 1 }",
        "{ command: 'x', cwd: 'a\\\r\nb', env: { T: 'sesame' }, foo: 1 }",
        "{ command: 'x', args: ['--token', 'sesame', 'pg://u:sesame@h', '--db=pg://u:sesame@h'], foo: 1 }",
        "{ url: 'https://x', headers: 'Authorization: sesame', foo: 1 }",
        "{ url: 'https://x', 'api\\u004bey': 'sesame', '\\u0065nv': { A: 'sesame' }, foo: 1 }",
        "{ url: 'https://me:sesame/x@example.com/', foo: 1 }",
        "{ url: 'me:sesame@example.com/x?key=sesame', foo: 1 }",
        "{ url: 'https://x', foo: 1 /* apiKey: 'sesame' */ } // sesame",
        "{ url: 'https://x', apiKey: ['sesame'], auth: { clientSecret: { a: 'sesame' } } }",
        "{ url: 'https://x', apiKey: \"sesame",
    ] {
        assert_hidden(&entry(hidden));
    }
}

#[test]
fn nothing_leaks_in_the_settings_of_a_valid_configuration() {
    for hidden in [
        "{ url: 'https://x', headers: { X: '$ecretsesame', Authorization: '$sesame2' } }",
        "{ url: 'https://h/${TOKEN}/mcp', tools: { allow: ['${TOKEN}'] } }",
        "{ url: 'https://ghp_sesame@example.com', proxy: 'http://tok_sesame@proxy:8080' }",
        "{ url: 'https://u:sesame@${UNSET}/x?k=sesame' }",
        "{ command: 'docker', args: ['run', '-e', 'GITHUB_TOKEN=sesame', '--env=K=sesame'] }",
        "{ command: 'npx', args: ['mcp-remote', '--header', 'Authorization: Bearer sesame'] }",
        "{ command: 'x', env: { A: 'p ${TOKEN}', B: '${NOPE:-sesame}', C: 'sesame' } }",
        "{ command: '${TOKEN}', args: ['$TOKEN'], cwd: '${TOKEN:-x}/sub' }",
    ] {
        let shown = shown(&entry(hidden));
        assert!(!shown.contains("sesame"), "leaked from {hidden}\n{shown}");
        let settings =
            read(&entry(hidden)).config.map(|config| settings(&config)).unwrap_or_default();
        assert!(!settings.contains("token-from-the-environment"), "{settings}");
    }
    assert_hidden(
        "{ secrets: { exec: { a: { command: 'pass', args: ['--password', 'sesame'], env: { A: 'sesame' } } },\n\
         vault: { address: 'https://u:sesame@vault.example.com' }, gcp: { endpoint: 'https://u:sesame@h/?k=sesame' } } }",
    );
}

#[test]
fn the_value_of_a_variable_is_not_parsed_as_a_reference() {
    let environment = openclaw_config::LoadEnvironment {
        variable: &|name| (name == "PW").then(|| "secret://sesame/x".to_owned()),
        home: None,
    };
    let load = |text: &str| {
        openclaw_config::load_text(std::path::Path::new("openclaw.json"), text, environment)
    };
    let loaded = load("{ mcp: { servers: { x: { command: 'x', env: { A: '${PW}' } } } } }");
    assert!(loaded.config.unwrap().secret_references().is_empty());
    let loaded =
        load("{ mcp: { servers: { x: { command: 'x', env: { A: 'secret://env/A ${PW}' } } } } }");
    let said = loaded.report.render(Default::default());
    assert_says(&said, &["not a secret reference after variable expansion"]);
    assert!(!said.contains("sesame"), "{said}");
}

#[test]
fn references_in_unsupported_places_are_rejected() {
    for wrong in [
        "{ command: 'x', args: ['--token', 'secret://env/X'] }",
        "{ command: 'secret://env/X' }",
        "{ command: 'x', cwd: 'secret://env/X' }",
        "{ url: 'https://x/?k=secret://env/X' }",
        "{ url: 'https://x', proxy: 'secret://env/X' }",
    ] {
        assert_says(&bad(&entry(wrong)), &["secret references are not supported here"]);
    }
    let said =
        bad("{ secrets: { exec: { a: { command: 'x', env: { A: 'z secret://env/F' } } } } }");
    assert_says(&said, &["secret references are not supported here"]);
}

#[test]
fn plaintext_credentials_are_recognised_by_name_and_by_shape() {
    let warnings = |text: &str| {
        let loaded = read(&entry(text));
        assert!(loaded.config.is_some(), "{}", loaded.report.render(Default::default()));
        loaded.report.count(Severity::Warning)
    };
    for plain in [
        "{ command: 'x', env: { FOO: 'ghp_abc' } }",
        "{ command: 'x', env: { DATABASE_URL: 'postgres://u:pw@h/db' } }",
        "{ url: 'https://u:pw@h' }",
        "{ url: 'https://h/?key=abc' }",
        "{ command: 'x', args: ['--api-key', 'abc'] }",
        "{ command: 'x', env: { API_KEY: 'pa$$word' } }",
    ] {
        assert_eq!(warnings(plain), 1, "{plain}");
    }
    for fine in [
        "{ command: 'x', env: { MONKEY: 'x', AUTHOR: 'me', API_KEY: '' } }",
        "{ command: 'x', args: ['--api-key', '${TOKEN}', '-y', '@scope/pkg'] }",
        "{ url: 'https://h/?key=${TOKEN}' }",
    ] {
        assert_eq!(warnings(fine), 0, "{fine}");
    }
    let two_agents = read(
        "{ agents: { list: [ { id: 'a', mcp: { servers: { x: { url: 'https://x', apiKey: 'a' } } } },\n\
         { id: 'b', mcp: { servers: { x: { url: 'https://x', apiKey: 'b' } } } } ] } }",
    );
    assert_eq!(two_agents.report.count(Severity::Warning), 1, "one warning per server (K4)");
}
