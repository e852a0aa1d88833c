//! Our types against the published schema of gateway protocol 4 (npm `@openclaw/gateway-protocol`).
//!
//! Each definition yields two samples, one with every property and one with the required ones.
//! Parameters must round-trip unchanged; results must be readable, and what we serialize must be
//! valid.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use openclaw_protocol::agent_event::AgentEvent;
use openclaw_protocol::{
    ErrorCode, ErrorShape, Event, Method, Scope, Shutdown, Tick, agents, chat, config, connect,
    frame, models, sessions, tools,
};
use openclaw_testkit::GatewaySchema;
use openclaw_trace::SpanContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Checks of our types against the published schema.
trait Samples {
    /// Checks a type of parameters: it round-trips, and unknown fields are ignored.
    fn sent<T: Serialize + DeserializeOwned>(&self, name: &str);

    /// Checks a type of results: it can be read, and what we serialize is valid.
    fn said<T: Serialize + DeserializeOwned>(&self, name: &str);
}

impl Samples for GatewaySchema {
    #[track_caller]
    fn sent<T: Serialize + DeserializeOwned>(&self, name: &str) {
        for is_full in [true, false] {
            let sample = sample(self.definition(name), is_full);
            let ours: T = serde_json::from_value(sample.clone())
                .unwrap_or_else(|error| panic!("{name}: {error}\n{sample:#}"));
            let written = serde_json::to_value(&ours).unwrap();
            assert_eq!(written, sample, "{name}");
            self.check(name, &written);
            let mut strange = sample;
            strange["surprise"] = json!(1);
            assert!(serde_json::from_value::<T>(strange).is_ok(), "{name} rejects unknown fields");
        }
    }

    #[track_caller]
    fn said<T: Serialize + DeserializeOwned>(&self, name: &str) {
        for is_full in [true, false] {
            let mut sample = sample(self.definition(name), is_full);
            sample["somethingNewer"] = json!([1]);
            let ours: T = serde_json::from_value(sample.clone())
                .unwrap_or_else(|error| panic!("{name}: {error}\n{sample:#}"));
            self.check(name, &serde_json::to_value(&ours).unwrap());
        }
    }
}

/// Builds a value that matches a schema.
fn sample(schema: &Value, is_full: bool) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum") {
        return values[0].clone();
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(variants) = schema.get(several) {
            return sample(&variants[0], is_full);
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") if schema.get("pattern").is_some() => json!("a".repeat(64)),
        Some("string") => json!("text"),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(7)),
        Some("number") => json!(1.5),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => match schema.get("items") {
            Some(items) if items.is_object() => json!([sample(items, is_full)]),
            _ => json!([]),
        },
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
            let none = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
            let wanted = properties.iter().filter(|(name, _)| is_full || is_required(name));
            wanted.map(|(name, schema)| (name.clone(), sample(schema, is_full))).collect()
        }
        _ => json!({ "any": "thing" }),
    }
}

#[test]
fn what_callers_send_is_what_the_schema_says() {
    let schema = GatewaySchema::find();
    schema.sent::<connect::ConnectParams>("ConnectParams");
    schema.sent::<chat::SendParams>("ChatSendParams");
    schema.sent::<chat::AbortParams>("ChatAbortParams");
    schema.sent::<chat::InjectParams>("ChatInjectParams");
    schema.sent::<chat::HistoryParams>("ChatHistoryParams");
    schema.sent::<sessions::ListParams>("SessionsListParams");
    schema.sent::<sessions::DescribeParams>("SessionsDescribeParams");
    schema.sent::<sessions::DeleteParams>("SessionsDeleteParams");
    schema.sent::<agents::ListParams>("AgentsListParams");
    schema.sent::<agents::CommandsParams>("CommandsListParams");
    schema.sent::<tools::CatalogParams>("ToolsCatalogParams");
    schema.sent::<tools::InvokeParams>("ToolsInvokeParams");
    schema.sent::<tools::InvokeResultParams>("NodeInvokeResultParams");
    schema.sent::<tools::InvokeProgressParams>("NodeInvokeProgressParams");
    schema.sent::<config::GetParams>("ConfigGetParams");
}

#[test]
fn what_a_gateway_answers_is_what_the_schema_says() {
    let schema = GatewaySchema::find();
    schema.said::<connect::HelloOk>("HelloOk");
    schema.said::<connect::Snapshot>("Snapshot");
    schema.said::<agents::ListResult>("AgentsListResult");
    schema.said::<agents::CommandsResult>("CommandsListResult");
    schema.said::<models::ListResult>("ModelsListResult");
    schema.said::<sessions::Row>("SessionRow");
    schema.said::<sessions::DeleteResult>("SessionsDeleteResult");
    schema.said::<tools::CatalogResult>("ToolsCatalogResult");
    schema.said::<tools::InvokeResult>("ToolsInvokeResult");
    schema.said::<ErrorShape>("ErrorShape");
}

#[test]
fn events_are_what_the_schema_says() {
    let schema = GatewaySchema::find();
    for name in [
        "ChatStatusEvent",
        "ChatDeltaEvent",
        "ChatFinalEvent",
        "ChatAbortedEvent",
        "ChatErrorEvent",
    ] {
        schema.said::<chat::ChatEvent>(name);
    }
    schema.said::<AgentEvent>("AgentEvent");
    schema.said::<Tick>("TickEvent");
    schema.said::<Shutdown>("ShutdownEvent");
    schema.said::<tools::InvokeRequestEvent>("NodeInvokeRequestEvent");
}

#[test]
fn frames_are_what_the_schema_says() {
    let schema = GatewaySchema::find();
    let check = |name: &str, text: &str| schema.check(name, &serde_json::from_str(text).unwrap());
    let raw = to_raw_value(&json!({ "a": 1 })).unwrap();
    let trace = SpanContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    check("RequestFrame", &frame::request("1", "health", None, None).unwrap());
    check("RequestFrame", &frame::request("1", "health", Some(&raw), trace.as_ref()).unwrap());
    check("ResponseFrame", &frame::response("1", Ok(&raw)).unwrap());
    let mut error = ErrorShape::new(ErrorCode::Unavailable, "later").with_detail("SOME_CODE");
    (error.retryable, error.retry_after_ms) = (Some(true), Some(10));
    check("ResponseFrame", &frame::response("1", Err(&error)).unwrap());
    check("ResponseFrame", &frame::response("1", Err(&ErrorShape::unknown_method("x"))).unwrap());
    let event = Event::new(Tick { ts: 1 });
    check("EventFrame", &frame::event(&event.event, Some(event.json().unwrap()), Some(1)).unwrap());
    check("EventFrame", &frame::event("tick", None, None).unwrap());
}

#[test]
fn every_program_and_every_mode_that_the_schema_knows_is_known() {
    let schema = GatewaySchema::find();
    let client = &schema.definition("ConnectParams")["properties"]["client"]["properties"];
    for id in client["id"]["enum"].as_array().unwrap() {
        let ours: connect::ClientId = serde_json::from_value(id.clone()).unwrap();
        assert_eq!(serde_json::to_value(ours).unwrap(), *id);
    }
    for mode in client["mode"]["enum"].as_array().unwrap() {
        let ours: connect::ClientMode = serde_json::from_value(mode.clone()).unwrap();
        assert_eq!(serde_json::to_value(ours).unwrap(), *mode);
    }
}

#[test]
fn methods_of_the_schema_need_the_scopes_of_the_schema() {
    let schema = GatewaySchema::find();
    let mut known = 0;
    for &method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(method));
        let Some(scope) = schema.scope(method.name()) else { continue };
        known += 1;
        match method.scope() {
            // The handshake precedes all scopes.
            Scope::Any => assert_eq!(method, Method::Connect),
            Scope::Node => assert_eq!(scope, "node", "{method}"),
            // There, the scope depends on the session; here, the strictest one applies.
            Scope::Admin if scope == "dynamic" => assert_eq!(method, Method::SessionsDelete),
            // What can be patched here, everyone who sends messages may choose.
            Scope::Write if scope == "dynamic" => {
                let these = [Method::SessionsPatch, Method::SessionsCreate, Method::Agent];
                assert!(these.contains(&method), "{method}");
            }
            ours => assert_eq!(ours.name(), Some(scope), "{method}"),
        }
    }
    assert_eq!(known, 40, "methods that are not ours alone");
}

#[test]
fn who_may_write_may_read_and_an_administrator_may_do_everything() {
    let granted =
        |scopes: &[&str]| scopes.iter().map(|&scope| scope.to_owned()).collect::<Vec<_>>();
    assert!(Scope::Read.is_in(&granted(&["operator.write"])));
    assert!(!Scope::Write.is_in(&granted(&["operator.read"])));
    assert!(!Scope::Approvals.is_in(&granted(&["operator.write"])));
    assert!(Scope::Approvals.is_in(&granted(&["operator.admin"])));
    assert!(Scope::Any.is_in(&[]));
}

#[test]
fn a_token_is_shown_by_no_debug_output() {
    let auth = json!({ "token": "hunter22", "password": "hunter22" });
    let auth: connect::Auth = serde_json::from_value(auth).unwrap();
    let shown = format!("{auth:?}");
    assert!(!shown.contains("hunter22") && shown.contains("[REDACTED]"), "{shown}");
}

#[test]
fn null_is_not_the_same_as_nothing_where_a_sender_says_what_it_expects() {
    let params = json!({
        "sessionKey": "main", "message": "hi", "idempotencyKey": "k", "expectedLeafEntryId": null
    });
    let params: chat::SendParams = serde_json::from_value(params).unwrap();
    assert_eq!(params.expected_leaf_entry_id, Some(Value::Null));
    assert_eq!(params.expected_permission_mode, None);
}

#[test]
fn a_patch_and_a_request_for_models_are_what_the_schema_says() {
    let schema = GatewaySchema::find();
    for patch in [
        json!({ "key": "main", "model": "a/b", "permissionMode": "read-only", "label": "Plans" }),
        json!({ "key": "main", "agentId": "main", "model": null, "permissionMode": null }),
        json!({ "key": "main" }),
    ] {
        schema.check("SessionsPatchParams", &patch);
        let ours: sessions::PatchParams = serde_json::from_value(patch.clone()).unwrap();
        assert_eq!(serde_json::to_value(ours).unwrap(), patch);
    }
    let list = json!({ "agentId": "main", "view": "provider-config", "refresh": true });
    schema.check("ModelsListParams", &list);
    let ours: models::ListParams = serde_json::from_value(list.clone()).unwrap();
    assert_eq!(serde_json::to_value(ours).unwrap(), list);
}
