//! `openclaw mcp install` and `uninstall`.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::common::place::Place;

const CLIENTS: [(&str, &str); 7] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("zed", ".config/zed/settings.json"),
    ("gemini-cli", ".gemini/settings.json"),
];

fn openclaw(place: &Place, args: &[&str]) -> Output {
    let mut command = place.command(args);
    for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).output().unwrap()
}

/// Asserts that a command succeeded, and returns the file that it has written.
fn written(place: &Place, file: &str, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    std::fs::read_to_string(place.path(file)).unwrap()
}

#[test]
fn every_client_is_installed_and_uninstalled() {
    let place = Place::new();
    for (client, file) in CLIENTS {
        let shown = openclaw(&place, &["mcp", "install", client, "--dry-run"]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains(file) && text.contains("+ ") && text.contains("--hub"), "{text}");
        assert!(!place.path(file).exists());

        let refused = openclaw(&place, &["mcp", "install", client]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"));
        assert!(!place.path(file).exists());

        let done = openclaw(&place, &["mcp", "install", client, "--yes"]);
        let text = written(&place, file, &done);
        assert!(text.contains("mcp-server") && text.contains("openclaw"), "{text}");
        let again = openclaw(&place, &["mcp", "install", client, "--yes"]);
        assert!(String::from_utf8_lossy(&again.stdout).contains("already has"), "{again:?}");

        let undone = openclaw(&place, &["mcp", "uninstall", client, "--yes"]);
        let left = written(&place, file, &undone);
        assert!(!left.contains("mcp-server"), "{left}");
    }
}

#[test]
fn credentials_of_other_entries_are_not_shown() {
    let place = Place::new();
    let file = place.path(".cursor/mcp.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let text = json!({ "mcpServers": {
        "openclaw": { "command": "x", "args": ["--key", "hunter2"], "env": { "A": "hunter2" } },
        "other": { "command": "y", "env": { "TOKEN": "hunter2" } },
    } })
    .to_string();
    std::fs::write(&file, &text).unwrap();
    for args in [
        &["mcp", "install", "cursor", "--dry-run"] as &[&str],
        &["mcp", "uninstall", "cursor", "--dry-run"],
        &["mcp", "uninstall", "cursor", "--dry-run", "--json"],
    ] {
        let output = openclaw(&place, args);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!shown.contains("hunter2") && shown.contains('A'), "{shown}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn the_variables_that_lead_to_the_configuration_are_in_the_entry() {
    let place = Place::new();
    let folder = place.folder.path().to_str().unwrap().to_owned();
    for (client, file) in [("cursor", ".cursor/mcp.json"), ("codex", ".codex/config.toml")] {
        let mut command = place.command(&["mcp", "install", client, "--yes"]);
        command.env_remove("CODEX_HOME").env("OPENCLAW_CONFIG_PATH", "other.json");
        let done = command.stdin(Stdio::null()).output().unwrap();
        let text = written(&place, file, &done);
        for value in ["OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", &format!("{folder}/other.json")]
        {
            assert!(text.contains(value), "{value}: {text}");
        }
        let undone = openclaw(&place, &["mcp", "uninstall", client, "--yes"]);
        let left = written(&place, file, &undone);
        assert!(!left.contains("OPENCLAW"), "{left}");
    }
}

#[test]
fn our_own_configuration_is_not_a_client() {
    let place = Place::new();
    let file = place.path("openclaw.json");
    let args = ["mcp", "install", "openclaw", "--yes", "--file", file.to_str().unwrap()];
    for args in [&args[..], &["mcp", "install", "openclaw", "--yes"]] {
        let output = openclaw(&place, args);
        assert!(!output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--file"), "{output:?}");
    }
    let other = place.path("other.json");
    let args =
        ["mcp", "install", "openclaw", "--yes", "--agent-only", "--file", other.to_str().unwrap()];
    assert_eq!(openclaw(&place, &args).status.code(), Some(0));
    let written: Value = serde_json::from_slice(&std::fs::read(&other).unwrap()).unwrap();
    assert_eq!(written["mcp"]["servers"]["openclaw"]["args"], json!(["mcp-server"]));
}

#[test]
fn an_entry_of_another_program_is_neither_replaced_nor_removed() {
    let place = Place::new();
    let file = place.path("mcp.json");
    let other = json!({ "mcpServers": { "openclaw": { "command": "theirs", "args": ["x"] } } });
    std::fs::write(&file, other.to_string()).unwrap();
    let target = ["cursor", "--yes", "--file", file.to_str().unwrap()];
    for verb in ["install", "uninstall"] {
        let refused = openclaw(&place, &[&["mcp", verb][..], &target].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains("is another program") && stderr.contains("--name"), "{stderr}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), other.to_string());
    }
    let empty = openclaw(&place, &[&["mcp", "install", "--name", ""][..], &target].concat());
    assert_eq!(empty.status.code(), Some(2), "{empty:?}");
}
