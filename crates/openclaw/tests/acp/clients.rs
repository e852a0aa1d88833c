//! Real clients: `acpx` and the TypeScript SDK.

use std::process::{Output, Stdio};

use openclaw_testkit::{Peers, Script, TestServer, Tool};
use serde_json::{Value, json};

use crate::editor::Place;

const AGENT: &str = concat!(env!("CARGO_BIN_EXE_openclaw"), " acp");

fn acpx(place: &Place, args: &[&str]) -> Output {
    let peer = Peers::find().acpx(args);
    let mut command = peer.command();
    place.prepare(&mut command).stdin(Stdio::null()).output().unwrap()
}

fn servers(place: &Place, list: &[Value]) -> String {
    let file = place.path("mcp.json");
    std::fs::write(&file, json!({ "mcpServers": list }).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn acpx_uses_the_servers_that_it_passes() {
    let place = Place::new();
    let web = TestServer::http(&Script::new());
    let mut local = place.stdio("local", &Script::new());
    local["type"] = json!("stdio");
    let web = json!({ "name": "web", "type": "http", "url": web.url(), "headers": [] });
    let config = servers(&place, &[local, web]);
    let project = place.project();
    for name in ["local", "web"] {
        let prompt = format!("/call mcp__{name}__echo {{\"text\":\"from {name}\"}}");
        let output = acpx(
            &place,
            &[
                "--agent",
                AGENT,
                "--mcp-config",
                &config,
                "--approve-all",
                "--cwd",
                &project,
                "--format",
                "quiet",
                "exec",
                &prompt,
            ],
        );
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("returned: from {name}")), "{said} {output:?}");
        assert_eq!(output.status.code(), Some(0));
    }
    place.assert_nothing_left();
}

#[test]
fn acpx_approves_and_denies() {
    let place = Place::new();
    let script = Script::new().tools([Tool::new("change").result(&json!({
        "content": [{ "type": "text", "text": "done" }]
    }))]);
    let mut server = place.stdio("box", &script);
    server["type"] = json!("stdio");
    let config = servers(&place, &[server]);
    let project = place.project();
    let ask = |how: &str, prompt: &str| {
        let args = [
            "--agent",
            AGENT,
            "--mcp-config",
            &config,
            how,
            "--cwd",
            &project,
            "--format",
            "quiet",
            "exec",
            prompt,
        ];
        let output = acpx(&place, &args);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = ask("--approve-all", "/call mcp__box__change {}");
    assert!(code == Some(0) && said.contains("returned: done"), "{code:?} {said}");
    let (code, said) = ask("--deny-all", "/call mcp__box__change {}");
    assert!(code == Some(5) && said.contains("denied"), "{code:?} {said}");
    let write = "/call editor_write_file {\"path\":\"a.txt\",\"content\":\"written\"}";
    assert_eq!(ask("--approve-all", write).0, Some(0));
    let written = std::fs::read_to_string(place.path("project").join("a.txt")).unwrap();
    assert_eq!(written, "written");
    place.assert_nothing_left();
}

/// A client with the SDK: connects, opens a session with a server, prompts, and prints what it saw.
const SDK: &str = r#"
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
const [program, cwd, server, prompt] = process.argv.slice(2);
const child = spawn(program, ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const seen = { text: "", kinds: [] };
const editor = acp.client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
    const option = params.options.find((it) => it.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onNotification(acp.methods.client.session.update, async ({ params }) => {
    seen.kinds.push(params.update.sessionUpdate);
    if (params.update.sessionUpdate === "agent_message_chunk") seen.text += params.update.content.text;
  });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const { hello, answer } = await editor.connectWith(stream, async (agent) => {
  const methods = acp.methods.agent;
  const hello = await agent.request(methods.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const session = await agent.request(methods.session.new, { cwd, mcpServers: [JSON.parse(server)] });
  const answer = await agent.request(methods.session.prompt, { sessionId: session.sessionId, prompt: [{ type: "text", text: prompt }] });
  return { hello, answer };
});
console.log(JSON.stringify({ ...seen, stop: answer.stopReason, name: hello.agentInfo.name }));
child.stdin.end();
if (child.exitCode === null) await new Promise((done) => child.on("exit", done));
process.exit(0);
"#;

#[test]
fn the_typescript_sdk_talks_to_it() {
    let place = Place::new();
    let peers = Peers::find();
    std::os::unix::fs::symlink(
        peers.node_modules().canonicalize().unwrap(),
        place.path("node_modules"),
    )
    .unwrap();
    std::fs::write(place.path("client.mjs"), SDK).unwrap();
    let server = place.stdio("one", &Script::new()).to_string();
    let mut command = std::process::Command::new(peers.node());
    command.arg(place.path("client.mjs")).args([
        env!("CARGO_BIN_EXE_openclaw"),
        &place.project(),
        &server,
        "/call mcp__one__echo {\"text\":\"hello\"}",
    ]);
    let output = place.prepare(&mut command).stdin(Stdio::null()).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&said["name"], &said["stop"]), (&json!("openclaw"), &json!("end_turn")));
    assert_eq!(said["text"], "`mcp__one__echo` returned: hello");
    assert!(said["kinds"].to_string().contains("tool_call_update"), "{said}");
    place.assert_nothing_left();
}
