//! [`Surface`]: a client's interface to the gateway.

use std::fmt;

use futures_util::future::BoxFuture;
use openclaw_trace::SpanContext;

use crate::error::ErrorShape;
use crate::event::EventReceiver;
use crate::method::{Method, Request, Response, Rpc};

/// A client's interface to the gateway, in process or over a socket.
///
/// Dropping the future of a request cancels waiting for its response. Front ends use [`ask`], which
/// ties the types of parameters and result together.
pub trait Surface: Send + Sync + fmt::Debug {
    /// Sends a request, as a part of a span if there is one, and returns the response. In process,
    /// nothing is serialized.
    fn call_in(
        &self,
        request: Request,
        trace: Option<SpanContext>,
    ) -> BoxFuture<'_, Result<Response, RequestError>>;

    /// Like [`call_in`](Self::call_in), without a span.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, RequestError>> {
        self.call_in(request, None)
    }

    /// Subscribes to later events. They arrive in order; a slow listener is notified of the number
    /// missed.
    fn events(&self) -> EventReceiver;
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The gateway returned an error.
    #[error(transparent)]
    Refused(#[from] ErrorShape),
    /// The parameters cannot be serialized.
    #[error("cannot send the parameters of `{method}`: {error}")]
    Params {
        /// The requested method.
        method: Method,
        /// The underlying error.
        error: serde_json::Error,
    },
    /// The response cannot be parsed.
    #[error("cannot read the answer to `{method}`: {error}")]
    Answer {
        /// The requested method.
        method: Method,
        /// The underlying error.
        error: serde_json::Error,
    },
    /// The response belongs to another method.
    #[error("the response to `{asked}` has a result of `{answered}`")]
    OtherMethod {
        /// The requested method.
        asked: Method,
        /// The method of the response.
        answered: Method,
    },
}

impl RequestError {
    /// Returns whether the gateway does not know the method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(error) if error.is_unknown_method())
    }
}

/// Calls a method and returns its result.
///
/// ```
/// use openclaw_protocol::mcp::{CallParams, Outcome};
/// use openclaw_protocol::{RequestError, Surface, ask, rpc};
///
/// async fn call(surface: &dyn Surface, tool: String) -> Result<Outcome, RequestError> {
///     ask::<rpc::McpCall>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// Parameters of another method do not compile:
///
/// ```compile_fail,E0308
/// # use openclaw_protocol::mcp::{CallParams, Outcome};
/// # use openclaw_protocol::{RequestError, Surface, ask, rpc};
/// async fn call(surface: &dyn Surface, tool: String) -> Result<Outcome, RequestError> {
///     ask::<rpc::McpRead>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// Nor does the result of another method:
///
/// ```compile_fail,E0308
/// # use openclaw_protocol::mcp::{CallParams, ToolsResult};
/// # use openclaw_protocol::{RequestError, Surface, ask, rpc};
/// async fn call(surface: &dyn Surface, tool: String) -> Result<ToolsResult, RequestError> {
///     ask::<rpc::McpCall>(surface, CallParams { tool, ..CallParams::default() }).await
/// }
/// ```
///
/// # Errors
/// If the gateway returns an error, or parameters or result cannot be serialized or parsed.
pub async fn ask<R: Rpc>(
    surface: &dyn Surface,
    params: R::Params,
) -> Result<R::Result, RequestError> {
    ask_in::<R>(surface, params, None).await
}

/// Like [`ask`], as a part of a span.
///
/// # Errors
/// If the gateway returns an error, or parameters or result cannot be serialized or parsed.
pub async fn ask_in<R: Rpc>(
    surface: &dyn Surface,
    params: R::Params,
    trace: Option<&SpanContext>,
) -> Result<R::Result, RequestError> {
    let response = surface.call_in(R::request(params), trace.cloned()).await?;
    let answered = response.method();
    R::result(response).ok_or(RequestError::OtherMethod { asked: R::METHOD, answered })
}
