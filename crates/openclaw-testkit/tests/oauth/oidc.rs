//! `oidc-provider`, and the MCP server that it protects.

use openclaw_testkit::oauth::{Browser, form};
use openclaw_testkit::{OidcOptions, OidcProvider, Peers, ProtectedOptions, ProtectedServer};
use openclaw_testkit::{oauth::wire, processes};
use serde_json::{Value, json};

use super::client::{CALLBACK, Client, parameter, rpc, text, token};

fn start(options: &OidcOptions) -> (OidcProvider, ProtectedServer) {
    let peers = Peers::find();
    let provider = peers.oidc_provider(options);
    let server = peers.protected_server(&provider, &ProtectedOptions::default());
    (provider, server)
}

#[test]
fn a_user_signs_in_consents_and_calls_a_tool() {
    for access_token_format in ["jwt", "opaque"] {
        let options = OidcOptions { access_token_format, ..OidcOptions::default() };
        let (provider, server) = start(&options);
        assert!(provider.requests().is_empty() && server.seen().is_empty());
        let client = Client::register(server.url(), "none");
        assert_eq!(client.scope, "mcp:read");
        assert_eq!(client.metadata["code_challenge_methods_supported"], json!(["S256"]));

        let callback = Browser::of("bob").approve(&client.authorization_url("mcp:read"));
        assert!(callback.starts_with(CALLBACK));
        assert_eq!(form::query(&callback)["iss"], provider.issuer());
        let tokens = client.exchange(&callback).json();
        assert_eq!(tokens["token_type"], "Bearer");
        let result = text(&client.call("whoami", token(&tokens, "access")));
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["subject"], "bob");
        assert_eq!(result["scopes"], json!(["mcp:read"]));

        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(
            seen[0],
            json!({"method": "POST", "scheme": null, "sha256": null, "status": 401})
        );
        assert_eq!((&seen[1]["scheme"], &seen[1]["status"]), (&json!("Bearer"), &json!(200)));
        let requests = provider.token_requests("authorization_code");
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0]["form"]["resource"], server.url());
    }
}

#[test]
fn a_request_without_a_scope_gets_the_default_and_legacy_clients_are_served() {
    let (_provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "client_secret_post");
    let tokens = client.login(&mut Browser::new(), "");
    assert_eq!(tokens["scope"], "mcp:read");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "testkit", "version": "0"}
    }});
    let answer = wire::post_json(server.url(), &body, Some(token(&tokens, "access")));
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25", "{}", answer.text());
}

#[test]
fn a_user_who_denies_is_sent_back_with_an_error() {
    let (_provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "none");
    let callback = Browser::new().deny(&client.authorization_url("mcp:read"));
    let answer = form::query(&callback);
    assert_eq!(answer["error"], "access_denied");
    assert_eq!(answer["state"], "the-state");
    assert!(!answer.contains_key("code"));
}

#[test]
fn a_tool_that_needs_another_scope_is_refused_until_the_user_grants_it() {
    let (_provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "none");
    let mut browser = Browser::new();
    let tokens = client.login(&mut browser, "mcp:read");
    let refusal = client.call("admin_task", token(&tokens, "access"));
    assert_eq!(refusal.status, 403);
    let challenge = refusal.header("www-authenticate").unwrap();
    assert_eq!(parameter(challenge, "error"), Some("insufficient_scope"));
    assert_eq!(parameter(challenge, "scope"), Some("mcp:admin"));
    assert!(parameter(challenge, "resource_metadata").is_some());
    let tokens = client.login(&mut browser, "mcp:read mcp:admin");
    let answer = client.call("admin_task", token(&tokens, "access"));
    assert_eq!((answer.status, text(&answer).as_str()), (200, "\"done\""));
}

#[test]
fn refresh_tokens_are_rotated_and_their_reuse_ends_the_login() {
    let (provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "none");
    let first = client.login(&mut Browser::new(), "mcp:read");
    server.expire_tokens();
    assert_eq!(client.call("whoami", token(&first, "access")).status, 401);
    let second = client.refresh(token(&first, "refresh")).json();
    assert_eq!(client.call("whoami", token(&second, "access")).status, 200);
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    assert_eq!(client.refresh(token(&first, "refresh")).json()["error"], "invalid_grant");
    assert_eq!(client.refresh(token(&second, "refresh")).json()["error"], "invalid_grant");
    let requests = provider.token_requests("refresh_token");
    let outcomes: Vec<_> = requests.iter().map(|request| &request["status"]).collect();
    assert_eq!(outcomes, [200, 400, 400]);
    assert_eq!(requests[1]["error"], "invalid_grant");
}

#[test]
fn tokens_can_be_short_lived_revoked_and_forgotten() {
    let options = OidcOptions { access_token_format: "opaque", ..OidcOptions::default() };
    let (provider, server) = start(&options);
    let client = Client::register(server.url(), "none");
    provider.set_access_token_lifetime(7);
    let tokens = client.login(&mut Browser::new(), "mcp:read");
    assert_eq!(tokens["expires_in"], 7);

    // RFC 7009: with the refresh token, the access token is revoked.
    let revoked = client.post("revocation", &[("token", token(&tokens, "refresh"))]);
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    assert_eq!(client.refresh(token(&tokens, "refresh")).json()["error"], "invalid_grant");
    assert_eq!(client.call("whoami", token(&tokens, "access")).status, 401);

    let tokens = client.login(&mut Browser::new(), "mcp:read");
    provider.revoke_refresh_tokens();
    assert_eq!(client.refresh(token(&tokens, "refresh")).json()["error"], "invalid_grant");

    provider.forget_clients();
    assert_eq!(client.refresh(token(&tokens, "refresh")).json()["error"], "invalid_client");
}

#[test]
fn the_token_endpoint_fails_on_command() {
    let (provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "none");
    let tokens = client.login(&mut Browser::new(), "mcp:read");
    provider.fail("/token", 503, 1);
    provider.delay("/token", 10);
    assert_eq!(client.refresh(token(&tokens, "refresh")).status, 503);
    assert_eq!(client.refresh(token(&tokens, "refresh")).status, 200);
}

#[test]
fn refresh_tokens_registration_and_dpop_are_options() {
    let peers = Peers::find();
    let options = OidcOptions {
        refresh_tokens: "never",
        registration: false,
        clients: vec![json!({
            "client_id": "known",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
        })],
        ..OidcOptions::default()
    };
    let provider = peers.oidc_provider(&options);
    let metadata = format!("{}/.well-known/oauth-authorization-server", provider.issuer());
    let metadata = wire::get(&metadata).json();
    assert!(metadata["registration_endpoint"].is_null());
    let client = Client {
        mcp: String::new(),
        scope: String::new(),
        resource: "http://127.0.0.1:9/mcp".into(),
        metadata,
        id: "known".into(),
        secret: None,
    };
    let tokens = client.login(&mut Browser::new(), "mcp:read");
    assert!(tokens["refresh_token"].is_null());

    let provider = peers.oidc_provider(&OidcOptions { dpop: true, ..OidcOptions::default() });
    let options = ProtectedOptions { dpop: true, ..ProtectedOptions::default() };
    let server = peers.protected_server(&provider, &options);
    let refusal = rpc(server.url(), "tools/list", &json!({}), None);
    assert!(refusal.header("www-authenticate").unwrap().starts_with("DPoP "));
    let client = Client::register(server.url(), "none");
    let callback = Browser::new().approve(&client.authorization_url("mcp:read"));
    let refusal = client.exchange(&callback);
    assert_eq!((refusal.status, &refusal.json()["error"]), (400, &json!("invalid_grant")));
}

#[test]
fn a_killed_provider_starts_again_at_its_address_without_its_clients() {
    let (mut provider, server) = start(&OidcOptions::default());
    let client = Client::register(server.url(), "none");
    let tokens = client.login(&mut Browser::new(), "mcp:read");
    let pid = provider.process().pid();
    provider.process().kill();
    assert!(!processes::is_alive(pid));
    provider.process().start_again();
    assert_eq!(client.refresh(token(&tokens, "refresh")).json()["error"], "invalid_client");
}
