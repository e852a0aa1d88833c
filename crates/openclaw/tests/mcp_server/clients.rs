//! Real clients: the SDKs for TypeScript and Python, MCP Inspector, mcporter.

use std::process::{Command, Stdio};

use openclaw_testkit::Peers;
use serde_json::{Value, json};

use crate::common::place::Place;

/// A client with the TypeScript SDK.
const TYPESCRIPT: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp-server"], env: process.env }));
const tools = (await client.listTools()).tools.map((it) => it.name);
const steps = [];
const result = await client.callTool({ name: "order_openclaw", arguments: { message: "add 2 and 3" } },
  undefined, { onprogress: (it) => steps.push(it.message), resetTimeoutOnProgress: true });
const key = result.structuredContent.sessionKey;
const again = await client.callTool({ name: "order_openclaw", arguments: { message: "add 4 and 5", sessionKey: key } });
console.log(JSON.stringify({ tools, steps, text: result.content[0].text, again: again.structuredContent }));
await client.close();
"#;

/// A client with the Python SDK.
const PYTHON: &str = r#"
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    params = StdioServerParameters(command=sys.argv[1], args=["mcp-server"], env=dict(os.environ))
    async with stdio_client(params) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("order_openclaw", {"message": "add 2 and 3"})
        dumped = result.model_dump(by_alias=True)
        print(json.dumps({"tools": tools, "text": dumped["content"][0]["text"], "again": dumped["structuredContent"]}))

asyncio.run(main())
"#;

fn run(place: &Place, mut command: Command) -> Value {
    let output = place.prepare(&mut command).stdin(Stdio::null()).output().unwrap();
    let said = serde_json::from_slice(&output.stdout);
    said.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn check(place: &Place, said: &Value) {
    assert_eq!(said["tools"][0], "order_openclaw", "{said}");
    assert!(said["text"].as_str().unwrap().contains('5'), "{said}");
    assert_eq!(said["again"]["status"], "completed", "{said}");
    place.assert_nothing_left();
}

pub(crate) fn typescript(place: &Place, script: &str) -> Value {
    let mut command = place.node(script);
    command.arg(env!("CARGO_BIN_EXE_openclaw"));
    run(place, command)
}

pub(crate) fn python(place: &Place, script: &str) -> Value {
    let mut command = place.python(script);
    command.arg(env!("CARGO_BIN_EXE_openclaw"));
    run(place, command)
}

#[test]
fn the_typescript_sdk_talks_to_it() {
    let place = Place::new();
    let said = typescript(&place, TYPESCRIPT);
    assert!(!said["steps"].as_array().unwrap().is_empty(), "{said}");
    assert!(said["again"]["text"].as_str().unwrap().contains('9'), "{said}");
    check(&place, &said);
}

#[test]
fn the_python_sdk_talks_to_it() {
    let place = Place::new();
    check(&place, &python(&place, PYTHON));
}

/// A client with the second version of the TypeScript SDK.
const TYPESCRIPT_2: &str = r#"
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp-server"], env: process.env }));
const tools = (await client.listTools()).tools.map((it) => it.name);
const result = await client.callTool({ name: "order_openclaw", arguments: { message: "add 2 and 3" } });
console.log(JSON.stringify({ tools, text: result.content[0].text, again: result.structuredContent }));
await client.close();
process.exit(0);
"#;

#[test]
fn the_second_typescript_sdk_talks_to_it() {
    let place = Place::new();
    let said = typescript(&place, TYPESCRIPT_2);
    check(&place, &said);
}

#[test]
fn mcp_inspector_talks_to_it_in_all_eras() {
    let place = Place::new();
    let target = ["--", env!("CARGO_BIN_EXE_openclaw"), "mcp-server"];
    for era in ["legacy", "auto", "modern"] {
        let call = ["--method", "tools/call", "--tool-name", "order_openclaw"];
        let message = ["--tool-arg", "message=add 2 and 3"];
        let args = [&["--protocol-era", era], &call[..], &message, &target].concat();
        let said = run(&place, Peers::find().inspector(&args).command());
        assert_eq!(said["structuredContent"]["status"], "completed", "{era}: {said}");
    }
    // It knows which schemas clients and models have trouble with.
    let args = [&["--method", "tools/list", "--strict"], &target[..]].concat();
    let mut command = Peers::find().inspector(&args).command();
    let output = place.prepare(&mut command).stdin(Stdio::null()).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !complaints.contains("Issue"), "{complaints}");
    place.assert_nothing_left();
}

#[test]
fn mcporter_talks_to_it() {
    let place = Place::new();
    let server = json!({ "command": env!("CARGO_BIN_EXE_openclaw"), "args": ["mcp-server"] });
    let file = place.path("mcporter.json");
    std::fs::write(&file, json!({ "mcpServers": { "claw": server } }).to_string()).unwrap();
    let call = ["call", "claw.order_openclaw", "message=add 2 and 3", "--output", "json"];
    let args = [&["--config", file.to_str().unwrap()], &call[..]].concat();
    let said = run(&place, Peers::find().mcporter(&args).command());
    assert!(said.to_string().contains("completed"), "{said}");
    place.assert_nothing_left();
}
