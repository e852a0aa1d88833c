//! [`Surface`]: one caller's end of the gateway.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::ErrorShape;
use crate::event::EventReceiver;
use crate::method::{Method, Request, Response, Rpc};

/// One caller's end of the gateway: in this process, or at the other end of a socket.
///
/// Dropping the future of a request gives up waiting for its answer. Front ends use [`ask`], which pairs
/// parameters and result.
pub trait Surface: Send + Sync + fmt::Debug {
    /// Sends a request and returns the response to it. In this process nothing is turned into JSON.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, AskError>>;

    /// Listens from now on. Events come in order; what a slow listener missed is told.
    fn events(&self) -> EventReceiver;
}

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The gateway refuses it.
    #[error(transparent)]
    Refused(#[from] ErrorShape),
    /// What was to be sent cannot be written as JSON.
    #[error("cannot send the parameters of `{method}`: {error}")]
    Params {
        /// What was asked.
        method: Method,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The answer is not of the right shape.
    #[error("cannot read the answer to `{method}`: {error}")]
    Answer {
        /// What was asked.
        method: Method,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The response belongs to another method.
    #[error("`{asked}` was answered with a result of `{answered}`")]
    OtherMethod {
        /// What was asked.
        asked: Method,
        /// What was answered.
        answered: Method,
    },
}

impl AskError {
    /// Whether the gateway has no such method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(error) if error.is_unknown_method())
    }
}

/// Calls a method and returns its result.
///
/// ```
/// use openclaw_protocol::mcp::{CallParams, Outcome};
/// use openclaw_protocol::{AskError, Surface, ask, rpc};
///
/// async fn call(surface: &dyn Surface, tool: String) -> Result<Outcome, AskError> {
///     ask::<rpc::McpCall>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// Parameters of another method do not compile:
///
/// ```compile_fail,E0308
/// # use openclaw_protocol::mcp::{CallParams, Outcome};
/// # use openclaw_protocol::{AskError, Surface, ask, rpc};
/// async fn call(surface: &dyn Surface, tool: String) -> Result<Outcome, AskError> {
///     ask::<rpc::McpRead>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// Nor does the result of another method:
///
/// ```compile_fail,E0308
/// # use openclaw_protocol::mcp::{CallParams, ToolsResult};
/// # use openclaw_protocol::{AskError, Surface, ask, rpc};
/// async fn call(surface: &dyn Surface, tool: String) -> Result<ToolsResult, AskError> {
///     ask::<rpc::McpCall>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// # Errors
/// If the gateway refuses, or one of the two cannot be written or read.
pub async fn ask<R: Rpc>(surface: &dyn Surface, params: R::Params) -> Result<R::Result, AskError> {
    let response = surface.call(R::request(params)).await?;
    let answered = response.method();
    R::result(response).ok_or(AskError::OtherMethod { asked: R::METHOD, answered })
}

/// Reads the parameters of a request, strictly. Those that are left out count as `{}`, and as `null` where
/// a method tells the two apart.
///
/// # Errors
/// What to answer if they are not what the method takes.
pub fn params_of<P: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<P, ErrorShape> {
    let read = match params {
        Some(params) => serde_json::from_str(params.get()),
        None => serde_json::from_str("null").or_else(|_| serde_json::from_str("{}")),
    };
    read.map_err(|error| ErrorShape::invalid(format!("invalid {method} params: {error}")))
}
