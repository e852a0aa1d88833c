//! A server that requires more scopes (O6).

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use openclaw_oauth::authorizer::{AuthAttempts, Authorizer, AuthorizerOptions};
use openclaw_oauth::error::AuthError;
use openclaw_testkit::oauth::{Endpoint, OAuthScript, OAuthTestServer};

use crate::support::{User, call, folder, logged_in, options, serve, within};

/// A client with a user who is asked for more scopes only.
async fn start(server: &OAuthTestServer) -> (Authorizer, Arc<User>, tempfile::TempDir) {
    let state = folder();
    logged_in(server, state.path()).await;
    let user = Arc::new(User::approving());
    let options =
        AuthorizerOptions { prompt: Some(user.clone()), ..options(&server.url(), state.path()) };
    (Authorizer::new(options), user, state)
}

fn scopes(text: &str) -> BTreeSet<&str> {
    text.split(' ').collect()
}

/// Handles a 403 that names these scopes.
async fn forbidden(
    client: &Authorizer,
    server: &OAuthTestServer,
    scope: &str,
    attempts: &mut AuthAttempts,
) -> Result<(), AuthError> {
    let mut headers = HeaderMap::new();
    let url = server.url().parse().unwrap();
    let sent = client.authorize(&Method::POST, &url, &mut headers).await.unwrap();
    let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
    let mut headers = HeaderMap::new();
    headers.insert("www-authenticate", challenge.parse().unwrap());
    within(client.challenged(StatusCode::FORBIDDEN, &headers, sent.as_ref(), attempts)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_403_leads_to_a_login_with_the_scopes_so_far_and_the_new_ones() {
    let server = OAuthTestServer::start(OAuthScript::new().tool_scope("echo", "admin"));
    let (client, user, _state) = start(&server).await;
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(user.asked().len(), 1);
    let authorize = server.requests(Endpoint::Authorize);
    assert_eq!(scopes(&authorize[0].query["scope"]), scopes("mcp"));
    assert_eq!(scopes(&authorize[1].query["scope"]), scopes("admin mcp"));
    let granted = client.in_use().unwrap();
    assert_eq!(
        granted.scopes.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        scopes("admin mcp")
    );

    server.expire_access_tokens();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200, "a refresh keeps the scopes");
    assert_eq!((user.asked().len(), server.count(Endpoint::Refresh)), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_leads_to_two_logins_at_most() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let (client, user, _state) = start(&server).await;
    let mut attempts = AuthAttempts::default();
    forbidden(&client, &server, "first", &mut attempts).await.unwrap();
    forbidden(&client, &server, "second", &mut attempts).await.unwrap();
    let refusal = forbidden(&client, &server, "third", &mut attempts).await.unwrap_err();
    let AuthError::InsufficientScope { scopes: wanted } = refusal else { panic!("{refusal}") };
    assert_eq!(wanted, ["third"]);
    assert_eq!(user.asked().len(), 2);
    let last = server.requests(Endpoint::Authorize).pop().unwrap();
    assert_eq!(scopes(&last.query["scope"]), scopes("first mcp second"));
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_that_were_granted_are_not_asked_for_again() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let (client, user, _state) = start(&server).await;
    for wanted in ["mcp", ""] {
        let refusal = forbidden(&client, &server, wanted, &mut AuthAttempts::default()).await;
        assert!(matches!(refusal, Err(AuthError::InsufficientScope { .. })), "{refusal:?}");
    }
    assert!(user.asked().is_empty());
    assert_eq!(server.count(Endpoint::Refresh), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rejects_a_scope_that_was_just_granted_is_not_asked_in_a_loop() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let (client, user, _state) = start(&server).await;
    let mut attempts = AuthAttempts::default();
    forbidden(&client, &server, "admin", &mut attempts).await.unwrap();
    let refusal = forbidden(&client, &server, "admin", &mut attempts).await;
    assert!(matches!(refusal, Err(AuthError::InsufficientScope { .. })), "{refusal:?}");
    assert_eq!(user.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_user_the_missing_scopes_are_reported() {
    let (server, state) = serve(OAuthScript::new().tool_scope("echo", "admin"));
    let (client, _) = logged_in(&server, state.path()).await;
    let refusal = call(&client, &server.url()).await.unwrap_err();
    let AuthError::InsufficientScope { scopes } = refusal else { panic!("{refusal}") };
    assert_eq!(scopes, ["admin"]);
    assert_eq!(server.count(Endpoint::Authorize), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_403_without_a_challenge_is_not_about_tokens() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let (client, user, _state) = start(&server).await;
    let (headers, mut attempts) = (HeaderMap::new(), AuthAttempts::default());
    let refusal = client.challenged(StatusCode::FORBIDDEN, &headers, None, &mut attempts).await;
    assert!(matches!(refusal, Err(AuthError::NotAboutTokens)), "{refusal:?}");
    assert!(user.asked().is_empty());
}
