//! Remote servers: Streamable HTTP with and without sessions, and HTTP+SSE, detected or configured.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp_client::host::Host;
use openclaw_testkit::{FastMcp, Peers, RunningPeer, processes};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::support::{
    Expected, assert_result, by_hand, call, cancel, ready, servers, setup, until, within,
};

/// Starts servers concurrently, off the thread that runs the test.
async fn start<const N: usize>(starts: [fn(&Peers) -> RunningPeer; N]) -> Vec<RunningPeer> {
    let started = starts.map(|start| spawn_blocking(move || start(&Peers::find())));
    join_all(started).await.into_iter().map(Result::unwrap).collect()
}

/// Restarts them, each at its address.
async fn start_again(peers: Vec<RunningPeer>) -> Vec<RunningPeer> {
    let started = peers.into_iter().map(|mut peer| {
        spawn_blocking(move || {
            peer.start_again();
            peer
        })
    });
    join_all(started).await.into_iter().map(Result::unwrap).collect()
}

/// Kills the servers, waits until that is noticed, restarts them, and waits until all are ready
/// again.
async fn kill_all(
    tools: &AgentTools,
    expected: &[Expected],
    mut peers: Vec<RunningPeer>,
) -> Vec<RunningPeer> {
    let mut watched: Vec<_> =
        expected.iter().map(|it| tools.server(it.name).unwrap().snapshots()).collect();
    peers.iter_mut().for_each(RunningPeer::kill);
    let noticed = expected.iter().zip(&mut watched).map(|(expected, snapshots)| async move {
        // Without an open stream, only a call detects it.
        while snapshots.borrow().state == ServerState::Ready {
            let (arguments, _) = expected.call.clone();
            let failed = call(tools, &expected.name_of(expected.tools[0]), arguments).await;
            assert!(failed.is_error, "{}: {failed:?}", expected.name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    within(join_all(noticed)).await;
    let peers = start_again(peers).await;
    join_all(watched.iter_mut().map(|snapshots| until(snapshots, ServerState::Ready))).await;
    peers
}

/// Stops the servers, and asserts that no process is left.
async fn end(peers: Vec<RunningPeer>) {
    let groups: Vec<u32> = peers.iter().map(RunningPeer::pid).collect();
    spawn_blocking(move || drop(peers)).await.unwrap();
    for group in groups {
        assert_eq!(processes::in_group(group), Vec::<u32>::new());
    }
}

#[tokio::test]
async fn node_servers_are_reached_over_every_transport_and_reconnected() {
    let peers = start([
        Peers::everything_http,
        Peers::everything_sse,
        Peers::everything_2024_sse,
        Peers::everything_2024_sse,
    ])
    .await;
    let config = servers(&json!({
        "http": { "url": peers[0].url(), "timeout": 120_000 },
        "found": { "url": peers[1].url(), "timeout": 120_000 },
        "sse": { "url": peers[1].url(), "transport": "sse", "timeout": 120_000 },
        "old": { "url": peers[2].url(), "timeout": 120_000 },
        "oldsse": { "url": peers[3].url(), "transport": "sse", "timeout": 120_000 },
    }));
    let (fleet, tools) = ready(&config, setup(Host::default())).await;
    let new = |name| Expected {
        name,
        version: "2025-11-25",
        tools: &["echo", "get-sum", "trigger-long-running-operation"],
        call: (json!({ "message": "to and fro" }), "to and fro"),
    };
    let old = |name| Expected {
        name,
        version: "2024-11-05",
        tools: &["add", "longRunningOperation"],
        call: (json!({ "a": 40, "b": 2 }), "42"),
    };
    let expected = [new("http"), new("found"), new("sse"), old("old"), old("oldsse")];
    for expected in &expected {
        expected.assert_met(&tools).await;
    }
    let session = tools.server("http").unwrap().status().session_id;
    assert!(session.is_some());

    let long = json!({ "duration": 600, "steps": 600 });
    for expected in &expected {
        let tool = expected.tools.last().unwrap();
        cancel(&tools, expected.name, tool, long.clone()).await;
        expected.assert_answers(&tools).await;
        let document = tools.resources().into_iter().find(|of| of.server == expected.name).unwrap();
        assert_result(
            &tools.read(expected.name, &document.entry.uri, &by_hand()).await,
            expected.name,
            "",
        );
    }

    let peers = kill_all(&tools, &expected, peers).await;
    for expected in &expected {
        expected.assert_met(&tools).await;
    }
    assert_ne!(tools.server("http").unwrap().status().session_id, session);
    within(fleet.stop()).await;
    end(peers).await;
}

#[tokio::test]
async fn python_servers_are_reached_over_every_transport_and_reconnected() {
    let peers = start([
        |peers| peers.fastmcp_http(FastMcp::Http),
        |peers| peers.fastmcp_http(FastMcp::Stateless),
        |peers| peers.fastmcp_http(FastMcp::Sse),
    ])
    .await;
    let config = servers(&json!({
        "http": { "url": peers[0].url(), "timeout": 120_000 },
        "stateless": { "url": peers[1].url(), "timeout": 120_000 },
        "found": { "url": peers[2].url(), "timeout": 120_000 },
        "sse": { "url": peers[2].url(), "transport": "sse", "timeout": 120_000 },
    }));
    let (fleet, tools) = ready(&config, setup(Host::default())).await;
    let fast = |name, version| Expected {
        name,
        version,
        tools: &["echo", "ask", "fail", "slow"],
        call: (json!({ "text": "to and fro" }), "to and fro"),
    };
    let expected = [
        fast("http", "2026-07-28"),
        fast("stateless", "2026-07-28"),
        fast("found", "2025-11-25"),
        fast("sse", "2025-11-25"),
    ];
    for expected in &expected {
        expected.assert_met(&tools).await;
        cancel(&tools, expected.name, "slow", json!({ "steps": 600, "milliseconds": 1_000 })).await;
        expected.assert_answers(&tools).await;
        let read = tools.read(expected.name, "test://greeting", &by_hand()).await;
        assert_result(&read, expected.name, "Hello from FastMCP");
    }
    let peers = kill_all(&tools, &expected, peers).await;
    for expected in &expected {
        expected.assert_met(&tools).await;
    }
    within(fleet.stop()).await;
    end(peers).await;
}

/// A restart that was too brief to be noticed still loses the session.
#[tokio::test]
async fn a_server_restarted_between_two_calls_can_still_be_called() {
    let peers = start([Peers::everything_http, |peers| peers.fastmcp_http(FastMcp::Http)]).await;
    let config = servers(&json!({
        "node": { "url": peers[0].url(), "timeout": 120_000 },
        "python": { "url": peers[1].url(), "timeout": 120_000 },
    }));
    let (fleet, tools) = ready(&config, setup(Host::default())).await;
    let tools = Arc::clone(&tools);
    let peers = start_again(peers).await;
    // On a busy machine the restart may be noticed: then wait until it is ready again.
    for name in ["node", "python"] {
        until(&mut tools.server(name).unwrap().snapshots(), ServerState::Ready).await;
    }
    let echoed = call(&tools, "mcp_node_echo", json!({ "message": "still there" })).await;
    assert_result(&echoed, "node", "still there");
    let echoed = call(&tools, "mcp_python_echo", json!({ "text": "still there" })).await;
    assert_result(&echoed, "python", "still there");
    within(fleet.stop()).await;
    end(peers).await;
}
