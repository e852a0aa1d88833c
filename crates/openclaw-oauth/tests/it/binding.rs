//! Tokens that are bound to a key (DPoP), and servers that take others only.

use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::settings::{AuthSettings, DpopUse, GrantType};
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Endpoint, Fake, OAuthScript, OAuthTestServer};
use serde_json::json;

use crate::support::{
    assert_login_required, call, change_grant, key, login, options_with, serve, store,
};

/// The authorization server offers DPoP, and the MCP server takes bearer tokens only.
fn offering() -> OAuthScript {
    let server_metadata = json!({ "dpop_signing_alg_values_supported": ["ES256"] });
    OAuthScript { binds_tokens: true, server_metadata, ..OAuthScript::new() }
}

/// The metadata of the MCP server requires bound tokens besides, which is not true.
fn requiring() -> OAuthScript {
    let resource_metadata = json!({ "dpop_bound_access_tokens_required": true });
    OAuthScript { resource_metadata, ..offering() }
}

fn with(dpop: DpopUse) -> AuthSettings {
    AuthSettings { dpop, ..AuthSettings::default() }
}

fn client(server: &OAuthTestServer, state: &std::path::Path, settings: AuthSettings) -> Authorizer {
    Authorizer::new(options_with(&server.url(), state, settings))
}

fn has_proof(server: &OAuthTestServer, endpoint: Endpoint) -> Vec<bool> {
    let requests = server.requests(endpoint);
    requests.iter().map(|request| request.headers.contains_key("dpop")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_bearer_tokens_works_though_its_issuer_offers_dpop() {
    let (server, state) = serve(offering());
    let client = client(&server, state.path(), AuthSettings::default());
    let grant = login(&client).await.unwrap();
    assert!(grant.dpop.is_none());
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    server.expire_access_tokens();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200, "it is renewed");
    assert_eq!(has_proof(&server, Endpoint::Token), [false]);
    assert_eq!(has_proof(&server, Endpoint::Refresh), [false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_bound_token_that_is_rejected_is_replaced_by_an_unbound_one_which_is_remembered() {
    let (server, state) = serve(requiring());
    let ours = client(&server, state.path(), AuthSettings::default());
    assert!(login(&ours).await.unwrap().dpop.is_some());
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Refresh), [false]);
    let grant = ours.in_use().unwrap();
    assert!(grant.dpop.is_none() && grant.bearer_only);
    // It stays so: for refreshes, other processes and the next login.
    server.expire_access_tokens();
    let other = client(&server, state.path(), AuthSettings::default());
    assert_eq!(call(&other, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Refresh), [false, false]);
    assert!(login(&other).await.unwrap().dpop.is_none());
    assert_eq!(call(&other, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Token), [true, false]);
}

/// Asserts that an error names the setting that is the remedy.
fn assert_binding(error: &AuthError, expected: DpopUse) {
    let AuthError::Binding { remedy, .. } = error else { panic!("{error:?}") };
    assert_eq!(*remedy, expected);
    assert!(error.to_string().contains("`auth.dpop`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_challenges_of_both_kinds_that_takes_bearer_tokens_works() {
    let both = r#"DPoP algs="ES256", error="invalid_token", Bearer resource_metadata="{metadata}", scope="{scope}""#;
    for refresh_tokens in [true, false] {
        let challenge = Some(both.to_owned());
        let script = OAuthScript { challenge, refresh_tokens, ..offering() };
        let (server, state) = serve(script);
        let ours = client(&server, state.path(), AuthSettings::default());
        assert!(login(&ours).await.unwrap().dpop.is_some(), "as it asks first");
        if !refresh_tokens {
            assert_login_required(&ours, &server).await;
            assert!(login(&ours).await.unwrap().dpop.is_none());
        }
        assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
        // As a new process.
        let ours = client(&server, state.path(), AuthSettings::default());
        assert!(login(&ours).await.unwrap().dpop.is_none());
        assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_proof_is_rejected_stays_bound() {
    let both =
        r#"DPoP algs="ES256", error="invalid_dpop_proof", Bearer resource_metadata="{metadata}""#;
    let (server, state) = serve(OAuthScript { challenge: Some(both.to_owned()), ..offering() });
    let ours = client(&server, state.path(), AuthSettings::default());
    login(&ours).await.unwrap();
    assert_login_required(&ours, &server).await;
    assert!(has_proof(&server, Endpoint::Refresh).iter().all(|has| *has));
    assert!(!store(state.path()).load(&key(&server)).await.unwrap().unwrap().grant.bearer_only);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rejection_of_a_request_without_a_key_names_the_setting_where_the_issuer_binds_tokens()
{
    for (script, is_offered) in [(offering(), true), (OAuthScript::new(), false)] {
        let (server, state) = serve(script.fault(Endpoint::Token, Fake::error("invalid_grant"), 0));
        for dpop in [DpopUse::Auto, DpopUse::Never, DpopUse::Always] {
            let error = login(&client(&server, state.path(), with(dpop))).await.unwrap_err();
            assert!(error.to_string().contains("invalid_grant"), "{error}");
            if is_offered && dpop != DpopUse::Always {
                assert_binding(&error, DpopUse::Always);
            } else {
                assert!(matches!(error, AuthError::Rejected { .. }), "{error:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_bound_token_is_renewed_with_its_key_before_it_is_given_up() {
    let (server, state) = serve(requiring());
    let ours = client(&server, state.path(), AuthSettings::default());
    login(&ours).await.unwrap();
    change_grant(&server.url(), state.path(), |grant| grant.issued_at -= 600).await;
    let other = client(&server, state.path(), AuthSettings::default());
    assert_eq!(call(&other, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Refresh), [true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_insists_on_the_key_leads_to_a_login_without_one() {
    let (server, state) = serve(OAuthScript { refresh_tokens: false, ..requiring() });
    let ours = client(&server, state.path(), AuthSettings::default());
    login(&ours).await.unwrap();
    for _ in 0..2 {
        assert_login_required(&ours, &server).await;
    }
    assert!(store(state.path()).load(&key(&server)).await.unwrap().unwrap().grant.bearer_only);
    login(&ours).await.unwrap();
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Token), [true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_obtains_an_unbound_token_by_itself() {
    let clients = vec![("known".to_owned(), Some("secret".to_owned()))];
    let (server, state) = serve(OAuthScript { clients, ..requiring() });
    let settings = AuthSettings {
        client_id: Some("known".into()),
        client_secret: Some("secret".into()),
        authorization_server: Some(server.issuer().parse().unwrap()),
        grant: GrantType::ClientCredentials,
        ..AuthSettings::default()
    };
    let ours = client(&server, state.path(), settings.clone());
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Token), [true, false]);
    server.expire_access_tokens();
    let other = client(&server, state.path(), settings);
    assert_eq!(call(&other, &server.url()).await.unwrap(), 200);
    assert_eq!(has_proof(&server, Endpoint::Token), [true, false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn always_uses_no_unbound_token_and_never_no_bound_one() {
    let (server, state) = serve(requiring());
    let never = client(&server, state.path(), with(DpopUse::Never));
    assert!(login(&never).await.unwrap().dpop.is_none());
    assert_eq!(call(&never, &server.url()).await.unwrap(), 200);
    // The setting is changed.
    let always = client(&server, state.path(), with(DpopUse::Always));
    let sent = server.count(Endpoint::Refresh);
    assert_login_required(&always, &server).await;
    assert!(login(&always).await.unwrap().dpop.is_some());
    assert_binding(&call(&always, &server.url()).await.unwrap_err(), DpopUse::Auto);
    assert!(has_proof(&server, Endpoint::Refresh)[sent..].iter().all(|has| *has));
    let never = client(&server, state.path(), with(DpopUse::Never));
    assert_login_required(&never, &server).await;
    // A connection that waits for a login does not take the stored token for a new one.
    assert!(!never.has_another_token().await && always.in_use().is_some());

    // An authorization server that binds no tokens, or no longer.
    login(&always).await.unwrap();
    server.change(|script| script.binds_tokens = false);
    let before = server.count(Endpoint::Mcp);
    assert_binding(&call(&always, &server.url()).await.unwrap_err(), DpopUse::Auto);
    assert_login_required(&always, &server).await;
    let sent = &server.requests(Endpoint::Mcp)[before..];
    let is_bearer = |header: &String| header.starts_with("Bearer");
    assert!(!sent.iter().any(|it| it.headers.get("authorization").is_some_and(is_bearer)));
    let error = login(&always).await.unwrap_err();
    assert!(matches!(error, AuthError::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("`auth.dpop`"), "{error}");
}
