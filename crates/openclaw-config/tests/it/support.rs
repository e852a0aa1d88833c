//! What the tests of this crate have in common.

use std::path::Path;

use openclaw_config::{Config, Loaded, ServerConfig, Surroundings, load, load_text};

/// The variables that are set in tests.
pub(crate) fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("token-from-the-environment".to_owned()),
        "HOST" => Some("example.com".to_owned()),
        _ => None,
    }
}

pub(crate) fn surroundings() -> Surroundings<'static> {
    Surroundings { variable: &variable, home: Some(Path::new("/home/user")) }
}

pub(crate) fn read(text: &str) -> Loaded {
    load_text(Path::new("openclaw.json"), text, surroundings())
}

pub(crate) fn read_file(file: &Path) -> Loaded {
    load(file, surroundings())
}

/// A configuration that must be good.
#[track_caller]
pub(crate) fn good(text: &str) -> Config {
    let loaded = read(text);
    let said = loaded.report.render(Default::default());
    loaded.config.unwrap_or_else(|| panic!("refused:\n{said}"))
}

/// What is said about a configuration that must be bad.
#[track_caller]
pub(crate) fn bad(text: &str) -> String {
    let loaded = read(text);
    assert!(loaded.config.is_none(), "accepted: {text}");
    loaded.report.render(Default::default())
}

/// What is said about a configuration that can be used, but.
#[track_caller]
pub(crate) fn doubtful(text: &str) -> String {
    let loaded = read(text);
    let said = loaded.report.render(Default::default());
    assert!(loaded.config.is_some(), "refused:\n{said}");
    said
}

/// The only server of a good configuration.
#[track_caller]
pub(crate) fn server(entry: &str) -> ServerConfig {
    let config = good(&format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}"));
    config.agents[0].mcp.servers["x"].clone()
}

/// What is said about a bad entry of a server.
#[track_caller]
pub(crate) fn bad_server(entry: &str) -> String {
    bad(&format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}"))
}

#[track_caller]
pub(crate) fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing in:\n{said}");
    }
}
