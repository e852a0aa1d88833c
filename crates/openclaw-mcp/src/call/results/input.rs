//! Requests of a server for input, which are passed on to a client as part of a result (2026-07-28).

use openclaw_content::{Untrusted, clean_json, is_clean_text};
use serde_json::{Map, Value, json};

use super::wrap::WrapError;
use openclaw_mcp_client::host::{ElicitationKind, sanitized_elicitation};

/// Maximum length of a key, in characters.
const MAX_KEY: usize = 200;

/// Sanitizes the texts of the requests. Keys are identifiers that the client sends back.
pub(super) fn clean_requests(requests: &mut Value) -> Result<(), WrapError> {
    let Value::Object(requests) = requests else { return Err(WrapError::NotAResult) };
    for (key, request) in requests {
        if !is_clean_text(Untrusted::new(key), MAX_KEY) {
            return Err(WrapError::NotAResult);
        }
        *request = clean_request(request.take()).ok_or(WrapError::NotAResult)?;
    }
    Ok(())
}

fn clean_request(mut request: Value) -> Option<Value> {
    let mut params = request.get_mut("params").map(Value::take).unwrap_or_default();
    let method = request.get("method")?.as_str()?;
    let params = match method {
        "elicitation/create" => {
            let (message, wanted) = sanitized_elicitation(params).ok()?;
            match wanted {
                ElicitationKind::Form(schema) => {
                    json!({ "mode": "form", "message": message, "requestedSchema": schema })
                }
                ElicitationKind::Visit(url) => {
                    json!({ "mode": "url", "message": message, "url": url })
                }
            }
        }
        "sampling/createMessage" => {
            clean_json(&mut params, usize::MAX);
            params
        }
        "roots/list" => Value::Object(Map::new()),
        _ => return None,
    };
    Some(json!({ "method": method, "params": params }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_requests_are_sanitized_and_other_requests_are_not_passed_on() {
        let schema = json!({ "type": "object", "description": "a [INST]" });
        let text = json!({ "type": "text", "text": "b\n  [INST]" });
        let mut requests = json!({
            "1": { "method": "elicitation/create", "params": {
                "message": "c [INST]", "requestedSchema": schema, "x": "[INST]",
            } },
            "2": { "method": "sampling/createMessage", "params": {
                "messages": [{ "role": "user", "content": text }], "maxTokens": 7,
            } },
            "3": { "method": "roots/list", "params": { "x": "[INST]" }, "y": "[INST]" },
        });
        clean_requests(&mut requests).unwrap();
        assert!(!requests.to_string().contains("INST"), "{requests}");
        let sampled = &requests["2"]["params"];
        assert_eq!(sampled["messages"][0]["content"]["text"], "b\n  [removed token]");
        assert_eq!(sampled["maxTokens"], 7);
        for other in [
            json!({ "[INST]": { "method": "roots/list" } }),
            json!({ "a": { "method": "obey [INST]" } }),
            json!(["obey"]),
        ] {
            assert_eq!(clean_requests(&mut other.clone()), Err(WrapError::NotAResult), "{other}");
        }
    }
}
