//! The front ends on a real Node OpenClaw gateway. It is large, and installed by `cargo xtask compat`:
//! `OPENCLAW_NODE_PACKAGE` is the folder of the npm package `openclaw`. Without it, the forged gateway
//! stands in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openclaw_testkit::{ModelServer, Peers, Piece};
use serde_json::{Value, json};

use crate::editor::{Editor, Place};
use crate::publishing::looking_and_changing;
use crate::{mcp_client, run, stderr, stdout};

/// The gateway takes half a minute to start on an idle machine.
const START: Duration = Duration::from_secs(300);
const TOKEN: &str = "node-gateway-token-0123456789";

/// A running Node gateway.
struct NodeGateway {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl NodeGateway {
    fn start(package: &Path, model: &ModelServer) -> Self {
        let program = package.join("openclaw.mjs");
        assert!(
            program.is_file(),
            "OPENCLAW_NODE_PACKAGE: {} does not exist; run `cargo xtask compat`",
            program.display()
        );
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let models = json!([{ "id": "m", "name": "m", "reasoning": false, "input": ["text"],
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
            "contextWindow": 128_000, "maxTokens": 4_096 }]);
        let provider = json!({ "baseUrl": model.url(), "apiKey": "k",
            "api": "openai-completions", "models": models });
        let config = json!({
            "gateway": { "mode": "local", "port": port, "bind": "loopback",
                "auth": { "mode": "token", "token": TOKEN } },
            "agents": { "defaults": { "model": { "primary": "fake/m" },
                "workspace": folder.path().join("workspace") } },
            "models": { "mode": "merge", "providers": { "fake": provider } },
            // All tools are offered to the model, instead of a search for them.
            "tools": { "toolSearch": false, "exec": { "security": "allowlist", "ask": "always" } },
        });
        let file = folder.path().join("openclaw.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let log = File::create(folder.path().join("gateway.log")).unwrap();
        let mut command = Command::new(Peers::find().node());
        command.arg(program).args(["gateway", "run"]).current_dir(folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", folder.path()).env("OPENCLAW_STATE_DIR", folder.path());
        command.env("OPENCLAW_CONFIG_PATH", file).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        Self { child, url: format!("ws://127.0.0.1:{port}"), _folder: folder }
    }

    /// Waits until it accepts clients.
    fn wait(&mut self, place: &Place, token_file: &str) {
        let deadline = Instant::now() + START;
        loop {
            let status =
                run(place, &["status", "--gateway", &self.url, "--token-file", token_file]);
            if status.status.success() {
                return;
            }
            let log = || std::fs::read_to_string(self._folder.path().join("gateway.log"));
            let is_over = self.child.try_wait().unwrap().is_some() || Instant::now() > deadline;
            assert!(!is_over, "no gateway: {}\n{:?}", stdout(&status), log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for NodeGateway {
    fn drop(&mut self) {
        // It has child processes of its own, which it ends on SIGTERM.
        let id = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Answers `use NAME` with a call of the tool, `run [COMMAND]` with a call of `exec`, a result with its text,
/// and anything else with `Hello.`.
fn answer(request: &Value) -> Vec<Piece> {
    let none = Vec::new();
    let messages = request["messages"].as_array().unwrap_or(&none);
    // The gateway adds messages of its own after those of the user and of tools.
    let after = messages.iter().rposition(|it| it["role"] == "assistant").map_or(0, |at| at + 1);
    let of_role =
        |role: &'static str| messages[after..].iter().filter(move |it| it["role"] == role);
    if let Some(result) = of_role("tool").next_back() {
        return vec![Piece::text("It returned: "), Piece::text(result["content"].to_string())];
    }
    let asked = json!(of_role("user").collect::<Vec<_>>()).to_string();
    let command = asked.split_once("run [").and_then(|(_, rest)| rest.split_once(']'));
    if let Some((command, _)) = command {
        return vec![Piece::call("exec", json!({ "command": command }))];
    }
    let tools = request["tools"].as_array().unwrap_or(&none).iter();
    let mut names = tools.filter_map(|tool| tool["function"]["name"].as_str());
    match names.find(|name| asked.contains(&format!("use {name}"))) {
        Some(name) => vec![Piece::call(name, json!({}))],
        None => vec![Piece::text("Hello"), Piece::text(".")],
    }
}

#[test]
fn the_front_ends_work_on_a_node_gateway() {
    let Some(package) = std::env::var_os("OPENCLAW_NODE_PACKAGE").map(PathBuf::from) else {
        return println!("skipped: `cargo xtask compat` runs it, with the Node OpenClaw installed");
    };
    let model = ModelServer::start(answer);
    let place = Place::new();
    let file = place.path("token.txt");
    std::fs::write(&file, TOKEN).unwrap();
    let file = file.to_str().unwrap();
    let mut gateway = NodeGateway::start(&package, &model);
    gateway.wait(&place, file);
    let chosen = ["--gateway", &gateway.url, "--token-file", file];
    let ours = |args: &[&str]| {
        let output = run(&place, &[args, &chosen[..]].concat());
        assert!(output.status.success(), "{args:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };

    let status = ours(&["status"]);
    assert!(status.contains("version 2026.9.6: 1 agent"), "{status}");
    let key = "agent:main:remote";
    assert_eq!(ours(&["agent", "--message", "hi", "--session", key]), "Hello.\n");
    assert_eq!(ours(&["chat", "hi again", "--session", key]), "Hello.\n");
    assert!(ours(&["sessions", "list"]).contains(key));
    let shown = ours(&["sessions", "show", key]);
    assert!(shown.contains("hi again") && shown.contains("Hello."), "{shown}");
    ours(&["sessions", "delete", key, "--yes"]);
    assert!(!ours(&["sessions", "list"]).contains(key));
    let wrong =
        run(&place, &["status", "--gateway", &gateway.url, "--token", "wrong-token-123456"]);
    assert!(stdout(&wrong).contains("rejected the token"), "{}", stdout(&wrong));

    let clients = Place::with(&json!({ "mcp": { "servers": {} } }));
    let mut client = mcp_client::Client::start(&clients, &chosen);
    let result = client.order(json!({ "message": "hi" }));
    assert_eq!(result["text"], "Hello.", "{result}");
    let sessions = client.call("list_openclaw_sessions", json!({}));
    assert!(sessions.to_string().contains(result["sessionKey"].as_str().unwrap()), "{sessions}");
    assert_eq!(client.close(), 0);

    editor_uses_its_own_servers(&place, &chosen);
}

/// The tools of an editor's server are published to the session; the user approves changes.
fn editor_uses_its_own_servers(place: &Place, chosen: &[&str]) {
    let mut editor = Editor::allowing(place, chosen);
    let session = editor.session(place, &[place.stdio("box", &looking_and_changing())]);
    let (_, text) = editor.prompt(&session, "use mcp__box__look");
    assert!(text.contains("done"), "{text}");
    assert!(editor.asked.is_empty(), "{:?}", editor.asked);
    let update = editor.of_kind("tool_call_update").last().copied().unwrap();
    assert!(update["rawOutput"].to_string().contains("done"), "{update}");
    let (_, text) = editor.prompt(&session, "use mcp__box__change");
    assert!(text.contains("done"), "{text}");
    assert_eq!(editor.asked.len(), 1);
    // A tool of the gateway itself.
    let made = place.path("made-on-the-gateway");
    let (_, text) = editor.prompt(&session, &format!("run [touch {}]", made.display()));
    assert_eq!(editor.asked.len(), 2, "{text}");
    assert!(made.exists(), "{text}");
    editor.load(place, &session, &[]);
    assert!(!editor.of_kind("user_message_chunk").is_empty());
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}
