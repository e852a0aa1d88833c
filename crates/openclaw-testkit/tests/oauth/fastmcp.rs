//! `FastMCP` with the authorization server of the Python SDK.

use openclaw_testkit::Peers;
use openclaw_testkit::oauth::{Browser, form};
use serde_json::{Value, json};

use super::client::{Client, text, token};

#[test]
fn a_user_consents_and_the_client_calls_a_tool_and_refreshes() {
    let server = Peers::find().fastmcp_oauth();
    let client = Client::register(server.url(), "client_secret_post");
    assert_eq!(client.scope, "read");
    let callback = Browser::new().deny(&client.authorization_url("read"));
    assert_eq!(form::query(&callback)["error"], "access_denied");

    server.set_access_token_lifetime(7);
    let first = client.login(&mut Browser::new(), "read");
    assert_eq!(first["expires_in"], 7);
    let answer = client.call("whoami", token(&first, "access"));
    let result: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(result, json!({"client": client.id, "scopes": ["read"]}));

    server.expire_tokens();
    assert_eq!(client.call("whoami", token(&first, "access")).status, 401);
    let second = client.refresh(token(&first, "refresh")).json();
    assert_eq!(client.call("whoami", token(&second, "access")).status, 200);
    assert_eq!(client.refresh(token(&first, "refresh")).json()["error"], "invalid_grant");
    assert_eq!(server.token_requests("refresh_token").len(), 2);

    server.revoke_refresh_tokens();
    assert_eq!(client.refresh(token(&second, "refresh")).json()["error"], "invalid_grant");
}

#[test]
fn a_tool_is_hidden_without_its_scope_and_a_revoked_token_is_invalid() {
    let server = Peers::find().fastmcp_oauth();
    let client = Client::register(server.url(), "client_secret_post");
    let tokens = client.login(&mut Browser::new(), "read");
    let answer = client.call("admin_task", token(&tokens, "access"));
    assert!(!text(&answer).contains("done"), "{}", answer.text());
    let tokens = client.login(&mut Browser::new(), "read admin");
    assert_eq!(text(&client.call("admin_task", token(&tokens, "access"))), "done");
    let revoked = client.post("revocation", &[("token", token(&tokens, "refresh"))]);
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    assert_eq!(client.call("whoami", token(&tokens, "access")).status, 401);
}
