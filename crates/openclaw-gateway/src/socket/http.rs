//! Plain HTTP: health, readiness, OAuth client metadata, the hub, metrics, the Control UI, and the upgrade to
//! WebSocket.
//!
//! `/mcp` does not pass through the router, which costs as much as the rest of a request: programs call
//! tools over it.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tungstenite::handshake::derive_accept_key;

use super::body::ResponseBody;
use super::connection_info::{ConnectionInfo, Upgrade};
use super::listener::Gate;
use super::{CallerService, bearer, hub, metrics, origin, pages};
use crate::client_metadata;

/// Authorization servers fetch the document at every login, and may keep it for a while.
const METADATA_CACHE: &str = "public, max-age=3600";
/// The body of a response to another host or origin.
const FORBIDDEN: &str = "forbidden: `Host` or `Origin` is not allowed (`gateway.allowedOrigins`)\n";

/// All routes.
pub(super) struct Routes {
    service: Arc<dyn CallerService>,
    gate: Arc<Gate>,
    /// Those besides the hub.
    router: TowerToHyperService<Router>,
}

impl Routes {
    pub(super) fn new(service: Arc<dyn CallerService>, gate: Arc<Gate>) -> Self {
        let router = Router::new()
            .route("/", get(page_or_upgrade))
            .route("/ws", get(upgrade))
            .route("/healthz", get(|| async { Json(json!({ "ok": true })) }))
            .route("/readyz", get(ready))
            .route(client_metadata::PATH, get(metadata))
            .route("/metrics", get(metrics::handle))
            .route(bearer::REGISTER, post(bearer::no_registration))
            .fallback(pages::serve)
            .layer(Extension(Arc::clone(&gate)))
            .with_state(Arc::clone(&service));
        Self { service, gate, router: TowerToHyperService::new(router) }
    }

    /// Handles a request: checks host and origin before anything else, and adds the security headers
    /// to every response.
    pub(super) async fn respond(
        &self,
        request: Request<Incoming>,
        connection: &ConnectionInfo,
    ) -> Response<ResponseBody> {
        // Read for every request: the configuration may have changed.
        let allowed = || self.service.allowed_origins();
        let (target, headers) = (request.uri(), request.headers());
        let mut response = if !origin::is_allowed(target, headers, connection.peer.local, allowed) {
            (StatusCode::FORBIDDEN, FORBIDDEN).into_response().map(ResponseBody::from)
        } else if target.path() == hub::PATH {
            hub::handle(&*self.service, &self.gate, connection, request).await
        } else {
            // Boxed: the future would enlarge that of a call.
            Box::pin(self.other(request, connection)).await
        };
        add_security_headers(response.headers_mut());
        response
    }

    async fn other(
        &self,
        mut request: Request<Incoming>,
        connection: &ConnectionInfo,
    ) -> Response<ResponseBody> {
        request.extensions_mut().insert(connection.clone());
        match self.router.call(request.map(Body::new)).await {
            Ok(response) => response.map(ResponseBody::from),
            Err(never) => match never {},
        }
    }
}

async fn ready(State(service): State<Arc<dyn CallerService>>) -> Response {
    let is_ready = service.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": is_ready }))).into_response()
}

async fn metadata(State(service): State<Arc<dyn CallerService>>) -> Response {
    match service.client_metadata() {
        Some(metadata) => {
            ([(header::CACHE_CONTROL, METADATA_CACHE)], Json(metadata)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Whether a header has this word.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    words.any(|it| it.trim().eq_ignore_ascii_case(word))
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    has_word(headers, header::UPGRADE, "websocket")
        && has_word(headers, header::CONNECTION, "upgrade")
}

/// The address of the WebSocket is also that of the Control UI.
async fn page_or_upgrade(
    service: State<Arc<dyn CallerService>>,
    connection: Extension<ConnectionInfo>,
    method: Method,
    target: Uri,
    headers: HeaderMap,
) -> Response {
    if is_upgrade(&headers) {
        return upgrade(connection, headers).await;
    }
    pages::serve(service, method, target, headers).await
}

/// The handshake of RFC 6455, section 4.2. A request without an upgrade gets 404.
async fn upgrade(Extension(connection): Extension<ConnectionInfo>, headers: HeaderMap) -> Response {
    if !is_upgrade(&headers) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let (Some(key), true) = (key, has_word(&headers, header::SEC_WEBSOCKET_VERSION, "13")) else {
        let version = [(header::SEC_WEBSOCKET_VERSION, "13")];
        return (StatusCode::BAD_REQUEST, version).into_response();
    };
    connection.upgrade_to(Upgrade::WebSocket);
    let headers = [
        (header::CONNECTION, "upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes())),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// Adds the headers that every response has. A page has a policy of its own, which stays.
fn add_security_headers(headers: &mut HeaderMap) {
    let own = std::mem::replace(headers, EVERYWHERE.clone());
    headers.extend(own);
}

/// The headers that every response has; a copy costs less than an insertion of each.
static EVERYWHERE: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = HeaderMap::with_capacity(2 * SECURITY.len());
    for (name, value) in SECURITY {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
});

const SECURITY: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
