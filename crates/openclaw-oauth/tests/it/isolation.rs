//! Nothing secret reaches a server that it is not for (T8): asserted on what arrives there.

use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::Grant;
use openclaw_oauth::settings::AuthSettings;
use openclaw_testkit::oauth::{Endpoint, Fake, OAuthScript, OAuthTestServer, Parameter};
use serde_json::json;

use crate::support::{
    SERVER, call, client, folder, headers_of, logged_in, login, options, options_with, send,
    token_of,
};

const SECRET: &str = "the-configured-client-secret";

/// Starts two servers. They count their tokens; the first has counted so far that it has no token in
/// common with the second.
fn start() -> [OAuthTestServer; 2] {
    let servers = [(); 2].map(|()| OAuthTestServer::start(OAuthScript::new()));
    for _ in 0..500 {
        servers[0].issue("mcp");
    }
    servers
}

/// Returns everything secret that a server has issued or received, and the client secret.
fn secrets_of(server: &OAuthTestServer, grant: &Grant) -> Vec<String> {
    let mut secrets: Vec<String> = grant.secrets().map(|it| it.expose().to_owned()).collect();
    for request in server.all_requests() {
        let names = ["code", "code_verifier", "refresh_token", "state"];
        let all = request.form.iter().chain(&request.query);
        let values = all.filter(|(name, _)| names.contains(&name.as_str()));
        secrets.extend(values.map(|(_, value)| value.clone()));
    }
    secrets.push(SECRET.to_owned());
    assert!(secrets.len() > 4, "{secrets:?}");
    secrets
}

/// Asserts that no request to a server contains any of these secrets.
fn assert_unknown_to(server: &OAuthTestServer, secrets: &[String]) {
    for request in server.all_requests() {
        let shown = format!("{request:?}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

fn assert_without_authorization(server: &OAuthTestServer) {
    for request in server.all_requests() {
        assert!(!request.headers.contains_key("authorization"), "{request:?}");
    }
}

/// The MCP server names another authorization server.
fn name_another(server: &OAuthTestServer, other: &OAuthTestServer) {
    let document = json!({
        "resource": server.url(),
        "authorization_servers": [other.issuer()],
        "scopes_supported": ["mcp"],
    });
    let fake = Fake::Json(200, document);
    server.change(|script| script.faults.push((Endpoint::ResourceMetadata, fake, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_and_two_names_have_nothing_in_common() {
    let [ours, other] = start();
    let state = folder();
    let (_, grant) = logged_in(&ours, state.path()).await;
    // The same name with another URL, and another name with the same URL.
    let moved = client(&other, state.path());
    assert!(matches!(call(&moved, &other.url()).await, Err(AuthError::LoginRequired)));
    let mut renamed = options(&ours.url(), state.path());
    assert_eq!(renamed.server, SERVER);
    renamed.server = "work".into();
    let renamed = Authorizer::new(renamed);
    assert!(token_of(&renamed, &ours.url()).await.is_none());

    let second = login(&renamed).await.unwrap();
    assert_ne!(second.access_token, grant.access_token);
    assert_ne!(second.client.id, grant.client.id);
    login(&moved).await.unwrap();
    assert_eq!(call(&moved, &other.url()).await.unwrap(), 200);
    let own = client(&ours, state.path());
    assert_eq!(token_of(&own, &ours.url()).await.unwrap(), grant.access_token.expose());
    assert_unknown_to(&other, &secrets_of(&ours, &grant));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_sent_to_the_target_of_a_redirect() {
    let [ours, other] = start();
    let state = folder();
    let (client, grant) = logged_in(&ours, state.path()).await;
    let target = Fake::Redirect(other.url());
    ours.change(|script| script.faults = vec![(Endpoint::Mcp, target, 1)]);
    let mut headers = http::HeaderMap::new();
    let url = ours.url().parse().unwrap();
    client.authorize(&http::Method::POST, &url, &mut headers).await.unwrap();
    let response = send(&ours.url(), &headers).await;
    let location = headers_of(&response)["location"].to_str().unwrap().to_owned();
    assert_eq!(location, other.url());
    assert!(token_of(&client, &location).await.is_none());

    // Neither at the endpoints of the authorization server.
    for endpoint in [Endpoint::Refresh, Endpoint::Token, Endpoint::Revoke, Endpoint::Register] {
        let target = Fake::Redirect(format!("{}/token", other.issuer()));
        ours.change(|script| script.faults = vec![(endpoint, target, 1)]);
        let error = match endpoint {
            Endpoint::Refresh => {
                ours.expire_access_tokens();
                call(&client, &ours.url()).await.unwrap_err()
            }
            Endpoint::Revoke => {
                let outcome = client.logout().await.unwrap();
                assert!(format!("{outcome:?}").contains("redirect"), "{outcome:?}");
                continue;
            }
            _ => {
                let folder = folder();
                let new = Authorizer::new(options(&ours.url(), folder.path()));
                login(&new).await.unwrap_err()
            }
        };
        assert!(error.to_string().contains("redirect"), "{endpoint:?}: {error}");
    }
    assert!(other.all_requests().is_empty(), "{:?}", other.all_requests());
    assert_unknown_to(&other, &secrets_of(&ours, &grant));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_fetched_from_the_target_of_a_redirect_without_credentials() {
    let [ours, other] = start();
    let state = folder();
    let (client, grant) = logged_in(&ours, state.path()).await;
    let target = format!("{}/.well-known/oauth-authorization-server", other.issuer());
    let fault = (Endpoint::ServerMetadata, Fake::Redirect(target), 0);
    ours.change(|script| script.faults = vec![fault]);
    let error = login(&client).await.unwrap_err();
    assert!(error.to_string().contains("another issuer"), "{error}");
    assert_eq!(other.count(Endpoint::ServerMetadata), 1);
    assert_eq!(other.all_requests().len(), 1);
    assert_without_authorization(&other);
    assert_unknown_to(&other, &secrets_of(&ours, &grant));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_names_another_authorization_server_does_not_move_the_grant() {
    let [ours, other] = start();
    let state = folder();
    let (client, grant) = logged_in(&ours, state.path()).await;
    name_another(&ours, &other);
    // A refresh goes where the token came from.
    ours.expire_access_tokens();
    assert_eq!(call(&client, &ours.url()).await.unwrap(), 200);
    assert_eq!(ours.count(Endpoint::Refresh), 1);
    assert!(other.all_requests().is_empty());

    // So does a rejection: no token of the first reaches the second.
    ours.revoke_all();
    assert!(matches!(call(&client, &ours.url()).await, Err(AuthError::LoginRequired)));
    assert!(other.all_requests().is_empty());

    // A login goes to the second, as a new client.
    let secrets = secrets_of(&ours, &grant);
    other.change(|script| script.resource = Some(ours.url()));
    let _ = login(&client).await;
    assert_eq!(other.count(Endpoint::Register), 1);
    assert_eq!(other.count(Endpoint::Token), 1);
    assert_without_authorization(&other);
    assert_unknown_to(&other, &secrets);
    let registered = &other.requests(Endpoint::Token)[0].form["client_id"];
    assert_eq!(registered, &client.in_use().unwrap().client.id);
    assert_eq!(client.in_use().unwrap().issuer, other.issuer());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_secret_is_not_sent_to_an_authorization_server_that_is_named_later() {
    let script =
        OAuthScript { clients: vec![("known".into(), Some(SECRET.into()))], ..OAuthScript::new() };
    let ours = OAuthTestServer::start(script);
    let other = OAuthTestServer::start(OAuthScript::new());
    let settings = AuthSettings {
        client_id: Some("known".into()),
        client_secret: Some(SECRET.into()),
        ..AuthSettings::default()
    };
    let state = folder();
    let client = Authorizer::new(options_with(&ours.url(), state.path(), settings));
    client.confirm_issuer(&ours.issuer()).await.unwrap();
    let grant = login(&client).await.unwrap();
    assert_eq!(ours.count(Endpoint::Register), 0);
    name_another(&ours, &other);
    let error = login(&client).await.unwrap_err();
    assert!(matches!(error, AuthError::Unconfirmed(_)), "{error}");
    assert_eq!(other.all_requests().len(), other.count(Endpoint::ServerMetadata));
    assert_without_authorization(&other);
    assert_unknown_to(&other, &secrets_of(&ours, &grant));
    // Also after a logout.
    client.logout().await.unwrap();
    let error = login(&client).await.unwrap_err();
    assert!(matches!(error, AuthError::Unconfirmed(_)), "{error}");
    assert_eq!(other.all_requests().len(), other.count(Endpoint::ServerMetadata));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_with_the_issuer_of_another_server_is_sent_nowhere() {
    let [ours, other] = start();
    for iss in [Parameter::Other(other.issuer()), Parameter::Missing] {
        ours.change(|script| script.iss = iss);
        let state = folder();
        let error = login(&client(&ours, state.path())).await.unwrap_err();
        assert!(matches!(error, AuthError::Mismatch(_)), "{error}");
    }
    assert_eq!((ours.count(Endpoint::Authorize), ours.count(Endpoint::Token)), (2, 0));
    assert!(other.all_requests().is_empty());
}
