//! It ends with its client, and leaves nothing behind.

use nix::sys::signal::Signal;
use openclaw_testkit::Piece;
use serde_json::json;

use crate::client::Client;
use crate::common::place::Place;
use crate::common::signal;
use crate::model::{Model, last_message};

#[test]
fn it_exits_when_its_input_closes_and_ends_its_servers() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    client.order(json!({ "message": "add 2 and 3" }));
    assert_eq!(client.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn it_exits_without_a_handshake() {
    let place = Place::new();
    assert_eq!(Client::spawn(&place, &[]).close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_client_that_disappears_during_a_call_ends_it_and_the_run() {
    let model = Model::start(|_| vec![Piece::text("half"), Piece::Wait]);
    let (place, mut client) = model.client();
    client.send_call("order_openclaw", json!({ "message": "x" }));
    model.next();
    assert_eq!(client.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn signals_end_it() {
    for sent in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let model = Model::start(|_| vec![Piece::Wait]);
        let (place, mut client) = model.client();
        client.send_call("order_openclaw", json!({ "message": "x" }));
        model.next();
        signal(client.child.id(), sent);
        client.exit();
        place.assert_nothing_left();
    }
}

#[test]
fn a_signal_aborts_the_run_in_the_gateway() {
    let model = Model::start(|request| match last_message(request).as_str() {
        Some("wait") => vec![Piece::Wait],
        _ => vec![Piece::text("done")],
    });
    let place = model.place();
    let _gateway = place.gateway();
    for sent in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut client = Client::start(&place, &[]);
        client.send_call("order_openclaw", json!({ "message": "wait", "sessionKey": "one" }));
        model.next();
        signal(client.child.id(), sent);
        client.exit();
        // The conversation is free again: its next message is not queued behind a run that waits.
        let mut next = Client::start(&place, &[]);
        let result = next.order(json!({ "message": "go on", "sessionKey": "one" }));
        assert_eq!(result["text"], "done", "{sent}: {result}");
        model.next();
    }
}

#[test]
fn the_synonym_serves_too() {
    let place = Place::new();
    let mut command = place.command(&["mcp", "serve"]);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_wrong_gateway_is_reported_in_every_answer() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--gateway", "ws://127.0.0.1:9"]);
    let error = client.failure("order_openclaw", json!({ "message": "x" }));
    assert!(error.contains("no connection to the gateway"), "{error}");
    assert_eq!(client.close(), 3);
}
