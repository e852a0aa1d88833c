//! Configurations of test servers, and callers that record events.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_gateway::Gateway;
use openclaw_gateway::socket::Endpoint;
use openclaw_protocol::client::Client;
use openclaw_protocol::connect::caps;
use openclaw_protocol::{ErrorShape, EventReceiver, Received, Surface};
use openclaw_testkit::{Script, TestServer, processes};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::{ALL_SCOPES, connect, request};
pub(crate) use crate::common::{LONG, Place};

/// The session used by most tests.
pub(crate) const KEY: &str = "agent:main:main";

/// A configuration with the offline model and these servers.
pub(crate) fn config(servers: &Value) -> Value {
    json!({
        "agents": { "defaults": { "model": "offline", "toolSearchThreshold": 0 } },
        "mcp": { "servers": servers },
    })
}

/// The entry of a testkit server whose tools need no approval.
pub(crate) fn entry(script: &Script) -> Value {
    let (program, args) = TestServer::stdio(script);
    json!({ "command": program, "args": args, "timeout": 60_000, "approval": "never",
            "rateLimit": 0 })
}

/// Like [`entry`], with further keys.
pub(crate) fn entry_with(script: &Script, more: &Value) -> Value {
    let mut entry = entry(script);
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

/// A configuration with the offline model and one server.
pub(crate) fn one_server() -> Value {
    config(&json!({ "x": entry(&Script::new()) }))
}

/// Both ways in which servers ask: with a request, and with an input-required result.
pub(crate) fn eras() -> [Script; 2] {
    [Script::new().legacy(), Script::new().modern()]
}

pub(crate) async fn stop(gateway: &Arc<Gateway>) {
    timeout(LONG, gateway.stop(Duration::ZERO)).await.unwrap();
}

/// Starts a gateway with this configuration, and connects a caller with all scopes.
pub(crate) async fn running(config: &Value) -> (Place, Arc<Gateway>, Someone) {
    let place = Place::new(config);
    let (gateway, someone) = start(&place).await;
    (place, gateway, someone)
}

/// Like [`running`], with a caller that may not approve calls.
pub(crate) async fn unattended(config: &Value) -> (Place, Arc<Gateway>, Someone) {
    let place = Place::new(config);
    let gateway = place.start().await;
    let writer = Someone::writer(&gateway);
    (place, gateway, writer)
}

/// Starts a gateway, with one caller that has all scopes.
pub(crate) async fn start(place: &Place) -> (Arc<Gateway>, Someone) {
    let gateway = place.start().await;
    let someone = Someone::new(&gateway);
    (gateway, someone)
}

/// A client, used like an endpoint in this process.
#[derive(Debug)]
struct Remote(Client);

impl Endpoint for Remote {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        Box::pin(self.0.request(method, params))
    }

    fn events(&self) -> EventReceiver {
        Surface::events(&self.0)
    }
}

/// A connected caller.
pub(crate) struct Someone {
    pub(crate) surface: Arc<dyn Endpoint>,
    events: EventReceiver,
}

impl Someone {
    pub(crate) fn at(surface: Arc<dyn Endpoint>) -> Self {
        let events = surface.events();
        Self { surface, events }
    }

    /// On a socket.
    pub(crate) fn remote(client: Client) -> Self {
        Self::at(Arc::new(Remote(client)))
    }

    /// In this process, with all scopes.
    pub(crate) fn new(gateway: &Arc<Gateway>) -> Self {
        Self::with(gateway, &ALL_SCOPES)
    }

    /// In this process, without the scope for approvals.
    pub(crate) fn writer(gateway: &Arc<Gateway>) -> Self {
        Self::with(gateway, &["read", "write"])
    }

    /// In this process, with these scopes.
    pub(crate) fn with(gateway: &Arc<Gateway>, scopes: &[&str]) -> Self {
        Self::who(gateway, scopes, &[])
    }

    /// In this process, with support for elicitations.
    pub(crate) fn answering(gateway: &Arc<Gateway>) -> Self {
        Self::who(gateway, &["read", "write", "approvals"], &[caps::ELICITATION])
    }

    /// In this process, with these scopes and capabilities.
    pub(crate) fn who(gateway: &Arc<Gateway>, scopes: &[&str], caps: &[&str]) -> Self {
        Self::at(connect(gateway, scopes, caps))
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorShape> {
        request(&self.surface, method, params).await
    }

    /// Sends a message. Returns the response.
    pub(crate) async fn send(&self, key: &str, run: &str, message: &str) -> Value {
        let params = json!({ "sessionKey": key, "message": message, "idempotencyKey": run });
        self.ask("chat.send", params).await.unwrap()
    }

    /// Sends a message in the usual session. Returns the request for approval that it leads to.
    pub(crate) async fn asked(&mut self, run: &str, message: &str) -> Value {
        self.send(KEY, run, message).await;
        self.hear_of("approval.requested").await
    }

    /// The pending requests for approval.
    pub(crate) async fn waiting(&self) -> Value {
        self.ask("approvals.list", json!({})).await.unwrap()["approvals"].take()
    }

    /// Answers a request for approval.
    pub(crate) async fn decide(&self, asked: &Value, decision: &str) {
        let answer = json!({ "id": asked["id"], "decision": decision });
        self.ask("approvals.respond", answer).await.unwrap();
    }

    /// The next event: name and payload.
    pub(crate) async fn hear(&mut self) -> (String, Value) {
        match timeout(LONG, self.events.next()).await.unwrap().unwrap() {
            Received::Event(event) => (
                event.event.to_string(),
                serde_json::from_str(event.json().unwrap().get()).unwrap(),
            ),
            Received::Lagged(missed) => panic!("{missed} events were missed"),
        }
    }

    /// The next event with this name.
    pub(crate) async fn hear_of(&mut self, name: &str) -> Value {
        loop {
            let (event, payload) = self.hear().await;
            if event == name {
                return payload;
            }
        }
    }

    /// All events of a run, up to its end.
    pub(crate) async fn hear_run(&mut self, run: &str) -> Vec<(String, Value)> {
        let mut heard = Vec::new();
        loop {
            let (name, payload) = self.hear().await;
            if payload["runId"] != run || !matches!(name.as_str(), "chat" | "agent") {
                continue;
            }
            let is_over = name == "chat" && is_end(&payload);
            heard.push((name, payload));
            if is_over {
                return heard;
            }
        }
    }

    /// The last event of a run.
    pub(crate) async fn end_of(&mut self, run: &str) -> Value {
        self.hear_run(run).await.pop().unwrap().1
    }

    /// The text of the final event of a run.
    pub(crate) async fn answer(&mut self, run: &str) -> String {
        let end = self.end_of(run).await;
        assert_eq!(end["state"], "final", "{end}");
        text(&end)
    }

    /// Sends a message in the usual session. Returns the answer.
    pub(crate) async fn say(&mut self, run: &str, message: &str) -> String {
        self.send(KEY, run, message).await;
        self.answer(run).await
    }

    /// Waits until a tool is called in a run.
    pub(crate) async fn until_called(&mut self, run: &str) -> Value {
        loop {
            let event = self.hear_of("agent").await;
            if event["runId"] == run && event["stream"] == "tool" {
                return event;
            }
        }
    }

    /// The events received so far, without waiting.
    pub(crate) fn heard_so_far(&mut self) -> Vec<(String, Value)> {
        let mut heard = Vec::new();
        while let Some(Some(Received::Event(event))) =
            futures_util::FutureExt::now_or_never(self.events.next())
        {
            let payload = serde_json::from_str(event.json().unwrap().get()).unwrap();
            heard.push((event.event.to_string(), payload));
        }
        heard
    }
}

pub(crate) fn is_end(chat: &Value) -> bool {
    matches!(chat["state"].as_str(), Some("final" | "aborted" | "error"))
}

/// The text of a final event, or of another event with a message.
pub(crate) fn text(event: &Value) -> String {
    event["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that no process of a server is left; its script has this tag.
pub(crate) async fn assert_nothing_left(tag: &'static str) {
    let left = tokio::task::spawn_blocking(move || {
        processes::wait_until_none(Duration::from_secs(60), || processes::mentioning(tag))
    });
    assert_eq!(left.await.unwrap(), Vec::<u32>::new());
}
