//! Real clients: `acpx`, the TypeScript SDK and the Python SDK.

use std::process::{Command, Output, Stdio};

use openclaw_testkit::{ModelServer, Peers, Piece, Script, TestServer};
use serde_json::{Value, json};

use crate::editor::{Place, changing};

const AGENT: &str = concat!(env!("CARGO_BIN_EXE_openclaw"), " acp");

fn acpx(place: &Place, args: &[&str]) -> Output {
    let peer = Peers::find().acpx(args);
    let mut command = peer.command();
    place.prepare(&mut command).stdin(Stdio::null()).output().unwrap()
}

/// Runs a client with an SDK, which opens a session with this server, and returns what it prints.
fn run(place: &Place, mut command: Command, server: &Value, prompt: &str) -> Value {
    let program = env!("CARGO_BIN_EXE_openclaw");
    let output = command.args([program, &place.project(), &server.to_string(), prompt]).output();
    let output = output.unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&said["name"], &said["stop"]), (&json!("openclaw"), &json!("end_turn")));
    said
}

fn servers(place: &Place, list: &[Value]) -> String {
    let file = place.path("mcp.json");
    std::fs::write(&file, json!({ "mcpServers": list }).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Sends one prompt, with these servers. Returns the exit code and the output.
fn execute(place: &Place, config: &str, how: &str, prompt: &str) -> (Option<i32>, String) {
    let project = place.project();
    let servers = ["--agent", AGENT, "--mcp-config", config, how];
    let args = [&servers[..], &["--cwd", &project, "--format", "quiet", "exec", prompt]].concat();
    let output = acpx(place, &args);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn acpx_uses_the_servers_that_it_passes() {
    let place = Place::new();
    let web = TestServer::http(&Script::new());
    let mut local = place.stdio("local", &Script::new());
    local["type"] = json!("stdio");
    let web = json!({ "name": "web", "type": "http", "url": web.url(), "headers": [] });
    let config = servers(&place, &[local, web]);
    for name in ["local", "web"] {
        let prompt = format!("/call mcp__{name}__echo {{\"text\":\"from {name}\"}}");
        let (code, said) = execute(&place, &config, "--approve-all", &prompt);
        assert!(code == Some(0) && said.contains(&format!("returned: from {name}")), "{said}");
    }
    place.assert_nothing_left();
}

#[test]
fn acpx_approves_and_denies() {
    let place = Place::new();
    let mut server = place.stdio("box", &changing());
    server["type"] = json!("stdio");
    let config = servers(&place, &[server]);
    let ask = |how: &str, prompt: &str| execute(&place, &config, how, prompt);
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
    let server = place.stdio("one", &Script::new());
    let said = run(&place, place.node(SDK), &server, "/call mcp__one__echo {\"text\":\"hello\"}");
    assert_eq!(said["text"], "`mcp__one__echo` returned: hello");
    assert!(said["kinds"].to_string().contains("tool_call_update"), "{said}");
    place.assert_nothing_left();
}

/// A client with the Python SDK: two prompts, with a model and a mode chosen in between.
const PYTHON: &str = r#"
import asyncio, json, sys
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, McpServerStdio, RequestPermissionResponse
program, cwd, server, prompt = sys.argv[1:]
seen = {"text": "", "kinds": [], "asked": 0}

class Client:
    async def request_permission(self, options, session_id, tool_call, **kwargs):
        seen["asked"] += 1
        option = next(it for it in options if it.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        seen["kinds"].append(update.session_update)
        if update.session_update == "agent_message_chunk":
            seen["text"] += update.content.text

    def on_connect(self, connection):
        pass

async def main():
    async with spawn_agent_process(Client(), program, "acp") as (agent, process):
        hello = await agent.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities()
        )
        servers = [McpServerStdio(**json.loads(server))]
        session = await agent.new_session(cwd=cwd, mcp_servers=servers)
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
        await agent.set_session_mode(session_id=session.session_id, mode_id="read-only")
        before = len(seen["text"])
        await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
        refused = seen["text"][before:]
        listed = await agent.list_sessions(cwd=cwd)
        await agent.close_session(session_id=session.session_id)
        print(json.dumps({
            **seen, "refused": refused, "name": hello.agent_info.name, "stop": answer.stop_reason,
            "modes": [it.id for it in session.modes.available_modes],
            "options": [it.id for it in session.config_options],
            "titles": [it.title for it in listed.sessions],
        }))

asyncio.run(main())
"#;

#[test]
fn the_python_sdk_talks_to_it() {
    let place = Place::new();
    let server = place.stdio("box", &changing());
    let prompt = "/call mcp__box__change {}";
    let said = run(&place, place.python(PYTHON), &server, prompt);
    assert!(said["text"].as_str().unwrap().contains("returned: done"), "{said}");
    assert_eq!(said["asked"], 1, "{said}");
    assert!(said["refused"].as_str().unwrap().contains("read-only"), "{said}");
    assert_eq!(said["modes"], json!(["default", "guarded", "read-only"]));
    assert_eq!(said["options"], json!(["mode", "model"]));
    assert_eq!(said["titles"], json!([prompt]));
    place.assert_nothing_left();
}

#[test]
fn acpx_keeps_sessions() {
    let place = Place::new();
    let project = place.project();
    let run = |args: &[&str]| {
        let all = ["--agent", AGENT, "--cwd", &project, "--format", "quiet", "--ttl", "60"];
        let all = [&all, args].concat();
        let output = acpx(&place, &all);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["sessions", "new"]);
    let said = run(&["prompt", "hello"]);
    assert!(!said.is_empty());
    // The second prompt of the session has the first one in its history.
    run(&["prompt", "hello again"]);
    let listed = run(&["sessions", "list"]);
    assert!(!listed.is_empty(), "{listed}");
    run(&["sessions", "close"]);
    let mut command = place.command(&["sessions", "list", "--json"]);
    let output = command.output().unwrap();
    let stored: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys: Vec<&str> =
        stored["sessions"].as_array().unwrap().iter().filter_map(|it| it["key"].as_str()).collect();
    assert!(matches!(keys[..], [key] if key.contains(":acp-")), "one session: {stored}");
    place.assert_nothing_left();
}

#[test]
fn acpx_chooses_the_model() {
    let server =
        ModelServer::start(|request| vec![Piece::text(request["model"].as_str().unwrap())]);
    let place = Place::with_models(&server);
    let args = ["--agent", AGENT, "--format", "quiet", "--model", "local/small", "exec", "hello"];
    let output = acpx(&place, &args);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("small"), "{said} {output:?}");
    assert_eq!(output.status.code(), Some(0));
}
