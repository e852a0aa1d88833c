//! `/metrics`: the numbers of the gateway, for scrapers with a token.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use openclaw_metrics::prometheus::Format;
use openclaw_protocol::Scope;

use super::CallerService;
use super::bearer::{authenticate, bearer};
use super::connection_info::ConnectionInfo;
use super::listener::Gate;

/// Handles a request to `/metrics`. `Host` and `Origin` were checked.
pub(super) async fn handle(
    State(service): State<Arc<dyn CallerService>>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(connection): Extension<ConnectionInfo>,
    headers: HeaderMap,
) -> Response {
    let Some(metrics) = service.metrics_access() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let own = metrics.token.as_ref();
    let shown = bearer(&headers);
    let is_scraper = own.is_some() && shown.as_ref() == own && !gate.is_blocked(connection.peer);
    if !is_scraper && let Err(response) = authenticate(&headers, &connection, &gate, Scope::Metrics)
    {
        return *response;
    }
    connection.is_authenticated();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::accepted(accept);
    match service.metrics(format) {
        Some(text) => ([(header::CONTENT_TYPE, format.content_type())], text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
