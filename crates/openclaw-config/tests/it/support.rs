//! Helpers shared by the tests of this crate.

use std::path::Path;

use openclaw_config::{Config, LoadEnvironment, Loaded, ServerConfig, load, load_text};

/// The environment variables of the tests.
pub(crate) fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("token-from-the-environment".to_owned()),
        "HOST" => Some("example.com".to_owned()),
        _ => None,
    }
}

pub(crate) fn environment() -> LoadEnvironment<'static> {
    LoadEnvironment { variable: &variable, home: Some(Path::new("/home/user")) }
}

pub(crate) fn read(text: &str) -> Loaded {
    load_text(Path::new("openclaw.json"), text, environment())
}

pub(crate) fn read_file(file: &Path) -> Loaded {
    load(file, environment())
}

/// Loads a configuration that must be valid.
#[track_caller]
pub(crate) fn good(text: &str) -> Config {
    let loaded = read(text);
    let said = loaded.report.render(Default::default());
    loaded.config.unwrap_or_else(|| panic!("rejected:\n{said}"))
}

/// Returns the report about a configuration that must be invalid.
#[track_caller]
pub(crate) fn bad(text: &str) -> String {
    let loaded = read(text);
    assert!(loaded.config.is_none(), "accepted: {text}");
    loaded.report.render(Default::default())
}

/// Returns the report about a configuration that must be valid, possibly with warnings.
#[track_caller]
pub(crate) fn doubtful(text: &str) -> String {
    let loaded = read(text);
    let said = loaded.report.render(Default::default());
    assert!(loaded.config.is_some(), "rejected:\n{said}");
    said
}

/// Returns the only server of a valid configuration.
#[track_caller]
pub(crate) fn server(entry: &str) -> ServerConfig {
    let config = good(&format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}"));
    config.agents[0].mcp.servers["x"].clone()
}

/// Returns the report about an invalid server entry.
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
