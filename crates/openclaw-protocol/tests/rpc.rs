//! The table of methods: names, parameters, results.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use openclaw_protocol::health::HealthParams;
use openclaw_protocol::mcp::{CallParams, ReadParams};
use openclaw_protocol::{Method, Request, Response, Rpc, Scope, rpc};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

#[test]
fn a_method_is_found_by_its_name_and_has_its_scope() {
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(*method));
    }
    assert_eq!(Method::from_name("mcp.levitate"), None);
    assert_eq!(rpc::McpCall::METHOD.scope(), Scope::Write);
    assert_eq!(rpc::ConfigReload::METHOD.scope(), Scope::Admin);
}

#[test]
fn parameters_come_through_json_as_they_were() {
    let params = CallParams { tool: "echo".to_owned(), raw: Some(true), ..CallParams::default() };
    let request = rpc::McpCall::request(params);
    assert_eq!(request.method(), Method::McpCall);
    let written = request.params().unwrap();
    assert_eq!(written.get(), r#"{"tool":"echo","raw":true}"#);
    let read = Request::read(Method::McpCall, Some(&written)).unwrap();
    assert!(matches!(read, Request::McpCall(it) if it.tool == "echo" && it.raw == Some(true)));
}

#[test]
fn parameters_of_another_method_are_refused_with_the_name_of_this_one() {
    let params = raw(&json!({ "tool": "echo" }));
    let refused = Request::read(Method::McpRead, Some(&params)).unwrap_err();
    assert!(refused.message.starts_with("invalid mcp.read params: missing field `server`"));
    let missing = Request::read(Method::McpRead, None).unwrap_err();
    assert!(missing.message.contains("missing field `server`"), "{}", missing.message);
}

#[test]
fn parameters_that_are_left_out_are_empty_and_where_it_matters_none() {
    let read = |method| Request::read(method, None).unwrap();
    assert!(matches!(read(Method::Health), Request::Health(HealthParams { probe: None, .. })));
    assert!(matches!(read(Method::SessionsSubscribe), Request::SessionsSubscribe(None)));
    let empty = raw(&json!({}));
    let with_list = Request::read(Method::SessionsSubscribe, Some(&empty)).unwrap();
    assert!(matches!(with_list, Request::SessionsSubscribe(Some(_))));
    let anything = raw(&json!([1, 2]));
    assert!(Request::read(Method::QuestionList, Some(&anything)).is_ok(), "it is not looked at");
}

#[test]
fn a_result_belongs_to_its_method() {
    let logs = raw(&json!({ "server": "demo", "lines": ["started"] }));
    let response = Response::read(Method::McpLogs, &logs).unwrap();
    assert_eq!(response.result().unwrap().get(), logs.get());
    assert!(rpc::McpTools::result(response.clone()).is_none());
    assert_eq!(rpc::McpLogs::result(response).unwrap().lines, ["started"]);
    assert!(Response::read(Method::McpCall, &logs).is_err());
    let request = rpc::McpRead::request(ReadParams::default());
    assert_eq!(request.method(), rpc::McpRead::METHOD);
}
