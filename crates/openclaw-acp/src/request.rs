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

    fn parse_message(method: &str, params: &Value) -> Result<Self, Error> {
        let mut params = match params {
            // A request may omit its parameters.
            Value::Null => Value::Object(Map::new()),
            params => params.clone(),
        };
        let servers = params.get_mut("mcpServers").map(|it| std::mem::replace(it, empty_list()));
        if let (None, Value::Object(members)) = (&servers, &mut params) {
            members.insert("mcpServers".to_owned(), empty_list());
        }
        let request = match params {
            Value::Object(_) => serde_json::from_value(params).map_err(|error| words(&error)),
            _ => Err("they must be an object".to_owned()),
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

/// Describes a parse error. Its own words may quote a value, unless a field is missing; what follows
/// the value names the expected type.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("missing field") {
        return text;
    }
    let expected = text.rsplit_once(", expected ").filter(|_| text.starts_with("invalid type: "));
    match expected {
        // Types of Rust mean nothing to a client.
        Some((_, expected)) if !expected.contains("struct") && !expected.contains("enum") => {
            format!("a value has the wrong type; expected {expected}")
        }
        _ => "a value has the wrong type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::NewSessionRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_parameters_are_described_without_quoting_them() {
        let servers = json!({"env": [{"name": "TOKEN", "value": "hunter2"}]});
        let path = "a value has the wrong type; expected path string";
        for (params, expected) in [
            (json!({"cwd": 7, "mcpServers": servers}), path),
            (json!({"cwd": null}), path),
            (json!({"cwd": ["hunter2, expected hunter2"]}), path),
            (json!({"mcpServers": servers}), "missing field `cwd`"),
            (json!("hunter2"), "they must be an object"),
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
    fn mcp_servers_are_set_aside() {
        let params = json!({"cwd": "/tmp", "mcpServers": "none"});
        let read = Lenient::<NewSessionRequest>::parse_message("session/new", &params).unwrap();
        let (request, servers) = read.check().unwrap();
        assert_eq!((request.mcp_servers.len(), servers), (0, Some(json!("none"))));
    }
}
