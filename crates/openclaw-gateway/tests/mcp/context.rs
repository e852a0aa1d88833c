//! Resources that are part of every session: read when necessary, without delaying turns.

use std::path::Path;
use std::time::Duration;

use openclaw_testkit::Script;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{LONG, Place, ask, caller, config, entry, running, say, stop};

const NOTEBOOK: &str = include_str!("notebook.py");

fn readings(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn a_resource_is_read_again_when_its_server_says_that_it_has_changed_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("readings");
    let notebook = json!({
        "command": "python3",
        "args": ["-c", NOTEBOOK, file.to_str().unwrap()],
        "resources": ["note://today"],
        "timeout": 60_000,
    });
    let (_place, gateway, me) = running(&config(&json!({ "notebook": notebook }))).await;
    say(&me, "hello").await;
    // No turn waits long for it: on a busy machine it may be read after the first turn.
    let read = async {
        while readings(&file) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, read).await.unwrap();
    for _ in 0..2 {
        say(&me, "hello").await;
        assert_eq!(readings(&file), 1);
    }
    ask(&me, "mcp.call", json!({ "server": "notebook", "tool": "touch" })).await;
    // The notification and the response may be handled in either order.
    for _ in 0..100 {
        say(&me, "hello").await;
        if readings(&file) > 1 {
            break;
        }
    }
    assert_eq!(readings(&file), 2);
    stop(gateway).await;
}

#[tokio::test]
async fn an_unavailable_server_does_not_delay_turns() {
    let mut hangs = entry(&Script::new().initialize_silence());
    hangs["resources"] = json!(["test://never"]);
    let broken = json!({ "command": "/nowhere/at/all", "resources": ["x:y"], "maxRestarts": 0 });
    let place = Place::new(&config(&json!({ "hangs": hangs, "broken": broken })));
    // Does not wait for the servers: one of them never starts.
    let gateway = openclaw_gateway::Gateway::start(place.setup()).await.unwrap();
    let me = caller(&gateway);
    for _ in 0..3 {
        assert!(!say(&me, "hello").await.is_empty());
    }
    stop(gateway).await;
}
