//! `/metrics`: the numbers of the gateway, for scrapers with a token.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use openclaw_metrics::prometheus::Format;
use openclaw_protocol::Scope;

use super::CallerService;
use super::bearer::{authenticate, bearer};
use super::listener::Gate;
use super::request_info::RequestInfo;

/// Handles a request to `/metrics`. `Host` and `Origin` were checked.
pub(super) async fn handle(
    State(desk): State<Arc<dyn CallerService>>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(visit): Extension<RequestInfo>,
    headers: HeaderMap,
) -> Response {
    let Some(metrics) = desk.metrics_access() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let own = metrics.token.as_ref();
    let shown = bearer(&headers);
    let is_scraper = own.is_some() && shown.as_ref() == own && !gate.is_blocked(visit.peer);
    if !is_scraper && let Err(response) = authenticate(&headers, &visit, &gate, Scope::Metrics) {
        return *response;
    }
    visit.is_authenticated();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::accepted(accept);
    match desk.metrics(format) {
        Some(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
