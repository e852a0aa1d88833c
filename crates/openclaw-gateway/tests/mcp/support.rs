//! Configurations of test servers, and callers that list and call them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openclaw_gateway::Gateway;
use openclaw_gateway::socket::Endpoint;
use openclaw_protocol::Received;
use openclaw_protocol::connect::caps;
use openclaw_testkit::{Script, TestServer};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::{ALL_SCOPES, connect};
pub(crate) use crate::common::{LONG, Place, request};

/// The entry of a testkit server.
pub(crate) fn entry(script: &Script) -> Value {
    let (program, args) = TestServer::stdio(script);
    json!({ "command": program, "args": args, "timeout": 60_000 })
}

/// The entry of a server that never starts.
pub(crate) fn broken() -> Value {
    json!({ "command": "/nowhere/at/all", "maxRestarts": 0 })
}

/// A configuration with these servers, and the offline model.
pub(crate) fn config(servers: &Value) -> Value {
    json!({ "agents": { "defaults": { "model": "offline" } }, "mcp": { "servers": servers } })
}

/// Starts a gateway with this configuration, and connects a caller with all scopes.
pub(crate) async fn running(config: &Value) -> (Place, Arc<Gateway>, Arc<dyn Endpoint>) {
    let place = Place::new(config);
    let gateway = place.start().await;
    let me = caller(&gateway);
    (place, gateway, me)
}

pub(crate) async fn stop(gateway: Arc<Gateway>) {
    gateway.stop(Duration::ZERO).await;
}

/// A caller in this process with these scopes.
pub(crate) fn caller_with(gateway: &Arc<Gateway>, scopes: &[&str]) -> Arc<dyn Endpoint> {
    connect(gateway, scopes, &[caps::TOOL_EVENTS])
}

/// A caller in this process with all scopes.
pub(crate) fn caller(gateway: &Arc<Gateway>) -> Arc<dyn Endpoint> {
    caller_with(gateway, &ALL_SCOPES)
}

pub(crate) async fn ask(surface: &Arc<dyn Endpoint>, method: &str, params: Value) -> Value {
    match request(surface, method, params).await {
        Ok(answer) => answer,
        Err(error) => panic!("{method}: {error:?}"),
    }
}

/// The error of a request that must fail: the message, `details.code`, and the hint.
pub(crate) async fn refused(
    surface: &Arc<dyn Endpoint>,
    method: &str,
    params: Value,
) -> (String, String, String) {
    match request(surface, method, params).await {
        Ok(answer) => panic!("{method}: {answer}"),
        Err(error) => {
            let details = error.details.as_deref().map_or("{}", |raw| raw.get());
            let details: Value = serde_json::from_str(details).unwrap();
            let text = |key: &str| details[key].as_str().unwrap_or_default().to_owned();
            (error.message, text("code"), text("hint"))
        }
    }
}

/// Sends a message to the agent, and waits for the final answer.
pub(crate) async fn say(surface: &Arc<dyn Endpoint>, message: &str) -> String {
    let mut events = surface.events();
    let key = "agent:main:test";
    // Not the time: it may not advance between two messages, and a repeated id is answered once.
    static SENT: AtomicU64 = AtomicU64::new(0);
    let id = format!("{message}-{}", SENT.fetch_add(1, Ordering::Relaxed));
    let params = json!({ "sessionKey": key, "message": message, "idempotencyKey": id });
    ask(surface, "chat.send", params).await;
    let last = async {
        loop {
            let Some(Received::Event(event)) = events.next().await else { panic!("the end") };
            if event.event != "chat" {
                continue;
            }
            let payload: Value = serde_json::from_str(event.json().unwrap().get()).unwrap();
            if payload["runId"] == id.as_str() && payload["state"] != "delta" {
                return payload;
            }
        }
    };
    let last = timeout(LONG, last).await.unwrap();
    assert_eq!(last["state"], "final", "{last}");
    last["message"]["content"][0]["text"].as_str().unwrap().to_owned()
}
