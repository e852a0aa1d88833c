//! Parsing and serializing of frames.

use serde_json::value::RawValue;

use super::{Frame, FrameError, MAX_ID, SpanContext, event, request, response};
use crate::{ErrorCode, ErrorShape};

#[test]
fn a_request_keeps_its_params_as_they_were_written() {
    let text = r#"{"params":{ "a" : 1.10 },"type":"req","method":"health","id":"x\u0031"}"#;
    let Frame::Request { id, method, params, .. } = Frame::parse(text).unwrap() else { panic!() };
    assert_eq!((id.as_str(), method.as_str()), ("x1", "health"));
    assert_eq!(params.unwrap().get(), r#"{ "a" : 1.10 }"#);
}

#[test]
fn a_request_names_the_span_that_it_is_a_part_of() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = SpanContext::parse(parent);
    let text = request("1", "health", None, trace.as_ref()).unwrap();
    let Frame::Request { trace: read, .. } = Frame::parse(&text).unwrap() else { panic!() };
    assert_eq!(read, trace);
    let text = text.replace("00-4b", "zz-4b");
    let Frame::Request { trace: read, .. } = Frame::parse(&text).unwrap() else { panic!() };
    assert_eq!(read, None, "an invalid one does not fail the request");
}

#[test]
fn a_request_with_an_unknown_field_is_refused_and_the_field_named() {
    for field in ["surprise", "payload", "ok"] {
        let text = format!(r#"{{"type":"req","id":"1","method":"health","{field}":true}}"#);
        let error = Frame::parse(&text).unwrap_err();
        assert!(matches!(&error, FrameError::UnknownField(name) if name == field), "{error}");
    }
}

#[test]
fn responses_and_events_may_know_more_than_we_do() {
    let text = r#"{"type":"event","event":"tick","stateVersion":{"presence":1},"later":[]}"#;
    assert!(matches!(Frame::parse(text).unwrap(), Frame::Event { .. }));
    let text = r#"{"type":"res","id":"1","ok":true,"later":0}"#;
    assert!(matches!(Frame::parse(text).unwrap(), Frame::Response { outcome: Ok(None), .. }));
}

#[test]
fn invalid_frames_are_rejected() {
    let long = format!(r#"{{"type":"req","id":"{}","method":"m"}}"#, "i".repeat(MAX_ID + 1));
    for text in [
        "",
        "[]",
        "null",
        "{}",
        r#"{"type":"req"}"#,
        r#"{"type":"req","id":"","method":"m"}"#,
        r#"{"type":"req","id":1,"method":"m"}"#,
        r#"{"type":"req","id":"1","id":"2","method":"m"}"#,
        r#"{"type":"req","id":"1","method":"m"} x"#,
        r#"{"type":"req","id":"1","method":"m","params":{"a":}}"#,
        r#"{"type":"ask","id":"1","method":"m"}"#,
        r#"{"type":"res","id":"1"}"#,
        r#"{"type":"res","id":"1","ok":false}"#,
        r#"{"type":"event","seq":1}"#,
        r#"{"type":"event","event":"e","seq":-1}"#,
        &long,
    ] {
        assert!(Frame::parse(text).is_err(), "{text}");
    }
}

#[test]
fn deeply_nested_params_are_neither_followed_nor_fatal() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let text = format!(r#"{{"type":"req","id":"1","method":"m","params":{deep}}}"#);
    assert!(matches!(Frame::parse(&text).unwrap(), Frame::Request { .. }));
}

#[test]
fn what_is_written_is_read_again() {
    let raw = RawValue::from_string(r#"{"a":[1]}"#.to_owned()).unwrap();
    let text = request("7", "chat.send", Some(&raw), None).unwrap();
    let Frame::Request { params, .. } = Frame::parse(&text).unwrap() else { panic!() };
    assert_eq!(params.unwrap().get(), raw.get());
    let error = ErrorShape::new(ErrorCode::from("SOMETHING_NEW".to_owned()), "no");
    let Frame::Response { outcome, .. } =
        Frame::parse(&response("7", Err(&error)).unwrap()).unwrap()
    else {
        panic!()
    };
    assert_eq!(outcome.unwrap_err().code, ErrorCode::Other("SOMETHING_NEW".to_owned()));
    let Frame::Event { seq, .. } =
        Frame::parse(&event("tick", Some(&raw), Some(3)).unwrap()).unwrap()
    else {
        panic!()
    };
    assert_eq!(seq, Some(3));
}

#[test]
fn the_context_of_a_trace_is_carried_in_any_order() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let context = SpanContext::parse(PARENT).unwrap();
    let carrying = context.carrying(Some("rojo=1"), Some(r#"a="b""#));
    let read = |text: &str| match Frame::parse(text).unwrap() {
        Frame::Request { trace, .. } => trace,
        other => panic!("{other:?}"),
    };
    let text = request("7", "chat.send", None, Some(&carrying)).unwrap();
    assert_eq!(read(&text).as_ref(), Some(&carrying));
    let alone = request("7", "chat.send", None, Some(&carrying.ids())).unwrap();
    assert!(!alone.contains("tracestate") && !alone.contains("baggage"), "{alone}");
    let turned = format!(
        r#"{{"baggage":"a=b","tracestate":"rojo=1","type":"req","id":"1","method":"m","traceparent":"{PARENT}"}}"#
    );
    let trace = read(&turned).unwrap();
    assert_eq!((trace.state(), trace.baggage()), (Some("rojo=1"), Some("a=b")));
    let without_ids = r#"{"tracestate":"rojo=1","type":"req","id":"1","method":"m"}"#;
    assert!(read(without_ids).is_none());
}

#[test]
fn an_unknown_method_is_recognised_from_us_and_from_the_node_gateway() {
    assert!(ErrorShape::unknown_method("mcp.call").is_unknown_method());
    assert!(ErrorShape::invalid("unknown method: mcp.call").is_unknown_method());
    assert!(!ErrorShape::invalid("unknown agent: mcp").is_unknown_method());
}
