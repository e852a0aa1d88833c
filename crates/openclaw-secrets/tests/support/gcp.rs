//! Google Cloud: Secret Manager, the token endpoint of OAuth, and the metadata server.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::Server;

pub const METADATA_TOKEN: &str = "ya29.metadata-token-0123456789";
pub const USER_TOKEN: &str = "ya29.user-token-0123456789";

/// What the server accepts and has received.
#[derive(Default)]
pub struct Seen {
    /// The bearer token of the last request.
    pub bearer: String,
    pub quota_project: Option<String>,
    /// Accepts self-signed tokens; the test checks their signature.
    pub accept_jwt: bool,
}

pub type Shared = Arc<Mutex<Seen>>;

pub async fn start() -> (Server, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/", get(async || flavoured("computeMetadata/\n")))
        .route("/computeMetadata/v1/project/project-id", get(project))
        .route("/computeMetadata/v1/universe/universe-domain", get(universe))
        .route("/computeMetadata/v1/instance/service-accounts/default/token", get(metadata_token))
        .route("/token", post(token))
        .route("/v1/projects/{project}/secrets/{secret}/versions/{version}", get(access))
        .with_state(shared.clone());
    (Server::start(router).await, shared)
}

fn flavoured(body: impl IntoResponse) -> Response {
    ([("Metadata-Flavor", "Google")], body).into_response()
}

fn is_flavoured(headers: &HeaderMap) -> bool {
    headers.get("Metadata-Flavor").is_some_and(|value| value == "Google")
}

async fn project(headers: HeaderMap) -> Response {
    if is_flavoured(&headers) {
        flavoured("metadata-project")
    } else {
        StatusCode::FORBIDDEN.into_response()
    }
}

async fn universe(headers: HeaderMap) -> Response {
    if is_flavoured(&headers) {
        flavoured("googleapis.com")
    } else {
        StatusCode::FORBIDDEN.into_response()
    }
}

async fn metadata_token(headers: HeaderMap) -> Response {
    if !is_flavoured(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let token =
        json!({ "access_token": METADATA_TOKEN, "expires_in": 3599, "token_type": "Bearer" });
    flavoured(Json(token))
}

async fn token(Json(body): Json<Value>) -> (StatusCode, Json<Value>) {
    if body["grant_type"] == "refresh_token" && body["refresh_token"] == "1//good-refresh-token" {
        let token = json!({
            "access_token": USER_TOKEN, "expires_in": 3599, "token_type": "Bearer", "scope": "",
        });
        (StatusCode::OK, Json(token))
    } else {
        let error = json!({ "error": "invalid_grant", "error_description": "Bad Request" });
        (StatusCode::BAD_REQUEST, Json(error))
    }
}

fn error(code: u16, status: &str, message: &str) -> Response {
    let body = json!({ "error": { "code": code, "message": message, "status": status } });
    (StatusCode::from_u16(code).expect("status"), Json(body)).into_response()
}

async fn access(
    State(shared): State<Shared>,
    Path((project, secret, version)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let header = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let bearer = header("authorization").strip_prefix("Bearer ").unwrap_or_default();
    let accepted = {
        let mut seen = shared.lock().expect("seen");
        seen.bearer = bearer.to_owned();
        let quota = headers.get("x-goog-user-project");
        seen.quota_project = quota.and_then(|v| v.to_str().ok()).map(str::to_owned);
        [METADATA_TOKEN, USER_TOKEN].contains(&bearer) || seen.accept_jwt
    };
    if !accepted {
        let message = format!("Request had invalid authentication credentials: {bearer}");
        return error(401, "UNAUTHENTICATED", &message);
    }
    let Some(version) = version.strip_suffix(":access") else {
        return error(404, "NOT_FOUND", "Method not found.");
    };
    let name = format!("projects/{project}/secrets/{secret}/versions/{version}");
    let payload = |data: &[u8], sum: u32| {
        let payload = json!({ "data": STANDARD.encode(data), "dataCrc32c": sum.to_string() });
        Json(json!({ "name": name, "payload": payload })).into_response()
    };
    match (secret.as_str(), version) {
        // The check value of CRC-32C, from its definition.
        ("digits", "latest" | "1") => payload(b"123456789", 0xE306_9283),
        ("damaged", _) => payload(b"123456780", 0xE306_9283),
        ("binary", _) => {
            let payload = json!({ "data": STANDARD.encode(b"\xff\xfe") });
            Json(json!({ "name": name, "payload": payload })).into_response()
        }
        ("project", _) => {
            let payload = json!({ "data": STANDARD.encode(&project) });
            Json(json!({ "name": name, "payload": payload })).into_response()
        }
        ("disabled", _) => error(
            400,
            "FAILED_PRECONDITION",
            &format!("Secret Version [{name}] is in DISABLED state."),
        ),
        ("forbidden", _) => error(
            403,
            "PERMISSION_DENIED",
            &format!(
                "Permission 'secretmanager.versions.access' denied for resource '{name}' (or it may not exist)."
            ),
        ),
        ("busy", _) => error(503, "UNAVAILABLE", "The service is currently unavailable."),
        _ => error(404, "NOT_FOUND", &format!("Secret Version [{name}] not found.")),
    }
}
