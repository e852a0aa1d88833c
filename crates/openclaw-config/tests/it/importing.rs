//! Import from other programs (C11): one file of each, and the resulting entries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use openclaw_config::ReadError;
use openclaw_config::import::{
    App, FoundServer, ImportResult, ImportStatus, Platform, SearchContext, find,
};
use serde_json::{Value, json};

use crate::support::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/import/", $name))
    };
}

/// The files that exist.
type Files<'a> = &'a [(&'a str, &'a str)];

fn find_on(platform: Platform, variables: &[(&str, &str)], files: Files<'_>) -> ImportResult {
    let lookup = |name: &str| {
        let known = variables.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| OsString::from(value))
    };
    let read = |path: &Path| {
        let known = files.iter().find(|(file, _)| Path::new(file) == path);
        known.map(|(_, text)| (*text).to_owned()).ok_or(ReadError::Missing)
    };
    let machine = SearchContext {
        home: Some(Path::new("/home/user")),
        cwd: Path::new("/srv/app"),
        platform,
        variable: &lookup,
        read: &read,
    };
    find(machine, None)
}

fn found(file: &str, text: &str) -> Vec<FoundServer> {
    let findings = find_on(Platform::Unix, &[], &[(file, text)]);
    assert!(findings.broken.is_empty(), "{:?}", findings.broken);
    findings.servers
}

fn named<'f>(servers: &'f [FoundServer], name: &str) -> &'f FoundServer {
    servers.iter().find(|server| server.written_name == name).unwrap()
}

/// Asserts the converted entry, which must be valid.
#[track_caller]
fn assert_becomes(server: &FoundServer, entry: &Value) {
    assert_eq!(&server.entry, entry);
    let name = server.name.as_ref().unwrap().as_str();
    let text = json!({ "mcp": { "servers": { name: entry } } }).to_string();
    let loaded = read(&text);
    assert!(loaded.config.is_some(), "{}", loaded.report.render(Default::default()));
}

#[test]
fn claude_code_has_servers_for_all_and_for_each_project() {
    let servers = found("/home/user/.claude.json", fixture!("claude.json"));
    assert_eq!(servers.len(), 3);
    let github = named(&servers, "github");
    assert_becomes(
        github,
        &json!({
            "url": "https://api.example.com/mcp",
            "headers": { "Authorization": "Bearer ${GITHUB_TOKEN}" },
            "auth": { "clientId": "abc", "redirectPort": 8123 },
        }),
    );
    assert_eq!(github.notes, ["`headersHelper` was skipped: it is not supported here"]);
    let prices = json!({
        "command": "prices",
        "args": ["--in", "US$"],
        "env": { "PASSWORD": "pa$$WORD", "PORT": "8080" },
    });
    assert_becomes(named(&servers, "prices"), &prices);
    let local = named(&servers, "local");
    assert_eq!(local.project.as_deref(), Some("/home/user/app"));
    assert_becomes(
        local,
        &json!({ "command": "./server.py", "args": [], "env": {}, "cwd": "/home/user/app" }),
    );
}

#[test]
fn claude_code_has_servers_in_the_project_too() {
    let servers = found("/srv/app/.mcp.json", fixture!("claude-project.json"));
    let events = named(&servers, "events");
    assert_eq!(events.project.as_deref(), Some("/srv/app"));
    let url = "${EVENTS_URL:-https://events.example.com/sse}";
    assert_becomes(events, &json!({ "transport": "sse", "url": url }));
}

#[test]
fn claude_desktop_has_no_placeholders() {
    let servers = found(
        "/home/user/.config/Claude/claude_desktop_config.json",
        fixture!("claude-desktop.json"),
    );
    assert_becomes(
        named(&servers, "files"),
        &json!({
            "command": "npx",
            "args": ["-y", "files", "/home/user"],
            "env": { "KEY": "$${HOME}" },
        }),
    );
}

#[test]
fn cursor_has_placeholders_and_logins() {
    let servers = found("/home/user/.cursor/mcp.json", fixture!("cursor.json"));
    assert_becomes(
        named(&servers, "linear"),
        &json!({
            "url": "https://mcp.linear.example/sse",
            "headers": { "X-Token": "${LINEAR_TOKEN}" },
            "auth": { "clientId": "id", "clientSecret": "${LINEAR_SECRET}", "scopes": ["read"] },
        }),
    );
    let tool = named(&servers, "tool");
    assert_becomes(tool, &json!({ "command": "/home/user/bin/tool", "enabled": false }));
    assert_eq!(tool.notes, ["`envFile` is not supported: put its variables into `env`"]);
}

#[test]
fn vs_code_asks_for_things_and_has_comments() {
    let servers = found("/srv/app/.vscode/mcp.json", fixture!("vscode.json"));
    let search = named(&servers, "search");
    assert_becomes(
        search,
        &json!({
            "url": "https://search.example.com/mcp",
            "headers": { "Authorization": "Bearer ${API_KEY}" },
        }),
    );
    assert!(search.notes[0].contains("`api-key`"), "{:?}", search.notes);
    let here = named(&servers, "here");
    assert_becomes(
        here,
        &json!({ "command": "node", "args": ["/srv/app/server.js"], "cwd": "/srv/app/tools" }),
    );
    assert_eq!(here.notes, ["`dev` was skipped: it is not supported here"]);
}

#[test]
fn codex_has_names_of_its_own_for_everything() {
    let servers = found("/home/user/.codex/config.toml", fixture!("codex.toml"));
    assert_becomes(
        named(&servers, "docs"),
        &json!({
            "command": "docs-mcp",
            "args": ["--stdio"],
            "cwd": "/srv/docs",
            "inheritEnv": ["LANG", "DOCS_HOME"],
            "timeout": 2500,
            "toolTimeout": 90000,
            "tools": { "allow": ["search"], "deny": ["delete"] },
            "required": true,
            "enabled": false,
            "env": { "DOCS_TOKEN": "a$$B" },
        }),
    );
    let remote = named(&servers, "remote");
    assert_becomes(
        remote,
        &json!({
            "url": "https://remote.example.com/mcp",
            "apiKey": "secret://env/REMOTE_TOKEN",
            "headers": { "X-Region": "eu", "X-Team": "secret://env/TEAM_ID" },
            "auth": { "scopes": ["read", "write"] },
        }),
    );
    assert_eq!(remote.notes.len(), 1);
}

#[test]
fn windsurf_has_another_name_for_url() {
    let servers = found("/home/user/.codeium/windsurf/mcp_config.json", fixture!("windsurf.json"));
    assert_becomes(
        named(&servers, "figma"),
        &json!({
            "url": "https://figma.example.com/mcp",
            "headers": { "X-Key": "${FIGMA}" },
            "tools": { "deny": ["delete_file"] },
        }),
    );
}

#[test]
fn the_platform_and_the_variables_determine_where_files_are_searched() {
    let looked_at = |platform, variables| find_on(platform, variables, &[]).looked_at;
    let mac = looked_at(Platform::MacOs, &[]);
    let desktop = "Library/Application Support/Claude/claude_desktop_config.json";
    assert!(mac.contains(&Path::new("/home/user").join(desktop)), "{mac:?}");
    let windows = looked_at(Platform::Windows, &[("APPDATA", "/appdata")]);
    assert!(windows.contains(&PathBuf::from("/appdata/Code/User/mcp.json")), "{windows:?}");
    let moved =
        [("XDG_CONFIG_HOME", "/xdg"), ("CODEX_HOME", "/codex"), ("CLAUDE_CONFIG_DIR", "/cl")];
    let unix = looked_at(Platform::Unix, &moved);
    for file in ["/xdg/Code/User/mcp.json", "/codex/config.toml", "/cl/.claude.json"] {
        assert!(unix.contains(&PathBuf::from(file)), "{unix:?}");
    }
}

#[test]
fn a_broken_file_is_named_and_does_not_stop_the_others() {
    let findings = find_on(
        Platform::Unix,
        &[],
        &[
            ("/home/user/.claude.json", "{ \"mcpServers\": {\n \"a\": { \"env\": { \"K\": hunter2"),
            ("/home/user/.codex/config.toml", "[mcp_servers.x]\ncommand = hunter2"),
            (
                "/home/user/.cursor/mcp.json",
                r#"{ "mcpServers": { "bad": 1, "good": { "command": "x" } } }"#,
            ),
            ("/srv/app/.vscode/mcp.json", "[]"),
            ("/srv/app/.mcp.json", r#"{ "mcpServers": [] }"#),
            ("/home/user/.codeium/windsurf/mcp_config.json", ""),
        ],
    );
    assert_eq!(findings.servers.len(), 1);
    let broken: Vec<App> = findings.broken.iter().map(|broken| broken.app).collect();
    assert_eq!(broken, [App::ClaudeCode, App::ClaudeCode, App::Cursor, App::VsCode, App::Codex]);
    let said = format!("{findings:?}");
    assert!(said.contains("line 2") && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_found_server_is_compared_with_the_configuration() {
    let text = r#"{ "mcpServers": {
        "same": { "command": "x", "env": { "T": "${NOT_SET}" } },
        "other": { "command": "x", "args": ["--token", "hunter2"] },
        "my server": { "command": "x" },
        "plain": { "url": "http://example.com" },
        "🦀": { "command": "x" },
        "nothing": {}
    } }"#;
    let servers = found("/home/user/.claude.json", text);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openclaw.json");
    let ours = "{ mcp: { servers: { same: { command: 'x', env: { T: '$NOT_SET' } }, other: { command: 'y' } } } }";
    std::fs::write(&file, ours).unwrap();
    let judge = |name| named(&servers, name).judge(&file, environment());
    let same = judge("same");
    assert_eq!(
        (same.standing, &same.unset_variables[..]),
        (ImportStatus::Same, &["NOT_SET".to_owned()][..])
    );
    let other = judge("other");
    assert_eq!(other.standing, ImportStatus::Differs);
    assert_eq!(other.gist, "x --token [REDACTED]");
    assert!(!format!("{other:?}").contains("hunter2"));
    assert_eq!(judge("my server").standing, ImportStatus::New);
    assert_eq!(named(&servers, "my server").name.as_ref().unwrap().as_str(), "my-server");
    for refused in ["plain", "🦀", "nothing"] {
        assert_eq!(judge(refused).problems.len(), 1, "{refused}");
    }
    // The built-in server is replaced.
    let nowhere = folder.path().join("nowhere.json");
    let demo =
        found("/home/user/.claude.json", r#"{ "mcpServers": { "demo": { "command": "d" } } }"#);
    assert_eq!(demo[0].judge(&nowhere, environment()).standing, ImportStatus::New);
}

#[test]
fn zed_has_two_forms_of_a_command_and_extensions_are_not_servers() {
    for file in ["/home/user/.config/zed/settings.json", "/srv/app/.zed/settings.json"] {
        let servers = found(file, fixture!("zed.json"));
        assert_eq!(servers.len(), 3);
        let files = json!({ "command": "npx", "args": ["-y", "files"], "env": { "A": "$$B" } });
        assert_becomes(named(&servers, "files"), &files);
        let old = json!({ "command": "old-mcp", "args": ["--stdio"], "enabled": false });
        assert_becomes(named(&servers, "old"), &old);
        let docs = json!({ "url": "https://docs.example.com/mcp", "headers": { "X": "1" } });
        assert_becomes(named(&servers, "docs"), &docs);
        assert!(servers.iter().all(|server| server.notes.is_empty()));
    }
}

#[test]
fn gemini_has_variables_and_rules_for_tools() {
    let servers = found("/home/user/.gemini/settings.json", fixture!("gemini.json"));
    assert_becomes(
        named(&servers, "local"),
        &json!({
            "command": "python",
            "args": ["server.py"],
            "env": { "KEY": "${API_KEY}", "OTHER": "${OTHER:-x}" },
            "toolTimeout": 15000,
            "approval": "never",
            "tools": { "allow": ["a"], "deny": ["b"] },
        }),
    );
    let remote = json!({ "url": "https://${HOST:-api.example.com}/mcp", "description": "d" });
    assert_becomes(named(&servers, "remote"), &remote);
    let events = json!({ "url": "https://events.example.com/sse", "transport": "sse" });
    assert_becomes(named(&servers, "events"), &events);
}

#[test]
fn opencode_has_a_command_with_its_arguments_in_one_list() {
    for text in [
        fixture!("opencode.jsonc").to_owned(),
        // Version 2 of its settings.
        fixture!("opencode.jsonc").replacen("\"mcp\": {", "\"mcp\": { \"servers\": {", 1) + "}",
    ] {
        let servers = found("/srv/app/opencode.jsonc", &text);
        assert_eq!(servers.len(), 2);
        assert_becomes(
            named(&servers, "local"),
            &json!({
                "command": "npx",
                "args": ["-y", "tool"],
                "env": { "TOKEN": "${TOKEN}", "PLAIN": "{a} $$B" },
                "timeout": 9000,
            }),
        );
        assert_becomes(
            named(&servers, "remote"),
            &json!({
                "url": "https://mcp.example.com",
                "headers": { "Authorization": "Bearer ${KEY}" },
                "enabled": false,
            }),
        );
    }
}

#[test]
fn goose_has_yaml_and_its_own_extensions_are_not_servers() {
    let servers = found("/home/user/.config/goose/config.yaml", fixture!("goose.yaml"));
    assert_eq!(servers.len(), 2);
    let github = named(&servers, "github");
    assert_becomes(
        github,
        &json!({
            "description": "",
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": { "LEVEL": "debug", "GITHUB_TOKEN": "${GITHUB_TOKEN}" },
            "toolTimeout": 300_000,
        }),
    );
    assert!(github.notes[0].contains("in the keychain of goose"), "{:?}", github.notes);
    assert_becomes(
        named(&servers, "remote"),
        &json!({
            "enabled": false,
            "url": "https://mcp.example.com/mcp",
            "headers": { "X-Team": "a" },
            "env": {},
            "toolTimeout": 60_000,
        }),
    );
}

#[test]
fn a_command_in_one_string_is_split_unless_there_is_such_a_program() {
    let file = "/home/user/.config/amp/settings.json";
    let servers = found(file, fixture!("amp.json"));
    let browser = named(&servers, "browser");
    assert_becomes(
        browser,
        &json!({
            "command": "npx",
            "env": { "K": "${KEY}" },
            "args": ["-y", "browser-mcp", "--headless"],
        }),
    );
    assert_eq!(browser.notes, ["its command was split into a program and arguments"]);
    let search = json!({ "url": "https://search.example.com/mcp", "tools": { "allow": ["find"] } });
    assert_becomes(named(&servers, "search"), &search);

    let text = r#"{ "amp.mcpServers": { "x": { "command": "/opt/My Tool/run" } } }"#;
    let files = [(file, text), ("/opt/My Tool/run", "")];
    let servers = find_on(Platform::Unix, &[], &files).servers;
    assert_becomes(&servers[0], &json!({ "command": "/opt/My Tool/run" }));
}

#[test]
fn jetbrains_has_a_file_for_each_of_its_assistants() {
    let text = r#"{ "mcpServers": { "x": { "command": "x", "args": [] } } }"#;
    for file in [
        "/home/user/.ai/mcp/mcp.json",
        "/srv/app/.ai/mcp/mcp.json",
        "/home/user/.junie/mcp/mcp.json",
        "/srv/app/.junie/mcp/mcp.json",
    ] {
        let servers = found(file, text);
        assert_eq!(servers[0].app, App::JetBrains);
        assert_becomes(named(&servers, "x"), &json!({ "command": "x", "args": [] }));
    }
    let copilot = "/home/user/.config/github-copilot/intellij/mcp.json";
    let text = r#"{ "servers": { "x": { "type": "http", "url": "https://a.example" } } }"#;
    assert_becomes(&found(copilot, text)[0], &json!({ "url": "https://a.example" }));
    let text = r#"{ "servers": { "x": { "url": "https://a.example",
        "requestInit": { "headers": { "X-A": "${env:A}" }, "credentials": "omit" } } } }"#;
    let servers = found(copilot, text);
    let expected = json!({ "url": "https://a.example", "headers": { "X-A": "${A}" } });
    assert_becomes(&servers[0], &expected);
    assert_eq!(servers[0].notes.len(), 1, "{:?}", servers[0].notes);
}
