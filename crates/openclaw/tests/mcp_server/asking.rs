//! Approvals and elicitations of a run, which the client is asked about.

use openclaw_gateway::tokens::TokenStore;
use openclaw_protocol::Scope;
use openclaw_testkit::{Ask, Piece, Script, Tool};
use serde_json::{Value, json};

use crate::client::Client;
use crate::clients::{python, typescript};
use crate::common::place::Place;
use crate::common::rpc::meta;
use crate::model::Model;
use crate::tasks::until_status;

/// A model that calls this tool once, and then reports what the tool returned.
fn model(tool: &'static str) -> Model {
    Model::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let since = messages.iter().rposition(|it| it["role"] == "user").unwrap();
        match messages[since..].iter().find(|it| it["role"] == "tool") {
            None => vec![Piece::call(tool, json!({ "text": "hel\u{202e}lo" }))],
            Some(result) => vec![Piece::text(format!("It said: {}", result["content"]))],
        }
    })
}

/// A model that runs a command whose effect is at its end.
fn running_a_command(words: usize) -> Model {
    let command = format!("echo {}; touch X", "build ".repeat(words));
    Model::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        match messages.iter().find(|it| it["role"] == "tool") {
            None => vec![Piece::call("exec", json!({ "command": command }))],
            Some(result) => vec![Piece::text(format!("It said: {}", result["content"]))],
        }
    })
}

#[test]
fn the_end_of_a_long_command_is_shown_or_the_client_is_not_asked() {
    let able = json!({ "elicitation": {} });
    let denied = json!({ "action": "decline" });
    // It fits.
    let model = running_a_command(1_000);
    let place = model.place();
    let mut client = Client::start_able(&place, &[], able.clone());
    let (asked, _) = order_and_answer(&mut client, Some(denied.clone()));
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains("build ; touch X\""), "{message}");
    assert!(!message.contains("more characters"), "{message}");
    // It does not, and nothing else could show it.
    let model = running_a_command(5_000);
    let place = model.place();
    let mut client = Client::start_able(&place, &[], able.clone());
    let (asked, result) = order_and_answer(&mut client, None);
    assert!(asked.is_null() && text(&result).contains("could not ask"), "{asked} {result}");
    assert_eq!(client.close(), 0);
    // A gateway can show it.
    let gateway = place.gateway();
    let mut client = Client::start_able(&place, &[], able);
    let (asked, _) = order_and_answer(&mut client, Some(denied));
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains("command=\"echo build build "), "{message}");
    assert!(message.contains(" more characters …\n"), "{message}");
    assert!(
        message.contains("build ; touch X\"\nAll of it: `openclaw approvals show`"),
        "{message}"
    );
    drop(gateway);
}

#[test]
fn all_of_a_pending_call_is_shown_by_a_command() {
    let model = running_a_command(5_000);
    let place = model.place();
    let gateway = place.gateway();
    let shown = || {
        let output = place.command(&["approvals", "show"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(shown(), "No calls wait for an approval.\n");
    let mut client = Client::start_able(&place, &[], json!({ "elicitation": {} }));
    client.send_call("order_openclaw", json!({ "message": "run it" }));
    while client.frame()["method"] != "elicitation/create" {}
    let text = shown();
    let built = text.matches("build").count();
    assert!(built >= 4_990 && !text.contains("more characters"), "{built} {text}");
    assert!(text.contains("touch X"), "{text}");
    drop(gateway);
}

/// A folder whose agent has this server as `x`.
fn place(model: &Model, script: &Script, approval: &str, fallback: &str) -> Place {
    let mut config = model.config();
    config["agents"]["defaults"]["approval"] = json!({ "fallback": fallback });
    Place::with_server(config, "x", script, json!({ "approval": approval }))
}

/// With a tool that needs an approval.
fn writing(model: &Model, fallback: &str) -> Place {
    let tool =
        Tool::new("write").result(&json!({ "content": [{ "type": "text", "text": "done" }] }));
    place(model, &Script::new().tools([tool]), "auto", fallback)
}

/// Calls `order_openclaw` as a client with these capabilities, and answers its first question.
fn order_and_answer(client: &mut Client, answer: Option<Value>) -> (Value, Value) {
    let id = client.send_call("order_openclaw", json!({ "message": "write it" }));
    let mut asked = Value::Null;
    loop {
        let frame = client.frame();
        if frame["id"] == id && frame.get("method").is_none() {
            return (asked, frame["result"].clone());
        }
        if frame["method"] == "elicitation/create" {
            let answer = answer.clone().unwrap();
            let reply = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": answer });
            client.write(&reply.to_string());
            asked = frame["params"].clone();
        }
    }
}

fn text(result: &Value) -> String {
    result["structuredContent"]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[test]
fn the_client_of_a_token_without_the_scope_for_approvals_is_not_asked() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let gateway = place.gateway();
    let store = TokenStore::new(&place.path(""));
    let token = store.create("phone", &[Scope::Read, Scope::Write]).unwrap();
    let file = place.path("phone.token");
    std::fs::write(&file, token.expose()).unwrap();
    let args = ["--gateway", &gateway.url, "--token-file", file.to_str().unwrap()];
    let mut client = Client::start_able(&place, &args, json!({ "elicitation": {} }));
    let (asked, result) = order_and_answer(&mut client, None);
    assert!(asked.is_null(), "{asked}");
    assert!(text(&result).contains("needs the user's approval"), "{result}");
}

#[test]
fn the_client_decides_about_a_call_that_needs_an_approval() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let mut client = Client::start_able(&place, &[], json!({ "elicitation": {} }));
    let accept =
        |decision: &str| json!({ "action": "accept", "content": { "decision": decision } });
    for (answer, expected) in [
        (accept("deny"), "denied"),
        (json!({ "action": "decline" }), "denied"),
        (accept("allow once"), "done"),
        (accept("always allow"), "done"),
    ] {
        let (asked, result) = order_and_answer(&mut client, Some(answer));
        let message = asked["message"].as_str().unwrap();
        assert!(message.contains("`mcp_x_write`") && message.contains("MCP: x/write"), "{asked}");
        assert!(message.contains(r#"text="hel\u{202e}lo""#), "made visible: {asked}");
        let choices = &asked["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(*choices, json!(["allow once", "always allow", "deny"]));
        assert!(text(&result).contains(expected), "{result}");
    }
    let (asked, result) = order_and_answer(&mut client, None);
    assert!(asked.is_null() && text(&result).contains("done"), "allowed for good: {result}");
}

#[test]
fn a_client_that_cannot_be_asked_or_dismisses_the_question_gets_the_fallback() {
    for (fallback, expected) in [("deny", "no user answered"), ("allow", "done")] {
        let model = model("mcp_x_write");
        let place = writing(&model, fallback);
        let mut mute = Client::start(&place, &[]);
        let (_, result) = order_and_answer(&mut mute, None);
        assert!(text(&result).contains(expected), "{result}");
        let mut client = Client::start_able(&place, &[], json!({ "elicitation": {} }));
        let cancel = json!({ "action": "cancel" });
        let (asked, result) = order_and_answer(&mut client, Some(cancel));
        assert!(asked.is_object() && text(&result).contains(expected), "{result}");
    }
}

#[test]
fn an_elicitation_of_a_server_reaches_the_client() {
    let model = model("mcp_x_echo");
    let script = Script::new().ask(Ask::Elicitation);
    let place = place(&model, &script, "never", "deny");
    let mut client = Client::start_able(&place, &[], json!({ "elicitation": {} }));
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let (asked, result) = order_and_answer(&mut client, Some(answer));
    assert!(asked["message"].as_str().unwrap().starts_with("MCP server `x` asks: "), "{asked}");
    assert!(text(&result).contains("Ada"), "{result}");
    let mut mute = Client::start(&place, &[]);
    let (asked, result) = order_and_answer(&mut mute, None);
    assert!(asked.is_null() && text(&result).contains("decline"), "{result}");
}

/// A call of a client without a handshake that can be asked and has these extensions.
fn order(extensions: Value) -> Value {
    let meta = meta(json!({ "elicitation": {}, "extensions": extensions }));
    json!({ "name": "order_openclaw", "arguments": { "message": "write it" }, "_meta": meta })
}

/// Sends a message that needs an approval. Returns the parameters of the call, and its first result.
fn order_and_be_asked(client: &mut Client) -> (Value, Value) {
    let call = order(json!({}));
    let first = client.ask("tools/call", call.clone()).unwrap();
    assert_eq!(first["resultType"], "input_required", "{first}");
    (call, first)
}

#[test]
fn a_client_without_a_handshake_is_asked_by_results() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let mut client = Client::spawn(&place, &[]);
    let (call, first) = order_and_be_asked(&mut client);
    let (key, question) = first["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let mut again = call;
    let answer = json!({ "action": "accept", "content": { "decision": "allow once" } });
    again["inputResponses"] = json!({ key.as_str(): answer });
    again["requestState"] = first["requestState"].clone();
    let second = client.ask("tools/call", again.clone()).unwrap();
    assert!(text(&second).contains("done"), "{second}");
    let third = client.ask("tools/call", again).unwrap_err();
    assert_eq!(third["code"], -32602, "a run is not started twice: {third}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_request_that_continues_no_run_is_refused_and_starts_none() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let mut client = Client::spawn(&place, &[]);
    let (call, first) = order_and_be_asked(&mut client);
    let (key, _) = first["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let answer = json!({ "action": "accept", "content": { "decision": "allow once" } });
    let mut again = call;
    again["inputResponses"] = json!({ key.as_str(): answer });
    let state = first["requestState"].as_str().unwrap();
    let mut other = again.clone();
    other["requestState"] = json!(state);
    other["arguments"]["message"] = json!("write something else");
    let mut wrong = vec![again.clone(), other];
    for state in ["", "openclaw-hub:0", &format!("{state}x"), &state[1..]] {
        let mut altered = again.clone();
        altered["requestState"] = json!(state);
        wrong.push(altered);
    }
    let mut other_tool = again.clone();
    other_tool["name"] = json!("list_openclaw_sessions");
    other_tool["arguments"] = json!({});
    other_tool["requestState"] = json!(state);
    wrong.push(other_tool);
    for wrong in wrong {
        let refused = client.ask("tools/call", wrong).unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    // Input that is missing is asked for again.
    again["requestState"] = json!(state);
    let mut without = again.clone();
    without["inputResponses"] = json!({});
    let asked = client.ask("tools/call", without).unwrap();
    assert_eq!(asked["inputRequests"], first["inputRequests"], "{asked}");
    again["requestState"] = asked["requestState"].clone();
    let done = client.ask("tools/call", again).unwrap();
    assert!(text(&done).contains("done"), "{done}");
    let sessions = client
        .ask("tools/call", json!({ "name": "list_openclaw_sessions", "_meta": meta(json!({})) }));
    let sessions = sessions.unwrap()["structuredContent"]["sessions"].clone();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
}

#[test]
fn a_run_that_waits_for_its_client_ends_with_it() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let mut client = Client::spawn(&place, &[]);
    order_and_be_asked(&mut client);
    assert_eq!(client.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_task_shows_the_question() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let mut client = Client::spawn(&place, &[]);
    let call = order(json!({ "io.modelcontextprotocol/tasks": {} }));
    let created = client.ask("tools/call", call.clone()).unwrap();
    assert_eq!(created["resultType"], "task", "{created}");
    let task = json!({ "taskId": created["taskId"], "_meta": call["_meta"] });
    let state = client.ask("tasks/get", task.clone()).unwrap();
    assert_eq!(state["status"], "input_required", "{state}");
    let key = state["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut update = task.clone();
    let answer = json!({ "action": "accept", "content": { "decision": "allow once" } });
    update["inputResponses"] = json!({ key.as_str(): answer });
    client.ask("tasks/update", update).unwrap();
    let state = until_status(&mut client, &task, "completed");
    assert!(text(&state["result"]).contains("done"), "{state}");
}

/// A client with the second version of the TypeScript SDK, in both eras.
const TYPESCRIPT: &str = r#"
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const results = [];
for (const mode of ["legacy", { pin: "2026-07-28" }]) {
  const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } };
  const client = new Client({ name: "test", version: "1" }, options);
  const asked = [];
  client.setRequestHandler("elicitation/create", async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { decision: "allow once" } };
  });
  await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp-server"], env: process.env }));
  const result = await client.callTool({ name: "order_openclaw", arguments: { message: "write it" } });
  results.push({ asked, text: result.structuredContent.text });
  await client.close();
}
console.log(JSON.stringify(results));
process.exit(0);
"#;

/// A client with the Python SDK.
const PYTHON: &str = r#"
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

async def main():
    asked = []
    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "allow once"})
    params = StdioServerParameters(command=sys.argv[1], args=["mcp-server"], env=dict(os.environ))
    async with stdio_client(params) as (read, write), ClientSession(read, write, elicitation_callback=elicit) as session:
        await session.initialize()
        result = await session.call_tool("order_openclaw", {"message": "write it"})
        dumped = result.model_dump(by_alias=True)
        print(json.dumps([{"asked": asked, "text": dumped["structuredContent"]["text"]}]))

asyncio.run(main())
"#;

fn check(said: &Value) {
    for said in said.as_array().unwrap() {
        assert_eq!(said["asked"].as_array().unwrap().len(), 1, "{said}");
        assert!(said["asked"][0].as_str().unwrap().contains("MCP: x/write"), "{said}");
        assert!(said["text"].as_str().unwrap().contains("done"), "{said}");
    }
}

#[test]
fn the_typescript_sdk_is_asked_in_both_eras() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    let said = typescript(&place, TYPESCRIPT);
    assert_eq!(said.as_array().unwrap().len(), 2, "{said}");
    check(&said);
}

#[test]
fn the_python_sdk_is_asked() {
    let model = model("mcp_x_write");
    let place = writing(&model, "deny");
    check(&python(&place, PYTHON));
}
