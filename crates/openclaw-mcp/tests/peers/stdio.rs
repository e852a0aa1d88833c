//! Local servers: one fleet of Node servers, one of Python servers.

use std::collections::BTreeMap;
use std::process::Command;

use futures_util::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp_client::host::Host;
use openclaw_testkit::Peers;
use serde_json::json;

use crate::support::{
    Expected, Yard, assert_result, by_hand, cancel, ready, servers, setup, until, within,
};

/// Kills every server, and waits until all are ready again.
async fn kill_all(tools: &AgentTools, expected: &[Expected]) {
    join_all(expected.iter().map(|expected| async {
        let server = tools.server(expected.name).unwrap();
        let mut snapshots = server.snapshots();
        let pid = server.status().pid.unwrap();
        kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
        until(&mut snapshots, ServerState::Restarting).await;
        until(&mut snapshots, ServerState::Ready).await;
        assert_ne!(server.status().pid, Some(pid));
    }))
    .await;
}

#[tokio::test]
async fn node_servers_are_used_cancelled_killed_and_restarted() {
    let (peers, yard) = (Peers::find(), Yard::new());
    let folder = yard.folder("files");
    std::fs::write(folder.join("note.txt"), "a note for the filesystem server").unwrap();
    let entity = json!({
        "type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes engines"],
    });
    std::fs::write(yard.path("memory.json"), entity.to_string()).unwrap();
    let config = servers(&json!({
        "everything": yard.entry("everything", &peers.everything()),
        "old": yard.entry("old", &peers.everything_2024()),
        "files": yard.entry("files", &peers.filesystem(&folder)),
        "memory": yard.entry("memory", &peers.memory(&yard.path("memory.json"))),
    }));
    let (fleet, tools) = ready(&config, setup(Host::default())).await;
    let expected = [
        Expected {
            name: "everything",
            version: "2025-11-25",
            tools: &["echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"],
            call: (json!({ "message": "to and fro" }), "to and fro"),
        },
        Expected {
            name: "old",
            version: "2024-11-05",
            tools: &["add", "echo", "longRunningOperation"],
            call: (json!({ "a": 40, "b": 2 }), "42"),
        },
        Expected {
            name: "files",
            version: "2025-11-25",
            tools: &["read_text_file", "write_file", "list_directory"],
            call: (json!({ "path": folder.join("note.txt") }), "a note for the filesystem server"),
        },
        Expected {
            name: "memory",
            version: "2025-11-25",
            tools: &["read_graph", "create_entities"],
            call: (json!({}), "likes engines"),
        },
    ];
    for expected in &expected {
        expected.assert_met(&tools).await;
    }

    let document = tools.resources().into_iter().find(|of| of.server == "everything").unwrap();
    assert_result(
        &tools.read("everything", &document.entry.uri, &by_hand()).await,
        "everything",
        "",
    );
    let pages = tools.resources().iter().filter(|of| of.server == "old").count();
    assert_eq!(pages, 100, "from ten pages");
    let read = tools.read("old", "test://static/resource/99", &by_hand()).await;
    assert_result(&read, "old", "This is a plaintext resource");
    assert!(tools.templates().iter().any(|of| of.server == "everything"));
    let arguments = BTreeMap::from([("city".to_owned(), "Oslo".to_owned())]);
    let prompt = tools.prompt("everything", "args-prompt", &arguments, &by_hand()).await;
    assert_result(&prompt, "everything", "weather in Oslo");
    let prompts = tools.prompts();
    assert!(prompts.iter().any(|prompt| prompt.command.as_str() == "mcp__old__simple_prompt"));

    let long = json!({ "duration": 600, "steps": 600 });
    cancel(&tools, "everything", "trigger-long-running-operation", long.clone()).await;
    cancel(&tools, "old", "longRunningOperation", long).await;
    for expected in &expected {
        expected.assert_answers(&tools).await;
    }

    kill_all(&tools, &expected).await;
    for expected in &expected {
        expected.assert_met(&tools).await;
        assert_eq!(yard.started(expected.name).len(), 2, "{}: once, and once again", expected.name);
    }
    within(fleet.stop()).await;
    yard.assert_nothing_left(&["everything", "old", "files", "memory"]);
}

#[tokio::test]
async fn python_servers_are_used_cancelled_killed_and_restarted_and_their_era_is_cached() {
    let (peers, yard) = (Peers::find(), Yard::new());
    let repository = yard.folder("repository");
    let made = Command::new("git").args(["init", "--quiet"]).arg(&repository).status();
    assert!(made.unwrap().success());
    std::fs::write(repository.join("new.txt"), "new").unwrap();
    let config = servers(&json!({
        "time": yard.entry("time", &peers.time()),
        "git": yard.entry("git", &peers.git(&repository)),
        "fast": yard.entry("fast", &peers.fastmcp()),
    }));
    let with_memory = || {
        let mut setup = setup(Host::default());
        setup.folders = StorageFolders { catalogue: Some(yard.folder("catalogue")), logs: None };
        setup
    };
    let (fleet, tools) = ready(&config, with_memory()).await;
    let expected = [
        Expected {
            name: "time",
            version: "2026-07-28",
            tools: &["convert_time", "get_current_time"],
            call: (
                json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "UTC" }),
                "12:00",
            ),
        },
        Expected {
            name: "git",
            version: "2026-07-28",
            tools: &["git_status", "git_log", "git_commit"],
            call: (json!({ "repo_path": repository }), "new.txt"),
        },
        Expected {
            name: "fast",
            version: "2026-07-28",
            tools: &["echo", "slow", "fail"],
            call: (json!({ "text": "to and fro" }), "to and fro"),
        },
    ];
    for expected in &expected {
        expected.assert_met(&tools).await;
        let starts = yard.started(expected.name).len();
        assert!(starts <= 2, "{} started {starts} times", expected.name);
    }
    let read = tools.read("fast", "test://greeting", &by_hand()).await;
    assert_result(&read, "fast", "Hello from FastMCP");
    assert!(tools.templates().iter().any(|of| of.entry.uri_template == "test://square/{number}"));
    assert_result(&tools.read("fast", "test://square/12", &by_hand()).await, "fast", "144");
    let arguments = BTreeMap::from([("code".to_owned(), "let x = 1;".to_owned())]);
    assert_result(
        &tools.prompt("fast", "review", &arguments, &by_hand()).await,
        "fast",
        "let x = 1;",
    );

    let long = json!({ "steps": 600, "milliseconds": 1_000 });
    cancel(&tools, "fast", "slow", long).await;
    expected[2].assert_answers(&tools).await;

    let before: Vec<usize> = expected.iter().map(|it| yard.started(it.name).len()).collect();
    kill_all(&tools, &expected).await;
    for (expected, before) in expected.iter().zip(before) {
        expected.assert_met(&tools).await;
        assert_eq!(yard.started(expected.name).len(), before + 1, "{}", expected.name);
    }
    within(fleet.stop()).await;

    let before: Vec<usize> = expected.iter().map(|it| yard.started(it.name).len()).collect();
    let (fleet, tools) = ready(&config, with_memory()).await;
    for (expected, before) in expected.iter().zip(before) {
        expected.assert_met(&tools).await;
        assert_eq!(yard.started(expected.name).len(), before + 1, "{}", expected.name);
    }
    within(fleet.stop()).await;
    yard.assert_nothing_left(&["time", "git", "fast"]);
}
