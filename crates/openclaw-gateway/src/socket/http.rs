//! Plain HTTP: health, readiness, OAuth client metadata, the hub, metrics, and the upgrade to
//! WebSocket.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::json;
use tungstenite::handshake::derive_accept_key;

use super::listener::Gate;
use super::visit::{RequestInfo, Upgrade};
use super::{CallerService, hub, metrics, origin};
use crate::client_metadata;

/// Authorization servers fetch the document at every login, and may keep it for a while.
const METADATA_CACHE: &str = "public, max-age=3600";

/// All routes.
pub(super) fn router(desk: Arc<dyn CallerService>, gate: Arc<Gate>) -> Router {
    Router::new()
        .route("/", get(upgrade))
        .route("/ws", get(upgrade))
        .route("/healthz", get(|| async { Json(json!({ "ok": true })) }))
        .route("/readyz", get(ready))
        .route(client_metadata::PATH, get(metadata))
        .route("/mcp", any(hub::handle))
        .route("/metrics", get(metrics::handle))
        .layer(Extension(gate))
        .layer(middleware::from_fn_with_state(Arc::clone(&desk), guard))
        .with_state(desk)
}

async fn ready(State(desk): State<Arc<dyn CallerService>>) -> Response {
    let is_ready = desk.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": is_ready }))).into_response()
}

async fn metadata(State(desk): State<Arc<dyn CallerService>>) -> Response {
    match desk.client_metadata() {
        Some(metadata) => {
            ([(header::CACHE_CONTROL, METADATA_CACHE)], Json(metadata)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The handshake of RFC 6455, section 4.2. A request without an upgrade gets 404.
async fn upgrade(Extension(visit): Extension<RequestInfo>, headers: HeaderMap) -> Response {
    let says = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let mut words = values.flat_map(|value| value.split(','));
        words.any(|it| it.trim().eq_ignore_ascii_case(word))
    };
    if !says(header::UPGRADE, "websocket") || !says(header::CONNECTION, "upgrade") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let (Some(key), true) = (key, says(header::SEC_WEBSOCKET_VERSION, "13")) else {
        let version = [(header::SEC_WEBSOCKET_VERSION, "13")];
        return (StatusCode::BAD_REQUEST, version).into_response();
    };
    visit.upgrade_to(Upgrade::WebSocket);
    let headers = [
        (header::CONNECTION, "upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes())),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Checks host and origin before anything else, and adds the security headers to every response.
async fn guard(
    State(desk): State<Arc<dyn CallerService>>,
    Extension(visit): Extension<RequestInfo>,
    request: Request,
    next: Next,
) -> Response {
    // Read for every request: the configuration may have changed.
    let allowed = desk.allowed_origins();
    let (target, headers) = (request.uri(), request.headers());
    let mut response = if origin::is_allowed(target, headers, visit.peer.local, &allowed) {
        next.run(request).await
    } else {
        StatusCode::FORBIDDEN.into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in SECURITY {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Unless the handler has set it.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

const SECURITY: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
