//! What a session holds is restored after every kind of reconnect.

use std::sync::Arc;

use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::server::live::ResourceVersion;
use openclaw_testkit::{Fault, On, Recording, Script, TestServer};
use serde_json::{Value, json};

use crate::common::until;
use crate::support::{call, entry_with, ready, servers, tools};

const URI: &str = "test://greeting";

/// A fleet with one server, one of whose resources is part of every session.
struct Watched {
    fleet: Arc<Fleet>,
    recording: Recording,
    _folder: tempfile::TempDir,
}

impl Watched {
    async fn start(script: Script, entry: impl FnOnce(&Script) -> Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("record"));
        let script = script.legacy().subscriptions().record(recording.path());
        let (fleet, _) = ready(&servers(json!({ "x": entry(&script) }))).await;
        Self { fleet, recording, _folder: folder }
    }

    fn subscriptions(&self) -> usize {
        self.recording.of_method("resources/subscribe").len()
    }

    /// The version of the resource; `None` if changes are not reported.
    fn version(&self) -> Option<ResourceVersion> {
        let snapshots = tools(&self.fleet).server("x").unwrap().snapshots();
        let connection = snapshots.borrow().connection.clone();
        connection?.edition_of(URI)
    }

    /// Waits until the resource has another version than `before`.
    async fn changed_since(&self, before: Option<ResourceVersion>) -> Option<ResourceVersion> {
        until(|| self.version().is_some_and(|now| Some(now) != before)).await;
        self.version()
    }

    /// Calls a tool, which changes the resource.
    async fn touch(&self) {
        call(&tools(&self.fleet), "mcp_x_echo", json!({ "text": "x" })).await;
    }
}

fn remote(server: &openclaw_testkit::HttpServer) -> Value {
    json!({ "url": server.url(), "resources": [URI], "timeout": 60_000 })
}

#[tokio::test]
async fn a_renewed_session_is_subscribed_to_the_same_resources() {
    let mut server = None;
    let script = Script::new().session_lost_after_calls(1);
    let watched =
        Watched::start(script, |script| remote(server.insert(TestServer::http(script)))).await;
    assert_eq!(watched.subscriptions(), 1);
    let first = watched.version();
    watched.touch().await;
    let before = watched.changed_since(first).await;
    // The server has lost the session: this call renews it, and changes nothing for the client,
    // because the new session is not subscribed yet.
    watched.touch().await;
    until(|| watched.subscriptions() == 2).await;
    let renewed = watched.changed_since(before).await;
    watched.touch().await;
    watched.changed_since(renewed).await;
    let sessions: Vec<Value> = watched
        .recording
        .http("POST")
        .into_iter()
        .filter(|post| post["body"]["method"] == "resources/subscribe")
        .map(|post| post["headers"]["mcp-session-id"].clone())
        .collect();
    assert_ne!(sessions[0], sessions[1]);
    watched.fleet.stop().await;
}

#[tokio::test]
async fn a_subscription_that_has_ended_is_forgotten_unless_the_configuration_names_it() {
    let resources = json!({ "resources": [URI] });
    let script = Script::new().crash_after_calls(1);
    let watched = Watched::start(script, |script| entry_with(script, resources)).await;
    let server = Arc::clone(tools(&watched.fleet).server("x").unwrap());
    for uri in ["test://a", "test://b", URI] {
        server.follow(uri).await;
    }
    assert_eq!(watched.subscriptions(), 3, "one is subscribed to already");
    for uri in ["test://a", "test://b", URI, "test://unknown"] {
        server.unfollow(uri);
    }
    let first = watched.version();
    watched.touch().await;
    // It has restarted.
    until(|| watched.subscriptions() == 4).await;
    watched.changed_since(first).await;
    assert_eq!(watched.subscriptions(), 4);
    watched.fleet.stop().await;
}

#[tokio::test]
async fn what_was_missed_while_the_stream_was_closed_is_read_again() {
    let ended = Fault::status(200).header("content-type", "text/event-stream").body(": bye\n\n");
    let mut server = None;
    let script = Script::new().fault(ended.on(On::Get).times(1));
    let watched =
        Watched::start(script, |script| remote(server.insert(TestServer::http(script)))).await;
    let lists = || watched.recording.of_method("tools/list").len();
    until(|| watched.subscriptions() == 2 && lists() == 2).await;
    watched.changed_since(None).await;
    watched.fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_restarts_is_subscribed_to_again_on_every_transport() {
    let resources = json!({ "resources": [URI] });
    let script = Script::new().crash_after_calls(1);
    let watched = Watched::start(script, |script| entry_with(script, resources)).await;
    let first = watched.version();
    watched.touch().await;
    until(|| watched.subscriptions() == 2).await;
    watched.changed_since(first).await;
    watched.fleet.stop().await;

    for script in [Script::new(), Script::new().legacy_sse_only()] {
        let (mut server, mut written) = (None, None);
        let watched = Watched::start(script, |script| {
            written = Some(script.clone());
            remote(server.insert(TestServer::http(script)))
        })
        .await;
        let (server, first) = (server.unwrap(), watched.version());
        let port = server.port();
        server.kill();
        let _again = TestServer::http_on(port, &written.unwrap());
        until(|| watched.subscriptions() == 2).await;
        watched.changed_since(first).await;
        watched.fleet.stop().await;
    }
}
