//! Serialization of the fast lane's messages. Writing to a vector cannot fail.

use std::io::Write as _;

use serde_json::value::RawValue;

use super::WireCall;
use openclaw_tools::decimal::Decimal;

/// Writes a request on one line, without the line break.
pub(super) fn request(out: &mut Vec<u8>, id: u64, method: &str, params: &RawValue) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(Decimal::default().of(id).as_bytes());
    out.extend_from_slice(br#","method":"#);
    let _ = serde_json::to_writer(&mut *out, method);
    out.extend_from_slice(br#","params":"#);
    on_one_line(out, params.get());
    out.push(b'}');
}

/// Writes a tool call on one line, without the line break.
pub(super) fn tool_call(out: &mut Vec<u8>, id: u64, call: &WireCall<'_>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(Decimal::default().of(id).as_bytes());
    out.extend_from_slice(br#","method":"tools/call","params":{"name":"#);
    let _ = serde_json::to_writer(&mut *out, call.tool);
    out.extend_from_slice(br#","arguments":"#);
    on_one_line(out, call.arguments.get());
    if !call.more.is_empty() {
        out.push(b',');
        on_one_line(out, call.more);
    }
    out.extend_from_slice(br#","_meta":{"#);
    on_one_line(out, call.meta);
    if !call.meta.is_empty() {
        out.push(b',');
    }
    if let Some(trace) = call.trace {
        trace.write_members(out);
        out.push(b',');
    }
    out.extend_from_slice(br#""progressToken":"#);
    out.extend_from_slice(Decimal::default().of(id).as_bytes());
    out.extend_from_slice(b"}}}");
}

/// Writes the notification that cancels a call.
pub(super) fn cancelled(out: &mut Vec<u8>, id: u64) {
    let _ = write!(
        out,
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    );
}

/// Writes `json` on one line. Line breaks occur only between tokens, where a space is equivalent.
fn on_one_line(out: &mut Vec<u8>, json: &str) {
    let json = json.as_bytes();
    if memchr::memchr2(b'\n', b'\r', json).is_none() {
        out.extend_from_slice(json);
        return;
    }
    let blank = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    out.extend(json.iter().map(blank));
}

#[cfg(test)]
mod tests {
    use openclaw_trace::SpanContext;
    use serde_json::json;

    use super::*;

    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_call_contains_all_of_its_parts_on_one_line() {
        let arguments = RawValue::from_string("{\n \"a\": 1\r\n}".to_owned()).unwrap();
        let trace = SpanContext::parse(TRACEPARENT);
        let call = WireCall {
            tool: "say \"hi\"",
            arguments: &arguments,
            meta: r#""other":"x""#,
            more: "\"requestState\":\n\"s\"",
            headers: &[],
            trace: trace.as_ref(),
            work: None,
        };
        let mut out = Vec::new();
        tool_call(&mut out, 7, &call);
        assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
        let message: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {
                "name": "say \"hi\"", "arguments": { "a": 1 }, "requestState": "s",
                "_meta": { "other": "x", "traceparent": TRACEPARENT, "progressToken": 7 },
            },
        });
        assert_eq!(message, expected);
    }
}
