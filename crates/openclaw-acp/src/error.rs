//! JSON-RPC errors for the client: the message says what failed, and quotes no parameter.

use agent_client_protocol::Error;
use openclaw_protocol::{ErrorCode, RequestError};

/// The code of ACP for a resource or session that does not exist.
const NOT_FOUND: i32 = -32002;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;

pub(crate) fn invalid_params(message: impl Into<String>) -> Error {
    Error::new(INVALID_PARAMS, message)
}

pub(crate) fn invalid_request(message: impl Into<String>) -> Error {
    Error::new(INVALID_REQUEST, message)
}

pub(crate) fn internal(message: impl Into<String>) -> Error {
    Error::new(INTERNAL, message)
}

/// The error for a session that is not open.
pub(crate) fn not_open(id: &str) -> Error {
    not_found(id, "use session/new or session/load")
}

/// The error for a session that is not stored either.
pub(crate) fn unknown_session(id: &str) -> Error {
    not_found(id, "use session/list to find one, or session/new")
}

fn not_found(id: &str, hint: &str) -> Error {
    let id: String = id.chars().filter(|c| !c.is_control()).take(100).collect();
    Error::new(NOT_FOUND, format!("session `{id}` not found; {hint}"))
}

/// The error of a request to the gateway.
pub(crate) fn refused(error: &RequestError) -> Error {
    match error {
        RequestError::Refused(shape) if shape.code == ErrorCode::InvalidRequest => {
            invalid_params(error.to_string())
        }
        _ => internal(error.to_string()),
    }
}
