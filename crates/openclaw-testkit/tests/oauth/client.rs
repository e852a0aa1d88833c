//! A minimal OAuth client that follows the specification, request by request.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use openclaw_testkit::oauth::wire::{self, HttpResponse};
use openclaw_testkit::oauth::{Browser, form};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Nothing listens there: the browser does not fetch it.
pub(crate) const CALLBACK: &str = "http://127.0.0.1:9/callback";
const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-for-tests";

/// A client that is registered with the authorization server of an MCP server.
pub(crate) struct Client {
    pub(crate) mcp: String,
    pub(crate) scope: String,
    pub(crate) resource: String,
    pub(crate) metadata: Value,
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
}

impl Client {
    /// Discovers the authorization server, and registers.
    pub(crate) fn register(mcp: &str, authentication: &str) -> Self {
        let refusal = rpc(mcp, "tools/list", &json!({}), None);
        assert_eq!(refusal.status, 401);
        let challenge = refusal.header("www-authenticate").unwrap();
        let resource = wire::get(parameter(challenge, "resource_metadata").unwrap()).json();
        let issuer = resource["authorization_servers"][0].as_str().unwrap();
        let (origin, path) = match issuer.match_indices('/').nth(2) {
            Some((at, _)) => issuer.split_at(at),
            None => (issuer, ""),
        };
        let path = path.trim_end_matches('/');
        let url = format!("{origin}/.well-known/oauth-authorization-server{path}");
        let metadata = wire::get(&url).json();
        assert_eq!(metadata["issuer"], issuer);
        let registration = json!({
            "client_name": "testkit",
            "application_type": "native",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": authentication,
        });
        let endpoint = metadata["registration_endpoint"].as_str().unwrap();
        let client = wire::post_json(endpoint, &registration, None);
        assert_eq!(client.status, 201, "{}", client.text());
        Self {
            mcp: mcp.to_owned(),
            scope: parameter(challenge, "scope").unwrap_or_default().to_owned(),
            resource: resource["resource"].as_str().unwrap().to_owned(),
            metadata,
            id: client.json()["client_id"].as_str().unwrap().to_owned(),
            secret: client.json()["client_secret"].as_str().map(str::to_owned),
        }
    }

    pub(crate) fn endpoint(&self, name: &str) -> &str {
        self.metadata[format!("{name}_endpoint")].as_str().unwrap()
    }

    pub(crate) fn authorization_url(&self, scope: &str) -> String {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", self.id.as_str()),
            ("redirect_uri", CALLBACK),
            ("state", "the-state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.resource),
        ];
        if !scope.is_empty() {
            pairs.push(("scope", scope));
        }
        format!("{}?{}", self.endpoint("authorization"), form::encode(&pairs))
    }

    /// Sends a request to the token or revocation endpoint.
    pub(crate) fn post(&self, endpoint: &str, pairs: &[(&str, &str)]) -> HttpResponse {
        let mut all = vec![("client_id", self.id.as_str())];
        all.extend(self.secret.as_deref().map(|secret| ("client_secret", secret)));
        all.extend(pairs);
        wire::post_form(self.endpoint(endpoint), &all)
    }

    /// Exchanges the code of a callback.
    pub(crate) fn exchange(&self, callback: &str) -> HttpResponse {
        let answer = form::query(callback);
        assert_eq!(answer["state"], "the-state");
        self.post(
            "token",
            &[
                ("grant_type", "authorization_code"),
                ("code", &answer["code"]),
                ("code_verifier", VERIFIER),
                ("redirect_uri", CALLBACK),
                ("resource", &self.resource),
            ],
        )
    }

    pub(crate) fn refresh(&self, token: &str) -> HttpResponse {
        let resource = ("resource", self.resource.as_str());
        self.post("token", &[("grant_type", "refresh_token"), ("refresh_token", token), resource])
    }

    /// Signs in with this scope; returns the token response.
    pub(crate) fn login(&self, browser: &mut Browser, scope: &str) -> Value {
        let callback = browser.approve(&self.authorization_url(scope));
        let tokens = self.exchange(&callback);
        assert_eq!(tokens.status, 200, "{}", tokens.text());
        tokens.json()
    }

    /// Calls a tool, without a session.
    pub(crate) fn call(&self, tool: &str, token: &str) -> HttpResponse {
        rpc(&self.mcp, "tools/call", &json!({"name": tool, "arguments": {}}), Some(token))
    }
}

/// Sends a request of 2026-07-28, which needs no handshake.
pub(crate) fn rpc(url: &str, method: &str, params: &Value, token: Option<&str>) -> HttpResponse {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "testkit", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend(params["name"].as_str().map(|name| ("mcp-name", name)));
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    wire::send("POST", url, &headers, &body.to_string())
}

/// Returns a parameter of a challenge.
pub(crate) fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}

/// Returns the text of a tool's result.
pub(crate) fn text(response: &HttpResponse) -> String {
    let text = response.json()["result"]["content"][0]["text"].as_str().map(str::to_owned);
    text.unwrap_or_else(|| response.text())
}

pub(crate) fn token<'a>(tokens: &'a Value, kind: &str) -> &'a str {
    tokens[format!("{kind}_token")].as_str().unwrap()
}
