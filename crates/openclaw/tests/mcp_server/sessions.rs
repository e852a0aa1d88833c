//! Conversations: fresh ones, continued ones, and the tools around them.

use openclaw_testkit::Piece;
use serde_json::{Value, json};

use crate::client::Client;
use crate::model::{Model, last_message};

/// A model that repeats all user messages of its conversation.
fn remembering() -> Model {
    Model::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let said: Vec<&str> = messages
            .iter()
            .filter(|it| it["role"] == "user")
            .map(|it| it["content"].as_str().unwrap())
            .collect();
        vec![Piece::text(said.join("|"))]
    })
}

#[test]
fn without_a_key_nothing_is_remembered_and_with_one_everything_is() {
    let model = remembering();
    let (place, mut client) = model.client();
    let first = client.order(json!({ "message": "secret" }));
    let second = client.order(json!({ "message": "other" }));
    assert_eq!(second["text"], "other");
    assert_ne!(first["sessionKey"], second["sessionKey"]);
    let key = first["sessionKey"].as_str().unwrap();
    assert_eq!(client.order(json!({ "message": "b", "sessionKey": key }))["text"], "secret|b");
    assert_eq!(client.close(), 0);
    // Also after a restart.
    let mut client = Client::start(&place, &[]);
    assert_eq!(client.order(json!({ "message": "c", "sessionKey": key }))["text"], "secret|b|c");
}

#[test]
fn two_processes_take_turns_in_one_conversation() {
    let model = Model::start(|request| {
        let text = last_message(request).as_str().unwrap().to_owned();
        match text.as_str() {
            "first" => vec![Piece::Wait, Piece::text("one")],
            _ => {
                let messages = request["messages"].as_array().unwrap();
                let said = messages.iter().filter(|it| it["role"] != "system").count();
                vec![Piece::text(format!("after {said}"))]
            }
        }
    });
    let place = model.place();
    let (mut one, mut two) = (Client::start(&place, &[]), Client::start(&place, &[]));
    let first =
        one.send_call("order_openclaw", json!({ "message": "first", "sessionKey": "both" }));
    model.next();
    let second =
        two.send_call("order_openclaw", json!({ "message": "second", "sessionKey": "both" }));
    // The second process waits for the first one's turn; the other conversation does not.
    let other = two.order(json!({ "message": "x", "sessionKey": "alone" }));
    assert_eq!(other["text"], "after 1");
    model.release();
    assert_eq!(one.answer(first).unwrap()["structuredContent"]["text"], "one");
    assert_eq!(two.answer(second).unwrap()["structuredContent"]["text"], "after 3");
}

#[test]
fn conversations_are_listed_read_and_aborted() {
    let model = Model::start(|request| match last_message(request).as_str() {
        Some("wait") => vec![Piece::Wait],
        _ => vec![Piece::text("Paris")],
    });
    let (_place, mut client) = model.client();
    client.order(json!({ "message": "capital of France?", "sessionKey": "geo" }));
    client.order(json!({ "message": "and?", "sessionKey": "other" }));
    let list = client.call("list_openclaw_sessions", json!({ "limit": 5 }));
    let sessions = list["structuredContent"]["sessions"].as_array().unwrap().iter();
    let keys: Vec<&Value> = sessions.map(|it| &it["sessionKey"]).collect();
    assert_eq!(keys, ["other", "geo"]);
    assert!(list["structuredContent"]["sessions"][0]["updatedAt"].is_u64(), "{list}");
    for (search, count) in [("of FRANCE", 1), ("geo", 1), ("Spain", 0)] {
        let found = client.call("list_openclaw_sessions", json!({ "search": search }));
        let found = found["structuredContent"]["sessions"].as_array().unwrap().clone();
        assert_eq!(found.len(), count, "{search}: {found:?}");
    }
    let read = client.call("read_openclaw_session", json!({ "sessionKey": "geo" }));
    let messages = read["structuredContent"]["messages"].as_array().unwrap();
    let texts: Vec<&Value> = messages.iter().map(|it| &it["content"][0]["text"]).collect();
    assert_eq!(texts, ["capital of France?", "Paris"]);
    let error = client.failure("read_openclaw_session", json!({ "sessionKey": "nope" }));
    assert!(error.contains("no session `nope`"), "{error}");

    let id = client.send_call("order_openclaw", json!({ "message": "wait", "sessionKey": "geo" }));
    while *last_message(&model.next()) != "wait" {}
    let aborted = client.call("abort_openclaw_run", json!({ "sessionKey": "geo" }));
    assert_eq!(aborted["structuredContent"]["aborted"], true, "{aborted}");
    let result = client.answer(id).unwrap();
    assert_eq!(result["structuredContent"]["status"], "aborted", "{result}");
    let again = client.call("abort_openclaw_run", json!({ "sessionKey": "geo" }));
    assert_eq!(again["structuredContent"]["aborted"], false);
}

#[test]
fn a_running_gateway_is_used_and_its_loss_is_reported_and_made_up_for() {
    let model = Model::start(|request| match last_message(request).as_str() {
        Some("wait") => vec![Piece::Wait],
        _ => vec![Piece::text("from the gateway")],
    });
    let place = model.place();
    let mut gateway = place.gateway();
    let mut client = Client::start(&place, &[]);
    let answer = client.order(json!({ "message": "hello", "sessionKey": "shared" }));
    assert_eq!(answer["text"], "from the gateway");
    let id = client.send_call("order_openclaw", json!({ "message": "wait", "sessionKey": "x" }));
    while *last_message(&model.next()) != "wait" {}
    gateway.child.kill().unwrap();
    let result = client.answer(id).unwrap();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["structuredContent"]["sessionKey"], "x");
    assert!(result["structuredContent"]["error"].as_str().unwrap().contains("gateway"), "{result}");
    // The next message is answered without it.
    let answer = client.order(json!({ "message": "hello", "sessionKey": "shared" }));
    assert_eq!(answer["text"], "from the gateway");
    assert_eq!(client.close(), 0);
    place.assert_nothing_left();
}
