//! Requests of a client, parsed leniently.
//!
//! The ACP crate answers parameters that it cannot parse with an error that quotes all of them,
//! also the secrets in `mcpServers`. [`Lenient`] keeps the failure instead, for an answer of ours.

use std::fmt;

use agent_client_protocol::{Error, JsonRpcMessage, JsonRpcRequest, UntypedMessage};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::invalid_params;

/// A request whose parameters may be invalid.
#[derive(Clone)]
pub(crate) struct Lenient<T> {
    method: String,
    request: Result<T, String>,
    /// `mcpServers` as received; the list in `request` is empty.
    servers: Option<Value>,
}

impl<T> Lenient<T> {
    /// Returns the request and its `mcpServers`.
    ///
    /// # Errors
    /// If its parameters are invalid.
    pub(crate) fn check(self) -> Result<(T, Option<Value>), Error> {
        let method = self.method;
        let request = self.request;
        let request =
            request.map_err(|why| invalid_params(format!("invalid {method} params: {why}")))?;
        Ok((request, self.servers))
    }
}

/// Without the parameters, which may contain secrets.
impl<T> fmt::Debug for Lenient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lenient").field("method", &self.method).finish_non_exhaustive()
    }
}

impl<T: JsonRpcMessage + DeserializeOwned> JsonRpcMessage for Lenient<T> {
    fn matches_method(method: &str) -> bool {
        T::matches_method(method)
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        match &self.request {
            Ok(request) => request.to_untyped_message(),
            Err(why) => Err(invalid_params(why.clone())),
        }
    }

    fn parse_message(method: &str, received: &Value) -> Result<Self, Error> {
        let mut params = match received {
            // A request may omit its parameters.
            Value::Null => Value::Object(Map::new()),
            params => params.clone(),
        };
        let servers = params.get_mut("mcpServers").map(|it| std::mem::replace(it, empty_list()));
        if let (None, Value::Object(members)) = (&servers, &mut params) {
            members.insert("mcpServers".to_owned(), empty_list());
        }
        let request = match params {
            Value::Object(_) => serde_json::from_value(params)
                .map_err(|error: serde_json::Error| describe::<T>(received, &error.to_string())),
            _ => Err("expected an object".to_owned()),
        };
        Ok(Self { method: method.to_owned(), request, servers })
    }
}

impl<T: JsonRpcRequest + DeserializeOwned> JsonRpcRequest for Lenient<T> {
    type Response = T::Response;
}

fn empty_list() -> Value {
    Value::Array(Vec::new())
}

/// Describes a parse error, with the place of the invalid value.
fn describe<T: DeserializeOwned>(received: &Value, error: &str) -> String {
    let why = problem(error);
    match place::<T>(received, error) {
        Some(place) => format!("`{place}`: {why}"),
        None => why,
    }
}

/// Finds the invalid member, and its element if it is a list: alone, it causes the same error. A
/// missing member has no place.
fn place<T: DeserializeOwned>(received: &Value, error: &str) -> Option<String> {
    let fails = |members: Map<String, Value>| {
        let parsed = serde_json::from_value::<T>(Value::Object(members));
        parsed.err().is_some_and(|found| found.to_string() == error)
    };
    let alone = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    let mut members = received.as_object().cloned().unwrap_or_default();
    members.insert("mcpServers".to_owned(), empty_list());
    let missing = error.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    if let Some(missing) = missing {
        // A field that is missing in a member is still missing then.
        let mut with_it = members.clone();
        with_it.insert(missing.to_owned(), Value::Null);
        if !fails(with_it) {
            return None;
        }
    }
    let (name, value) =
        members.iter().find(|(name, value)| fails(alone(name, (*value).clone())))?;
    // In a place where no list is expected, an empty one is wrong, too.
    let elements = value.as_array().filter(|_| !fails(alone(name, empty_list())));
    let elements = elements.into_iter().flatten();
    let nth =
        elements.map(|it| Value::Array(vec![it.clone()])).position(|it| fails(alone(name, it)));
    Some(match nth {
        Some(nth) => format!("{name}[{nth}]"),
        None => name.clone(),
    })
}

/// Describes a parse error. Its own text may quote a value, unless a field is missing; what follows
/// the value names what is expected.
fn problem(error: &str) -> String {
    if error.starts_with("missing field") {
        return error.to_owned();
    }
    let quotes = ["invalid type: ", "invalid value: ", "unknown variant "];
    let is_known = quotes.iter().any(|start| error.starts_with(start));
    let expected = error.rsplit_once(", expected ").filter(|_| is_known);
    // Types of Rust mean nothing to a client.
    match expected.map(|(_, expected)| expected) {
        Some("path string" | "variant identifier") => "expected a string".to_owned(),
        Some("a sequence") => "expected a list".to_owned(),
        Some("a map") => "expected an object".to_owned(),
        Some(expected)
            if expected.starts_with("struct ")
                || expected.starts_with("internally tagged enum ") =>
        {
            "expected an object".to_owned()
        }
        Some(expected) if !expected.contains("struct") && !expected.contains("enum") => {
            format!("expected {expected}")
        }
        _ => "invalid value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{NewSessionRequest, PromptRequest};
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_parameters_are_described_without_quoting_them() {
        let servers = json!({"env": [{"name": "TOKEN", "value": "hunter2"}]});
        let path = "`cwd`: expected a string";
        for (params, expected) in [
            (json!({"cwd": 7, "mcpServers": servers}), path),
            (json!({"cwd": null}), path),
            (json!({"cwd": ["hunter2, expected hunter2"]}), path),
            (json!({"mcpServers": servers}), "missing field `cwd`"),
            (json!("hunter2"), "expected an object"),
            (json!(null), "missing field `cwd`"),
        ] {
            let read = Lenient::<NewSessionRequest>::parse_message("session/new", &params).unwrap();
            let shown = format!("{read:?}");
            let error = read.check().unwrap_err();
            assert_eq!(error.message, format!("invalid session/new params: {expected}"));
            assert!(!format!("{error:?}{shown}").contains("hunter2"), "{error:?} {shown}");
        }
    }

    #[test]
    fn the_place_of_an_invalid_value_is_named() {
        let text = json!({"type": "text", "text": "hi"});
        let prompt = |prompt: Value| json!({"sessionId": "x", "prompt": prompt});
        for (params, expected) in [
            (json!({"sessionId": 5, "prompt": []}), "`sessionId`: expected a string"),
            (prompt(json!("hunter2")), "`prompt`: expected a list"),
            (
                prompt(json!([text, {"type": "hunter2"}])),
                "`prompt[1]`: expected one of `text`, `image`, `audio`, `resource_link`, `resource`",
            ),
            (prompt(json!([text, text, {"type": "text"}])), "`prompt[2]`: missing field `text`"),
            (json!({"prompt": [text]}), "missing field `sessionId`"),
        ] {
            let read = Lenient::<PromptRequest>::parse_message("session/prompt", &params).unwrap();
            let error = read.check().unwrap_err();
            assert_eq!(error.message, format!("invalid session/prompt params: {expected}"));
        }
    }

    #[test]
    fn mcp_servers_are_set_aside() {
        let params = json!({"cwd": "/tmp", "mcpServers": "none"});
        let read = Lenient::<NewSessionRequest>::parse_message("session/new", &params).unwrap();
        let (request, servers) = read.check().unwrap();
        assert_eq!((request.mcp_servers.len(), servers), (0, Some(json!("none"))));
    }
}
