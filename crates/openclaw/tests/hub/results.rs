//! Results, errors and limits of calls.

use openclaw_testkit::{RpcError, Script};
use serde_json::json;

use crate::place::{Place, text};

#[test]
fn texts_are_wrapped_unless_the_client_does_without() {
    let place = Place::with("one", &Script::new());
    let answer = place.hub(&[]).call("echo", &json!({ "text": "a\n\"b\" <|im_start|>" }));
    let wrapped = text(&answer);
    assert!(wrapped.starts_with("This is output from MCP server 'one'."), "{wrapped}");
    assert!(wrapped.contains("---\na\n\"b\" [removed token]\n<<<END_EXTERNAL"), "{wrapped}");
    let answer =
        place.hub(&["--no-wrap"]).call("echo", &json!({ "text": "a\n\"b\" <|im_start|>" }));
    assert_eq!(text(&answer), "a\n\"b\" <|im_start|>");
}

#[test]
fn the_error_of_a_server_keeps_its_code() {
    let error =
        RpcError { code: -32042, message: "obey".to_owned(), data: Some(json!({ "a": 1 })) };
    let place = Place::with("one", &Script::new().call_error(error));
    let answer = place.hub(&["--no-wrap"]).call("echo", &json!({ "text": "x" }));
    assert_eq!(answer["error"], json!({ "code": -32042, "message": "obey", "data": { "a": 1 } }));
    let answer = place.hub(&[]).call("echo", &json!({ "text": "x" }));
    assert_eq!(answer["error"]["code"], -32042);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("---\nobey\n<<<END"), "{answer}");
}

#[test]
fn arguments_are_checked_before_the_server_sees_them() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.hub(&[]);
    let answer = hub.call("echo", &json!({ "text": 7 }));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer).contains("Invalid arguments"), "{answer}");
    let answer = hub.call("unheard-of", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn the_rate_limit_of_an_agent_does_not_apply_but_that_of_the_hub_does() {
    let mut place = Place::with("one", &Script::new());
    place.config["mcp"]["servers"]["one"]["rateLimit"] = json!(3);
    let mut hub = place.hub(&["--no-wrap"]);
    for number in 0..20 {
        let answer = hub.call("echo", &json!({ "text": number.to_string() }));
        assert_eq!(text(&answer), number.to_string());
    }
    place.config["gateway"]["hubRateLimit"] = json!(3);
    let mut hub = place.hub(&["--no-wrap"]);
    let answers: Vec<_> = (0..5).map(|_| hub.call("echo", &json!({ "text": "x" }))).collect();
    let refused = answers.iter().filter(|it| it["result"]["isError"] == true).count();
    assert_eq!(refused, 2, "{answers:?}");
}

#[test]
fn every_call_is_in_the_audit_log_with_the_name_of_the_client() {
    let place = Place::with("one", &Script::new());
    let mut hub = place.hub(&[]);
    hub.call("echo", &json!({ "text": "x" }));
    hub.call("unheard-of", &json!({}));
    hub.close();
    assert!(hub.wait().is_some_and(|status| status.success()));
    let audit = place.audit();
    let tools: Vec<_> = audit.iter().map(|line| line["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["mcp_one_echo", "unheard-of"], "{audit:?}");
    assert_eq!(audit[0]["who"], "mcp client: testkit");
    assert_eq!((&audit[0]["agent"], &audit[0]["outcome"]), (&json!("main"), &json!("ok")));
}

#[test]
fn a_result_of_ten_megabytes_goes_through() {
    let place = Place::with("one", &Script::new());
    let long = "x".repeat(10_000_000);
    let answer = place.hub(&["--no-wrap"]).call("echo", &json!({ "text": long }));
    assert_eq!(text(&answer).len(), long.len());
}
