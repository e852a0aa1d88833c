//! Between the types of `rmcp` and our JSON, for what passes through `rmcp`.

use openclaw_trace::SpanContext;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, InputRequiredResult};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::incoming::{CallRequest, ModernRequest, RequestMeta};
use super::reply::HubReply;

/// An error that is not the client's.
pub(crate) fn failed(message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::internal_error(message, None)
}

/// Converts our JSON into a type of `rmcp`.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        tracing::debug!(%error, "a reply of a server is not valid");
        failed("a server sent an invalid reply")
    })
}

/// The error that a reply is.
pub(crate) fn error_of(reply: HubReply) -> ErrorData {
    match reply.into_value() {
        Ok(_) => failed("unexpected result"),
        Err(error) => error_data(&error),
    }
}

/// An error of a reply.
pub(crate) fn error_data(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    ErrorData::new(ErrorCode(code.unwrap_or(-32603)), message, error.get("data").cloned())
}

/// Either a result, or a request for input.
pub(crate) fn response<T: DeserializeOwned, R: From<T> + From<InputRequiredResult>>(
    reply: HubReply,
) -> Result<R, ErrorData> {
    let result = reply.into_value().map_err(|error| error_data(&error))?;
    if result.get("resultType").is_some_and(|kind| kind == "input_required") {
        return typed::<InputRequiredResult>(result).map(R::from);
    }
    typed::<T>(result).map(R::from)
}

/// The `_meta` of a request.
pub(crate) fn meta_of(context: &RequestContext<RoleServer>) -> Result<RequestMeta, ErrorData> {
    let meta = to_raw_value(&context.meta).map_err(|error| failed(error.to_string()))?;
    let invalid = || ErrorData::invalid_params("invalid `_meta`: unknown log level", None);
    RequestMeta::parse(&meta).ok_or_else(invalid)
}

/// Our form of a request, with the parts that are the same for all methods; `params` are its own.
pub(crate) fn call_request(
    context: &RequestContext<RoleServer>,
    params: &impl Serialize,
    name: String,
    arguments: Box<RawValue>,
) -> Result<CallRequest, ErrorData> {
    let meta = meta_of(context)?;
    let modern = match meta.is_modern {
        false => None,
        true => {
            let params = serde_json::to_value(params).unwrap_or_default();
            let given = |name: &str| to_raw_value(params.get(name)?).ok();
            let (responses, state) = (given("inputResponses"), given("requestState"));
            let modern = ModernRequest::new(&meta, responses.as_deref(), state.as_deref());
            let invalid = || ErrorData::invalid_params("invalid `inputResponses`", None);
            Some(modern.ok_or_else(invalid)?)
        }
    };
    let RequestMeta { progress, extra, trace, .. } = meta;
    // The client's span: that of the message, or else that of its HTTP request.
    let trace = trace.or_else(|| {
        let parts = context.extensions.get::<http::request::Parts>()?;
        SpanContext::find(|name| parts.headers.get(name)?.to_str().ok())
    });
    Ok(CallRequest { name, arguments, progress, modern, extra, trace })
}
