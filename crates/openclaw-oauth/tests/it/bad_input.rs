//! Servers and files that are broken, or try to cheat.

use std::collections::BTreeSet;
use std::fs;

use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::settings::AuthSettings;
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Endpoint, Fake, OAuthScript, OAuthTestServer};
use serde_json::{Value, json};

use crate::support::{
    User, assert_login_required, call, client, folder, grant_file, key, logged_in, login,
    options_with, serve, store, within,
};

/// Logs in to a server that must not be trusted; returns the error. The browser is never opened.
async fn refused(server: &OAuthTestServer) -> AuthError {
    let (state, user) = (folder(), User::approving());
    let client = client(server, state.path());
    let error = within(client.login(&user, &BTreeSet::new())).await.unwrap_err();
    assert!(user.asked().is_empty(), "the browser was opened: {error}");
    assert!(store(state.path()).load(&key(server)).await.unwrap().is_none());
    error
}

/// The metadata of a server, changed.
fn metadata(server: &OAuthTestServer, change: impl FnOnce(&mut Value)) -> Fake {
    let issuer = server.issuer();
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "revocation_endpoint": format!("{issuer}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    change(&mut document);
    Fake::Json(200, document)
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_is_no_metadata_is_rejected_before_the_browser_opens() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let fakes = [
        Fake::Html,
        Fake::Huge,
        Fake::Status(404),
        Fake::Status(503),
        Fake::HangUp,
        Fake::Redirect("http://10.0.0.1/metadata".into()),
        Fake::Redirect("https://10.0.0.1/metadata".into()),
        Fake::Redirect("https://169.254.169.254/latest/meta-data".into()),
        Fake::Redirect("https://[fd00::1]/metadata".into()),
        Fake::Redirect("file:///etc/passwd".into()),
        Fake::Json(200, json!([])),
        Fake::Json(200, json!({"issuer": 1})),
    ];
    for endpoint in [Endpoint::ServerMetadata, Endpoint::ResourceMetadata] {
        for fake in &fakes {
            // Without any resource metadata, a server is treated as one of 2025-03-26.
            if endpoint == Endpoint::ResourceMetadata && *fake == Fake::Status(404) {
                continue;
            }
            server.change(|script| script.faults = vec![(endpoint, fake.clone(), 0)]);
            let error = refused(&server).await;
            let expected = match fake {
                Fake::Redirect(_) => matches!(error, AuthError::Refused { .. }),
                Fake::Status(503) | Fake::HangUp => error.is_temporary(),
                _ => matches!(error, AuthError::Invalid { .. }),
            };
            assert!(expected, "{endpoint:?} {fake:?}: {error:?}");
            assert!(error.to_string().len() < 500, "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_is_compared_byte_by_byte() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let issuer = server.issuer();
    for other in [
        issuer.replace("http", "HTTP"),
        format!("{issuer}/"),
        issuer.replace("127.0.0.1", "localhost"),
        "https://other.example".to_owned(),
    ] {
        server.change(|script| script.issuer = Some(other.clone()));
        let error = refused(&server).await;
        assert!(error.to_string().contains("another issuer"), "{other}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_without_https_or_at_private_addresses_are_refused() {
    let server = OAuthTestServer::start(OAuthScript::new());
    for endpoint in
        ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]
    {
        for url in [
            "http://example.com/endpoint",
            "https://10.0.0.1/endpoint",
            "https://user:password@example.com/endpoint",
            "javascript:alert(1)",
            "file:///etc/passwd",
        ] {
            let fake = metadata(&server, |document| document[endpoint] = json!(url));
            server.change(|script| script.faults = vec![(Endpoint::ServerMetadata, fake, 0)]);
            let error = refused(&server).await;
            assert!(matches!(error, AuthError::Refused { .. }), "{endpoint} {url}: {error:?}");
            assert!(!error.to_string().contains("password@"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_registration_needs_a_configured_client() {
    let script = OAuthScript {
        registration: false,
        clients: vec![("known".into(), None)],
        ..OAuthScript::new()
    };
    let server = OAuthTestServer::start(script);
    let error = refused(&server).await;
    assert!(matches!(error, AuthError::NotRegistered { .. }), "{error:?}");
    assert!(error.to_string().contains("does not register clients automatically"), "{error}");
    let state = folder();
    let settings = AuthSettings { client_id: Some("known".into()), ..AuthSettings::default() };
    let client = Authorizer::new(options_with(&server.url(), state.path(), settings));
    login(&client).await.unwrap();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_expiry_is_used_until_it_is_rejected() {
    let script = OAuthScript { expires_in: None, ..OAuthScript::new() };
    let (server, state) = serve(script);
    let (client, grant) = logged_in(&server, state.path()).await;
    assert_eq!(grant.expires_at, None);
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 0);
    server.expire_access_tokens();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_responses_that_make_no_sense_fail_the_login_and_are_not_stored() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let good = OAuthScript::new();
    for (expires_in, token_type) in [(Some(-1), "Bearer"), (Some(3600), "mac"), (None, "")] {
        server.change(|script| {
            script.expires_in = expires_in;
            token_type.clone_into(&mut script.token_type);
        });
        let state = folder();
        let error = login(&client(&server, state.path())).await.unwrap_err();
        assert!(matches!(error, AuthError::Invalid { .. }), "{error:?}");
        assert!(!error.to_string().contains("test-access-token"), "{error}");
        assert!(store(state.path()).load(&key(&server)).await.unwrap().is_none());
    }
    server.change(|script| *script = good);
    for fake in [Fake::Html, Fake::Huge, Fake::Json(200, json!({})), Fake::error("invalid_grant")] {
        server.change(|script| script.faults = vec![(Endpoint::Token, fake.clone(), 1)]);
        let state = folder();
        let error = login(&client(&server, state.path())).await.unwrap_err();
        assert!(
            matches!(error, AuthError::Invalid { .. } | AuthError::Rejected { .. }),
            "{fake:?}: {error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_refresh_with_an_unusable_response_a_login_helps() {
    let (server, state) = serve(OAuthScript::new());
    let (client, _) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    server.change(|script| script.token_type = "mac".into());
    let error = call(&client, &server.url()).await.unwrap_err();
    assert!(matches!(error, AuthError::Invalid { .. }), "{error:?}");
    server.change(|script| script.token_type = "Bearer".into());
    // The refresh token was used: the server ends the login.
    assert_login_required(&client, &server).await;
    login(&client).await.unwrap();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_refresh_tokens_requires_a_login_when_the_token_expires() {
    let script = OAuthScript { refresh_tokens: false, ..OAuthScript::new() };
    let (server, state) = serve(script);
    let (client, _) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    assert_login_required(&client, &server).await;
    assert_eq!(server.count(Endpoint::Refresh), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_is_reported_before_the_browser_opens() {
    // A file in place of the folder: permissions do not stop a test that runs as root.
    for blocked in ["mcp", "mcp/tokens"] {
        let server = OAuthTestServer::start(OAuthScript::new());
        let state = folder();
        let path = state.path().join(blocked);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "a file").unwrap();
        let user = User::approving();
        let client = client(&server, state.path());
        let error = within(client.login(&user, &BTreeSet::new())).await.unwrap_err();
        assert!(matches!(error, AuthError::Store(_)), "{error:?}");
        assert!(user.asked().is_empty() && server.all_requests().is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_or_edited_token_file_is_reported_and_a_login_replaces_it() {
    let (server, state) = serve(OAuthScript::new());
    logged_in(&server, state.path()).await;
    let file = grant_file(state.path());
    let intact = fs::read(&file).unwrap();
    let mut edited = intact.clone();
    let middle = edited.len() * 3 / 4;
    edited[middle] = if edited[middle] == b'A' { b'B' } else { b'A' };
    for damaged in [&intact[..intact.len() / 2], &[], &edited, b"{}", b"not json"] {
        fs::write(&file, damaged).unwrap();
        let damaged = client(&server, state.path());
        let requests = server.all_requests().len();
        let error = call(&damaged, &server.url()).await.unwrap_err();
        assert!(matches!(error, AuthError::Store(_)), "{error:?}");
        assert!(error.to_string().contains("openclaw mcp login notes"), "{error}");
        assert_eq!(server.all_requests().len(), requests);
        login(&damaged).await.unwrap();
        assert_eq!(call(&damaged, &server.url()).await.unwrap(), 200);
        assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_token_file_can_be_logged_out_of() {
    let (server, state) = serve(OAuthScript::new());
    logged_in(&server, state.path()).await;
    fs::write(grant_file(state.path()), "damaged").unwrap();
    let client = client(&server, state.path());
    let outcome = client.logout().await.unwrap();
    assert!(matches!(outcome, openclaw_oauth::login::Logout::Forgotten(_)), "{outcome:?}");
    assert!(store(state.path()).list().await.unwrap().damaged.is_empty());
}
