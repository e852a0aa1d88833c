//! Checks what a running gateway sends against the published schema of the protocol.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw_gateway::state;
use openclaw_testkit::{GatewaySchema, Script};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{KEY, LONG, Place, config, entry, entry_with, is_end};

/// Checks an event frame and its payload.
#[track_caller]
fn check_event(schema: &GatewaySchema, frame: &Value) {
    schema.check("EventFrame", frame);
    let payload = &frame["payload"];
    match (frame["event"].as_str().unwrap(), payload["state"].as_str()) {
        ("chat", Some("delta")) => schema.check("ChatDeltaEvent", payload),
        ("chat", Some("final")) => schema.check("ChatFinalEvent", payload),
        ("chat", Some("aborted")) => schema.check("ChatAbortedEvent", payload),
        ("chat", Some("error")) => schema.check("ChatErrorEvent", payload),
        ("agent", _) => {
            let mut payload = payload.clone();
            // The Node gateway sends it, too; its schema lacks it.
            payload.as_object_mut().unwrap().remove("sessionKey");
            schema.check("AgentEvent", &payload);
        }
        ("tick", _) => schema.check("TickEvent", payload),
        ("shutdown", _) => schema.check("ShutdownEvent", payload),
        ("node.invoke.request", _) => schema.check("NodeInvokeRequestEvent", payload),
        ("chat", state) => panic!("unknown state of a chat event: {state:?}"),
        // Our own events are not in the schema.
        _ => {}
    }
}

/// A client that checks every frame.
struct Looking {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    schema: GatewaySchema,
}

impl Looking {
    /// The next frame, checked; `None` at the end.
    async fn frame(&mut self) -> Option<Value> {
        loop {
            match timeout(LONG, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    match frame["type"] == "event" {
                        true => check_event(&self.schema, &frame),
                        false => self.schema.check("ResponseFrame", &frame),
                    }
                    return Some(frame);
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Sends a request. Returns the payload of the response, or its error.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "type": "req", "id": "1", "method": method, "params": params });
        self.schema.check("RequestFrame", &request);
        self.socket.send(Message::text(request.to_string())).await.unwrap();
        loop {
            let mut frame = self.frame().await.unwrap();
            if frame["type"] == "res" {
                let is_ok = frame["ok"] == true;
                return frame[if is_ok { "payload" } else { "error" }].take();
            }
        }
    }

    /// Sends a message, and checks all frames up to its end.
    async fn say(&mut self, run: &str, message: &str) -> Value {
        let params = json!({ "sessionKey": KEY, "message": message, "idempotencyKey": run });
        self.schema.check("ChatSendParams", &params);
        self.ask("chat.send", params).await;
        self.until_end(run).await
    }

    async fn until_end(&mut self, run: &str) -> Value {
        loop {
            let frame = self.frame().await.unwrap();
            let payload = &frame["payload"];
            if frame["event"] == "chat" && payload["runId"] == run && is_end(payload) {
                return payload.clone();
            }
        }
    }
}

#[tokio::test]
async fn what_a_running_gateway_says_is_what_the_schema_says() {
    let prompts = entry_with(&Script::new(), &json!({ "approval": "auto" }));
    let place = Place::new(&config(&json!({ "x": entry(&Script::new()), "y": prompts })));
    let served = place.serve(None).await;
    let found = state::find(served.state()).unwrap();
    let (socket, _) = timeout(LONG, connect_async(found.url)).await.unwrap().unwrap();
    let mut client = Looking { socket, schema: GatewaySchema::find() };
    let params = json!({
        "minProtocol": 4, "maxProtocol": 4,
        "client": { "id": "test", "version": "1", "platform": "linux", "mode": "test" },
        "role": "operator", "scopes": ["operator.admin"],
        "auth": { "token": found.token.unwrap().expose() },
    });
    let hello = client.ask("connect", params).await;
    client.schema.check("HelloOk", &hello);

    // A turn with a call, one with an unknown tool, one with an answer only, and one that is
    // aborted.
    assert_eq!(client.say("r1", "/call mcp_x_mixed {}").await["state"], "final");
    assert_eq!(client.say("r2", "/call mcp_nobody {}").await["state"], "final");
    assert_eq!(client.say("r3", "hello").await["state"], "final");
    let call = "/call mcp_x_sleep {\"ms\":80000}";
    let params = json!({ "sessionKey": KEY, "message": call, "idempotencyKey": "r4" });
    client.ask("chat.send", params).await;
    let params = json!({ "sessionKey": KEY, "runId": "r4" });
    assert_eq!(client.ask("chat.abort", params).await["aborted"], true);
    assert_eq!(client.until_end("r4").await["state"], "aborted");

    // The response comes after one that only accepts the message.
    let run = json!({ "sessionKey": KEY, "message": "hello", "idempotencyKey": "r5" });
    let accepted = client.ask("agent", run).await;
    assert_eq!((&accepted["status"], &accepted["runId"]), (&json!("accepted"), &json!("r5")));
    let ended = loop {
        let frame = client.frame().await.unwrap();
        if frame["type"] == "res" {
            break frame;
        }
    };
    assert_eq!((&ended["id"], &ended["payload"]["status"]), (&json!("1"), &json!("ok")));

    let history = client.ask("chat.history", json!({ "sessionKey": KEY })).await;
    let typed: openclaw_protocol::chat::HistoryResult =
        serde_json::from_value(history.clone()).unwrap();
    assert!(typed.messages.len() >= 8, "{history:#}");
    let sessions = client.ask("sessions.list", json!({})).await;
    assert_eq!(sessions["count"], 1);
    for row in sessions["sessions"].as_array().unwrap() {
        client.schema.check("SessionRow", row);
    }
    let described = client.ask("sessions.describe", json!({ "key": KEY })).await;
    client.schema.check("SessionRow", &described["session"]);
    for (method, params, shape) in [
        ("agents.list", json!({}), "AgentsListResult"),
        ("commands.list", json!({}), "CommandsListResult"),
        ("models.list", json!({}), "ModelsListResult"),
        ("agent.identity.get", json!({}), "AgentIdentityResult"),
        ("logs.tail", json!({}), "LogsTailResult"),
        ("tools.effective", json!({ "sessionKey": KEY }), "ToolsEffectiveResult"),
        ("sessions.create", json!({ "label": "new" }), "SessionsCreateResult"),
        ("tasks.list", json!({}), "TasksListResult"),
        ("talk.catalog", json!({}), "TalkCatalogResult"),
        ("update.status", json!({}), "UpdateStatusResult"),
        ("progressCard.get", json!({}), "ProgressCardGetResult"),
        ("sessions.branches.list", json!({}), "SessionsBranchesListResult"),
        ("sessions.companion.state", json!({}), "SessionsCompanionStateResult"),
        ("sessions.observer.visibility", json!({}), "SessionsObserverVisibilityResult"),
        ("tools.catalog", json!({}), "ToolsCatalogResult"),
        (
            "tools.invoke",
            json!({ "name": "mcp_x_echo", "args": { "text": "hi" } }),
            "ToolsInvokeResult",
        ),
        ("tools.invoke", json!({ "name": "mcp_y_add", "args": {} }), "ToolsInvokeResult"),
        ("sessions.delete", json!({ "key": KEY }), "SessionsDeleteResult"),
        ("nobody.knows", json!({}), "ErrorShape"),
        ("chat.send", json!({}), "ErrorShape"),
        (
            "chat.send",
            json!({ "sessionKey": "", "message": "", "idempotencyKey": "" }),
            "ErrorShape",
        ),
    ] {
        let answer = client.ask(method, params).await;
        client.schema.check(shape, &answer);
    }
    for entry in client.ask("system-presence", json!({})).await.as_array().unwrap() {
        client.schema.check("PresenceEntry", entry);
    }
    for method in ["health", "status", "config.get"] {
        assert!(client.ask(method, json!({})).await.is_object(), "{method}");
    }
    let last = async { while client.frame().await.is_some() {} };
    timeout(LONG, async { tokio::join!(served.stop(Duration::ZERO), last) }).await.unwrap();
}
