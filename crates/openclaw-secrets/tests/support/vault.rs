//! A Vault server with `kv` (version 2), `old` (version 1) and AppRole, as in the HTTP API.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::Server;

pub const TOKEN: &str = "hvs.test-token-0123456789";

/// How the server behaves and what it has received.
#[derive(Default)]
pub struct Behaviour {
    /// Denies the list of mounts, as for a token with a narrow policy.
    pub hide_mounts: bool,
    pub sealed: bool,
    pub namespace: Option<&'static str>,
    /// Reads of secrets wait for this barrier.
    pub rendezvous: Option<Arc<Barrier>>,
    /// Logins issue tokens without the policy `default`.
    pub narrow_role: bool,
    /// Tokens issued by logins; the last one is valid.
    pub issued: Vec<String>,
    pub reads: Vec<String>,
}

pub type Shared = Arc<Mutex<Behaviour>>;
type Answer = (StatusCode, Json<Value>);

pub async fn start(behaviour: Behaviour) -> (Server, Shared) {
    let (router, shared) = router(behaviour);
    (Server::start(router).await, shared)
}

pub fn router(behaviour: Behaviour) -> (Router, Shared) {
    let shared = Arc::new(Mutex::new(behaviour));
    let router = Router::new()
        .route("/v1/sys/internal/ui/mounts/{*path}", get(mounts))
        .route("/v1/auth/approle/login", post(login))
        .route("/v1/auth/token/lookup-self", get(lookup))
        .route("/v1/{*path}", get(read))
        .with_state(shared.clone());
    (router, shared)
}

fn errors(status: u16, errors: &[&str]) -> Answer {
    (StatusCode::from_u16(status).expect("status"), Json(json!({ "errors": errors })))
}

fn data(data: &Value) -> Answer {
    let body = json!({
        "request_id": "7f2c", "lease_id": "", "renewable": false, "lease_duration": 0,
        "data": data, "wrap_info": null, "warnings": null, "auth": null,
    });
    (StatusCode::OK, Json(body))
}

/// Returns the error that applies to any request, if any.
fn refusal(behaviour: &Behaviour, headers: &HeaderMap) -> Option<Answer> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let token = header("x-vault-token").unwrap_or_default();
    let is_valid = token == TOKEN || behaviour.issued.last().is_some_and(|last| last == token);
    if behaviour.sealed {
        Some(errors(503, &["Vault is sealed"]))
    } else if header("x-vault-request") != Some("true") {
        Some(errors(412, &["missing required header"]))
    } else if header("x-vault-namespace") != behaviour.namespace || !is_valid {
        // The real server does not echo the token; a careless proxy in front of it might.
        Some(errors(403, &["permission denied", token]))
    } else {
        None
    }
}

async fn mounts(
    State(shared): State<Shared>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let behaviour = shared.lock().expect("behaviour");
    if let Some(refusal) = refusal(&behaviour, &headers) {
        return refusal;
    }
    let (mount, options) = match path.split('/').next() {
        _ if behaviour.hide_mounts => (None, Value::Null),
        Some("kv") => (Some("kv/"), json!({ "version": "2" })),
        Some("old") => (Some("old/"), Value::Null),
        _ => (None, Value::Null),
    };
    match mount {
        Some(mount) => data(&json!({
            "accessor": "kv_1", "config": {}, "description": "", "local": false,
            "options": options, "path": mount, "type": "kv", "uuid": "5a",
        })),
        None => errors(
            403,
            &["preflight capability check returned 403, please ensure client's policies grant \
               access to path"],
        ),
    }
}

async fn login(State(shared): State<Shared>, Json(body): Json<Value>) -> Answer {
    let mut behaviour = shared.lock().expect("behaviour");
    if body["role_id"] != "role-1" || body["secret_id"] != "secret-id-0123456789" {
        return errors(400, &["invalid role or secret ID"]);
    }
    let token = format!("hvs.issued-{}-abcdefghijk", behaviour.issued.len());
    behaviour.issued.push(token.clone());
    let policies = if behaviour.narrow_role { json!(["team"]) } else { json!(["default", "team"]) };
    let auth = json!({
        "client_token": token, "accessor": "a", "policies": policies, "lease_duration": 1200,
        "renewable": true,
    });
    (StatusCode::OK, Json(json!({ "auth": auth, "data": null })))
}

async fn lookup(State(shared): State<Shared>, headers: HeaderMap) -> Answer {
    let behaviour = shared.lock().expect("behaviour");
    match refusal(&behaviour, &headers) {
        Some(refusal) => refusal,
        None if behaviour.narrow_role => errors(403, &["permission denied"]),
        None => data(&json!({ "policies": ["default", "team"], "ttl": 1000, "type": "service" })),
    }
}

async fn read(
    State(shared): State<Shared>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let rendezvous = {
        let mut behaviour = shared.lock().expect("behaviour");
        if let Some(refusal) = refusal(&behaviour, &headers) {
            return refusal;
        }
        behaviour.reads.push(path.clone());
        behaviour.rendezvous.clone()
    };
    if let Some(rendezvous) = rendezvous {
        rendezvous.wait().await;
    }
    let metadata = |deletion_time: &str| {
        json!({
            "created_time": "2026-01-01T00:00:00Z", "custom_metadata": null,
            "deletion_time": deletion_time, "destroyed": false, "version": 1,
        })
    };
    let version_2 = |fields: Value| data(&json!({ "data": fields, "metadata": metadata("") }));
    match path.as_str() {
        "kv/data/github" => version_2(json!({ "token": "kv2-token", "user": "kv2-user" })),
        "kv/data/only" => version_2(json!({ "password": "kv2-only" })),
        "kv/data/value" => version_2(json!({ "value": "kv2-value", "other": 1 })),
        "kv/data/types" => version_2(json!({ "number": 42, "list": ["hunter22"], "empty": "" })),
        "kv/data/none" => version_2(json!({})),
        "kv/data/deleted" => {
            let (_, body) =
                data(&json!({ "data": null, "metadata": metadata("2026-01-02T00:00:00Z") }));
            (StatusCode::NOT_FOUND, body)
        }
        path if path.starts_with("kv/data/many/") => version_2(json!({ "value": path })),
        "old/github" => data(&json!({ "token": "kv1-token" })),
        "kv/data/forbidden" | "old/forbidden" => errors(403, &["permission denied"]),
        _ => errors(404, &[]),
    }
}
