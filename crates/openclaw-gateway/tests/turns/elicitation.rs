//! Elicitations of servers during a call reach connected clients that can answer (T11).

use std::sync::Arc;
use std::time::Duration;

use openclaw_gateway::Gateway;
use openclaw_protocol::client::Client;
use openclaw_protocol::connect::caps;
use openclaw_testkit::{Ask, Script};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::connect_options;
use crate::support::{KEY, LONG, Place, Someone, config, entry, eras, start, stop};

const CALL: &str = "/call mcp_x_echo {\"text\":\"hi\"}";
const REQUESTED: &str = "mcp.elicitation.requested";
const RESOLVED: &str = "mcp.elicitation.resolved";
const LIST: &str = "mcp.elicitation.list";
const RESPOND: &str = "mcp.elicitation.respond";

/// A server that asks during every call, and returns the answer it got.
fn asking(script: Script, ask: Ask) -> Place {
    Place::new(&config(&json!({ "x": entry(&script.ask(ask)) })))
}

/// Starts a gateway with such a server, and connects a caller that can answer.
async fn answering(script: Script, ask: Ask) -> (Place, Arc<Gateway>, Someone) {
    let place = asking(script, ask);
    let gateway = place.start().await;
    let user = Someone::answering(&gateway);
    (place, gateway, user)
}

/// Answers an elicitation with a name.
async fn accept(user: &Someone, asked: &Value) {
    let answer = json!({ "id": asked["id"], "action": "accept", "content": { "name": "Ada" } });
    user.ask(RESPOND, answer).await.unwrap();
}

/// Calls a method in the background.
fn calling(user: &Someone, method: &'static str, params: &Value) -> JoinHandle<String> {
    let (surface, params) = (Arc::clone(&user.surface), to_raw_value(params).unwrap());
    tokio::spawn(
        async move { surface.request(method, Some(params)).await.unwrap().get().to_owned() },
    )
}

#[tokio::test]
async fn who_can_answer_is_asked_and_the_server_gets_the_answer() {
    for script in eras() {
        let (_place, gateway, mut user) = answering(script, Ask::Elicitation).await;
        for (nth, (answer, expected)) in [
            (
                json!({ "action": "accept", "content": { "name": "Ada" } }),
                r#""action":"accept","content":{"name":"Ada"}"#,
            ),
            (json!({ "action": "decline" }), r#""action":"decline""#),
            (json!({ "action": "cancel" }), r#""action":"cancel""#),
        ]
        .into_iter()
        .enumerate()
        {
            let run = format!("r{nth}");
            user.send(KEY, &run, CALL).await;
            let asked = user.hear_of(REQUESTED).await;
            assert_eq!(asked["server"], "x");
            assert_eq!(asked["mode"], "form");
            assert_eq!(asked["message"], "What is your name?");
            assert_eq!(asked["sessionKeys"], json!([KEY]));
            assert_eq!(asked["requestedSchema"]["required"], json!(["name"]));
            let mut params = answer.clone();
            params["id"] = asked["id"].clone();
            let answered = user.ask(RESPOND, params.clone()).await.unwrap();
            assert_eq!(answered["ok"], true);
            let resolved = user.hear_of(RESOLVED).await;
            let expected_event =
                json!({ "id": asked["id"], "action": answer["action"], "reason": "user" });
            assert_eq!(resolved, expected_event);
            let said = user.answer(&run).await;
            assert!(said.contains(expected), "{said}");
            let error = user.ask(RESPOND, params).await.unwrap_err();
            assert!(
                error.message.contains("no pending request with this id"),
                "it is already answered: {error}"
            );
        }
        stop(&gateway).await;
    }
}

#[tokio::test]
async fn an_invalid_answer_is_rejected_and_the_question_stays_open() {
    let (_place, gateway, mut user) = answering(Script::new().legacy(), Ask::Elicitation).await;
    user.send(KEY, "r", CALL).await;
    let asked = user.hear_of(REQUESTED).await;
    let with = |action: &str, content: Option<Value>| {
        let mut params = json!({ "id": asked["id"], "action": action });
        if let Some(content) = content {
            params["content"] = content;
        }
        params
    };
    for wrong in [
        with("accept", None),
        with("accept", Some(json!({ "name": 5 }))),
        with("accept", Some(json!("Ada"))),
        with("decline", Some(json!({ "name": "Ada" }))),
        with("perhaps", None),
    ] {
        let error = user.ask(RESPOND, wrong.clone()).await.unwrap_err();
        assert_eq!(error.code.as_str(), "INVALID_REQUEST", "{wrong}: {error}");
    }
    user.ask(RESPOND, with("accept", Some(json!({ "name": "Ada" })))).await.unwrap();
    assert!(user.answer("r").await.contains("Ada"));
    stop(&gateway).await;
}

#[tokio::test]
async fn a_url_is_passed_on_unchanged_and_accepted_without_content() {
    for script in eras() {
        let (_place, gateway, mut user) = answering(script, Ask::ElicitationUrl).await;
        user.send(KEY, "r", CALL).await;
        let asked = user.hear_of(REQUESTED).await;
        assert_eq!(asked["mode"], "url");
        assert_eq!(asked["url"], "https://example.com/login?state=1");
        let mut answer = json!({ "id": asked["id"], "action": "accept", "content": {} });
        assert!(user.ask(RESPOND, answer.clone()).await.is_err());
        answer.as_object_mut().unwrap().remove("content");
        user.ask(RESPOND, answer).await.unwrap();
        let said = user.answer("r").await;
        assert!(said.contains(r#""action":"accept""#), "{said}");
        stop(&gateway).await;
    }
}

#[tokio::test]
async fn without_a_client_that_can_answer_it_is_declined_at_once() {
    for script in eras() {
        let place = asking(script, Ask::Elicitation);
        let gateway = place.start().await;
        // An approver without the capability; a client with the capability that is not an approver;
        // a client in another session.
        let mut silent = Someone::new(&gateway);
        let mut writer = Someone::who(&gateway, &["read", "write"], &[caps::ELICITATION]);
        let mut elsewhere = Someone::answering(&gateway);
        for someone in [&silent, &writer] {
            someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
        }
        let said = silent.say("r", CALL).await;
        assert!(said.contains(r#""action":"decline""#), "{said}");
        for someone in [&mut silent, &mut writer, &mut elsewhere] {
            let heard = someone.heard_so_far();
            assert!(!heard.iter().any(|(name, _)| name.contains("elicitation")), "{heard:?}");
        }
        let params = json!({ "id": "x", "action": "decline" });
        let error = writer.ask(RESPOND, params).await.unwrap_err();
        assert!(error.message.contains("operator.approvals"), "{error}");
        stop(&gateway).await;
    }
}

#[tokio::test]
async fn a_client_that_shows_all_questions_answers_for_turns_of_others() {
    let place = asking(Script::new().legacy(), Ask::Elicitation);
    let gateway = place.start().await;
    let caps = [caps::ELICITATION, caps::ALL_QUESTIONS];
    let mut watcher = Someone::who(&gateway, &["read", "write", "approvals"], &caps);
    let mut script = Someone::writer(&gateway);
    script.send(KEY, "r", CALL).await;
    let asked = watcher.hear_of(REQUESTED).await;
    assert_eq!(asked["sessionKeys"], json!([KEY]));
    accept(&watcher, &asked).await;
    assert!(script.answer("r").await.contains("Ada"));
    // A question during a direct call of another client is that client's alone.
    let mut other = Someone::answering(&gateway);
    let args = json!({ "tool": "mcp_x_echo", "args": { "text": "hi" }, "timeoutMs": 60_000 });
    let calling = calling(&other, "mcp.call", &args);
    let asked = other.hear_of(REQUESTED).await;
    other.ask(RESPOND, json!({ "id": asked["id"], "action": "decline" })).await.unwrap();
    timeout(LONG, calling).await.unwrap().unwrap();
    let heard = watcher.heard_so_far();
    assert!(!heard.iter().any(|(name, _)| name == REQUESTED), "{heard:?}");
    stop(&gateway).await;
}

#[tokio::test]
async fn when_all_asked_clients_have_left_the_call_continues() {
    for script in eras() {
        let place = asking(script, Ask::Elicitation);
        let (gateway, mut watcher) = start(&place).await;
        let mut first = Someone::answering(&gateway);
        let mut second = Someone::answering(&gateway);
        for someone in [&first, &second] {
            someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
        }
        watcher.send(KEY, "r", CALL).await;
        let asked = first.hear_of(REQUESTED).await;
        assert_eq!(second.hear_of(REQUESTED).await["id"], asked["id"]);
        drop(first);
        let heard = second.heard_so_far();
        assert!(!heard.iter().any(|(name, _)| name == RESOLVED), "one is left: {heard:?}");
        drop(second);
        let said = watcher.answer("r").await;
        assert!(said.contains(r#""action":"cancel""#), "{said}");
        stop(&gateway).await;
    }
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_turn_is_aborted() {
    for script in eras() {
        let (_place, gateway, mut user) = answering(script, Ask::Elicitation).await;
        user.send(KEY, "r", CALL).await;
        let asked = user.hear_of(REQUESTED).await;
        user.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
        let resolved = user.hear_of(RESOLVED).await;
        assert_eq!(resolved, json!({ "id": asked["id"], "reason": "cancelled" }));
        stop(&gateway).await;
    }
}

#[tokio::test]
async fn a_client_that_calls_a_tool_directly_in_a_session_is_asked_too() {
    let (_place, gateway, mut user) = answering(Script::new().legacy(), Ask::Elicitation).await;
    let args = json!({ "name": "mcp_x_echo", "args": { "text": "hi" }, "sessionKey": KEY });
    let calling = calling(&user, "tools.invoke", &args);
    let asked = user.hear_of(REQUESTED).await;
    accept(&user, &asked).await;
    let answer = timeout(LONG, calling).await.unwrap().unwrap();
    assert!(answer.contains("Ada"), "{answer}");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_client_on_a_socket_is_asked_and_its_disconnect_cancels_the_question() {
    let place = asking(Script::new().legacy(), Ask::Elicitation);
    let served = place.serve(None).await;
    let mut options = connect_options(&served);
    options.caps.push(caps::ELICITATION.to_owned());
    let client = Client::connect(&options).await.unwrap();
    assert!(client.has_method(RESPOND));
    assert!(client.hello().features.events.iter().any(|event| event == REQUESTED));
    let mut user = Someone::remote(client);
    user.send(KEY, "r1", CALL).await;
    let asked = user.hear_of(REQUESTED).await;
    accept(&user, &asked).await;
    assert_eq!(user.hear_of(RESOLVED).await["reason"], "user");
    assert!(user.answer("r1").await.contains("Ada"));
    // The connection closes during the next question.
    let mut watcher = Someone::new(&served.gateway);
    watcher.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    user.send(KEY, "r2", CALL).await;
    user.hear_of(REQUESTED).await;
    drop(user);
    let said = watcher.answer("r2").await;
    assert!(said.contains(r#""action":"cancel""#), "{said}");
    timeout(LONG, served.stop(Duration::ZERO)).await.unwrap();
}

#[tokio::test]
async fn a_client_that_connects_later_sees_and_answers_a_pending_question() {
    let (_place, gateway, mut user) = answering(Script::new().legacy(), Ask::Elicitation).await;
    user.send(KEY, "r", CALL).await;
    let asked = user.hear_of(REQUESTED).await;
    let mut later = Someone::answering(&gateway);
    let unknown = later.ask(LIST, json!({})).await.unwrap();
    assert_eq!(unknown["elicitations"], json!([]), "it does not follow the session");
    later.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let listed = later.ask(LIST, json!({})).await.unwrap();
    assert_eq!(listed["elicitations"], json!([asked]));
    accept(&later, &asked).await;
    assert_eq!(later.hear_of(RESOLVED).await["id"], asked["id"]);
    assert!(user.answer("r").await.contains("Ada"));
    let listed = later.ask(LIST, json!({})).await.unwrap();
    assert_eq!(listed["elicitations"], json!([]));
    stop(&gateway).await;
}
