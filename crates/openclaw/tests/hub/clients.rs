//! Real clients: MCP Inspector, the TypeScript and Python SDKs, mcporter.

use std::process::{Command, Output, Stdio};

use openclaw_testkit::{Peers, Script};
use serde_json::{Value, json};

use crate::place::Place;

const OPENCLAW: &str = env!("CARGO_BIN_EXE_openclaw");

fn run(place: &Place, command: &mut Command) -> Output {
    place.prepare(command).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn mcp_inspector_speaks_to_it_in_all_eras() {
    let place = Place::with("one", &Script::new());
    place.command(&[]);
    let call = |target: &[&str]| {
        for era in ["legacy", "auto", "modern"] {
            let call =
                ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"];
            let args = [&["--protocol-era", era], &call[..], target].concat();
            let output = run(&place, &mut Peers::find().inspector(&args).command());
            assert!(said(&output).contains("hello"), "{era}: {output:?}");
        }
    };
    call(&["--", OPENCLAW, "mcp-server", "--hub", "--no-wrap"]);
    let gateway = place.gateway();
    let token = format!("Authorization: Bearer {}", gateway.token);
    call(&["--transport", "http", "--server-url", &gateway.mcp(), "--header", &token]);
}

/// Lists, calls with progress and reads with the second version of the TypeScript SDK.
const TYPESCRIPT: &str = r#"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const [kind, target, token] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ada" } }));
const transport = kind === "stdio"
  ? new StdioClientTransport({ command: target, args: ["mcp-server", "--hub", "--no-wrap"], env: process.env })
  : new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
await client.connect(transport);
const { tools } = await client.listTools();
const progress = [];
await client.callTool({ name: "mcp_one_sleep", arguments: { ms: 300 } }, { onprogress: (it) => progress.push(it) });
const asked = await client.callTool({ name: "mcp_two_echo", arguments: { text: "x" } });
console.log(JSON.stringify({ tools: tools.map((it) => it.name), progress: progress.length, asked: asked.content[0].text }));
await client.close();
process.exit(0);
"#;

fn two_servers() -> Place {
    let mut place = Place::with("one", &Script::new());
    let asks = Script::new().ask(openclaw_testkit::Ask::Elicitation);
    place.add("two", &asks, json!({ "approval": "never" }));
    place
}

#[test]
fn the_typescript_sdk_is_served_over_stdio_and_http() {
    let place = two_servers();
    place.command(&[]);
    let check = |args: &[&str]| {
        let seen = said(&place.node(TYPESCRIPT).args(args).output().unwrap());
        let seen: Value = serde_json::from_str(seen.trim()).unwrap();
        assert!(seen["tools"].as_array().unwrap().contains(&json!("mcp_one_echo")), "{seen}");
        assert!(seen["progress"].as_u64().unwrap() > 0, "{seen}");
        assert!(seen["asked"].as_str().unwrap().contains("Ada"), "{seen}");
    };
    check(&["stdio", OPENCLAW]);
    let gateway = place.gateway();
    check(&["http", &format!("{}?wrap=false", gateway.mcp()), &gateway.token]);
}

/// The Python SDK over stdio.
const PYTHON: &str = r#"
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp-server", "--hub", "--no-wrap"], env=None)
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            result = await session.call_tool("mcp_one_echo", {"text": "hello"})
            print(len(tools.tools), result.content[0].text)
asyncio.run(main())
"#;

#[test]
fn the_python_sdk_is_served() {
    let place = two_servers();
    place.command(&[]);
    // The SDK passes only a few variables on, not the state folder; the default is below HOME.
    std::os::unix::fs::symlink(place.folder.path(), place.path(".openclaw")).unwrap();
    let seen = said(&place.python(PYTHON).arg(OPENCLAW).output().unwrap());
    assert!(seen.trim().ends_with("hello"), "{seen}");
}

#[test]
fn mcporter_is_served() {
    let place = two_servers();
    place.command(&[]);
    let server = json!({ "command": OPENCLAW, "args": ["mcp-server", "--hub", "--no-wrap"] });
    let config = json!({ "mcpServers": { "hub": server } });
    std::fs::write(place.path("mcporter.json"), config.to_string()).unwrap();
    let file = place.path("mcporter.json");
    let args = ["--config", file.to_str().unwrap(), "call", "hub.mcp_one_echo", "text=hello"];
    let output = run(&place, &mut Peers::find().mcporter(&args).command());
    assert!(said(&output).contains("hello"), "{output:?}");
}
