//! The scripted authorization server checks what a client must send. The rest of it, and the real
//! authorization servers, are tested by their clients: `openclaw-oauth` and `openclaw-mcp`.
#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use openclaw_testkit::oauth::wire::{self, HttpResponse};
use openclaw_testkit::oauth::{Browser, Endpoint, OAuthScript, OAuthTestServer, form};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Nothing listens there: the browser does not fetch it.
const CALLBACK: &str = "http://127.0.0.1:9/callback";
const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-for-tests";

/// A client that follows the specification, request by request.
struct Client<'a> {
    server: &'a OAuthTestServer,
    id: String,
    secret: Option<&'static str>,
}

impl<'a> Client<'a> {
    fn register(server: &'a OAuthTestServer) -> Self {
        let registration =
            json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"});
        let endpoint = format!("{}/register", server.issuer());
        let client = wire::post_json(&endpoint, &registration, None).json();
        Self { server, id: client["client_id"].as_str().unwrap().to_owned(), secret: None }
    }

    fn authorization_url(&self) -> String {
        let query = form::encode(&[
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", CALLBACK),
            ("state", "the-state"),
            ("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))),
            ("code_challenge_method", "S256"),
            ("resource", &self.server.url()),
            ("scope", "mcp"),
        ]);
        format!("{}/authorize?{query}", self.server.issuer())
    }

    /// Sends a token request.
    fn post(&self, pairs: &[(&str, &str)]) -> HttpResponse {
        let mut all = vec![("client_id", self.id.as_str())];
        all.extend(self.secret.map(|secret| ("client_secret", secret)));
        all.extend(pairs);
        wire::post_form(&format!("{}/token", self.server.issuer()), &all)
    }

    /// Exchanges the code of a callback, for this resource.
    fn exchange(&self, callback: &str, resource: &str) -> Value {
        let code = &form::query(callback)["code"];
        self.post(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", CALLBACK),
            ("resource", resource),
        ])
        .json()
    }

    fn login(&self) -> Value {
        let callback = Browser::new().approve(&self.authorization_url());
        let tokens = self.exchange(&callback, &self.server.url());
        assert!(tokens["access_token"].is_string(), "{tokens}");
        tokens
    }

    fn refresh(&self, tokens: &Value) -> HttpResponse {
        let token = tokens["refresh_token"].as_str().unwrap();
        self.post(&[("grant_type", "refresh_token"), ("refresh_token", token)])
    }
}

#[test]
fn codes_verifiers_resources_and_redirect_uris_are_checked() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server);
    let callback = Browser::new().approve(&client.authorization_url());
    let code = &form::query(&callback)["code"];
    for code in ["another", code] {
        let without_verifier = [("grant_type", "authorization_code"), ("code", code)];
        assert_eq!(client.post(&without_verifier).json()["error"], "invalid_grant");
    }
    let again = client.exchange(&callback, &server.url());
    assert_eq!(again["error"], "invalid_grant", "a code is used once");

    let url = client.authorization_url();
    assert_eq!(wire::get(&url.replace("callback", "elsewhere")).status, 400);
    let plain = wire::get(&url.replace("S256", "plain"));
    assert!(plain.header("location").unwrap().contains("error=invalid_request"));

    let callback = Browser::new().approve(&url);
    let other = client.exchange(&callback, "http://127.0.0.1:9/mcp");
    assert_eq!(other["error"], "invalid_target");
}

#[test]
fn refresh_tokens_are_rotated_and_their_reuse_ends_the_login() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server);
    let first = client.login();
    let second = client.refresh(&first).json();
    let is_valid = || server.is_valid(second["access_token"].as_str().unwrap());
    assert!(is_valid());
    assert_eq!(client.refresh(&first).json()["error"], "invalid_grant");
    assert!(!is_valid());
    assert_eq!(client.refresh(&second).json()["error"], "invalid_grant");
}

#[test]
fn of_two_concurrent_refreshes_only_one_succeeds() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server);
    let tokens = client.login();
    server.hold(Endpoint::Refresh);
    let mut statuses = thread::scope(|scope| {
        let refresh = || client.refresh(&tokens).status;
        let both = [scope.spawn(refresh), scope.spawn(refresh)];
        server.wait_for(Endpoint::Refresh, 2);
        server.release(Endpoint::Refresh);
        both.map(|thread| thread.join().unwrap())
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}

#[test]
fn registered_clients_and_client_documents_are_accepted() {
    let script = OAuthScript {
        clients: vec![("known".into(), Some("its secret".into()))],
        client_id_documents: true,
        ..OAuthScript::new()
    };
    let server = OAuthTestServer::start(script);
    let mut client = Client { server: &server, id: "known".into(), secret: None };
    let callback = Browser::new().approve(&client.authorization_url());
    assert_eq!(client.exchange(&callback, &server.url())["error"], "invalid_client");
    client.secret = Some("its secret");
    client.login();
    client = Client { server: &server, id: "https://client.example/me.json".into(), secret: None };
    client.login();
}
