//! Starting a gateway.

use std::time::Duration;

use openclaw_gateway::ServeError;
use openclaw_gateway::serve::serve;
use openclaw_gateway::state;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Place, config};

/// A server that runs this script in the state folder and exits.
fn config_with_server(place: &Place, script: &str) -> serde_json::Value {
    let state = place.path().join("state");
    config(&json!({ "x": {
        "command": "sh", "args": ["-c", script], "cwd": state, "restartOnCrash": false,
    } }))
}

#[tokio::test]
async fn it_listens_before_its_servers_are_started() {
    let place = Place::new(&json!({}));
    place.write(&config_with_server(&place, "cp gateway.json seen.json"));
    let served = place.serve(None).await;
    let seen = std::fs::read_to_string(served.state().join("seen.json")).unwrap();
    assert!(seen.contains(&state::find(served.state()).unwrap().url), "{seen}");
    served.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_taken_port_is_detected_before_a_server_is_started() {
    let place = Place::new(&json!({}));
    place.write(&config_with_server(&place, "touch started"));
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = serve(place.setup(), None, Some(port)).await.unwrap_err();
    assert!(matches!(refused, ServeError::Listen(_)), "{refused}");
    let state = place.path().join("state");
    assert!(!state.join("started").exists());
    assert!(state::find(&state).is_none());
    // The directory is free for the next gateway.
    serve(place.setup(), None, Some(0)).await.unwrap().stop(Duration::ZERO).await;
}
