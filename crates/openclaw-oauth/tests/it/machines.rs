//! Configured clients, with and without a user.

use std::sync::Arc;

use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::client::TokenAuth;
use openclaw_oauth::settings::{AuthSettings, GrantType};
use openclaw_testkit::oauth::{Endpoint, OAuthScript};

use crate::support::{call, expire_grant, login, options_with, serve, within};

const SECRET: &str = "the-configured-secret";

fn script() -> OAuthScript {
    let clients = vec![("known".to_owned(), Some(SECRET.to_owned()))];
    OAuthScript { clients, ..OAuthScript::new() }
}

fn settings(grant: GrantType) -> AuthSettings {
    AuthSettings {
        client_id: Some("known".into()),
        client_secret: Some(SECRET.into()),
        grant,
        ..AuthSettings::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_requests_of_a_machine_without_a_token_request_one() {
    let (server, state) = serve(script());
    let settings = AuthSettings {
        authorization_server: Some(server.issuer().parse().unwrap()),
        ..settings(GrantType::ClientCredentials)
    };
    let client = Authorizer::new(options_with(&server.url(), state.path(), settings));
    let barrier = Arc::new(tokio::sync::Barrier::new(50));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (client, url, barrier) = (client.clone(), server.url(), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            call(&client, &url).await.unwrap()
        });
    }
    assert_eq!(within(tasks.join_all()).await, [200; 50]);
    assert_eq!(server.count(Endpoint::Token), 1);
    server.expire_access_tokens();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200, "it obtains another one");
    assert_eq!(server.count(Endpoint::Token), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_the_secret_in_the_form_gets_it_there_from_then_on() {
    let (server, state) = serve(OAuthScript { secrets_in_form: true, ..script() });
    let settings = settings(GrantType::AuthorizationCode);
    let client = Authorizer::new(options_with(&server.url(), state.path(), settings.clone()));
    client.confirm_issuer(&server.issuer()).await.unwrap();
    let grant = login(&client).await.unwrap();
    assert_eq!((grant.client.auth, server.count(Endpoint::Token)), (TokenAuth::Post, 2));
    expire_grant(&server.url(), state.path()).await;
    // As a new process.
    let client = Authorizer::new(options_with(&server.url(), state.path(), settings));
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1, "the header is not tried again");
    client.logout().await.unwrap();
    assert!(server.requests(Endpoint::Revoke)[0].form.contains_key("client_secret"));
}
