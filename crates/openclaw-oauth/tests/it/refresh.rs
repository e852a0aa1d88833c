//! Refreshes: one at a time, never lost, never repeated with a dead token.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use openclaw_oauth::authorizer::{AuthAttempts, Authorizer, AuthorizerOptions, SentToken};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Endpoint, Fake, OAuthScript, OAuthTestServer};

use crate::child::{Child, Role};
use crate::support::{
    assert_login_required, call, change_grant, client, expire_grant, folder, key, logged_in, login,
    options, serve, store, token_of, until, within,
};

/// How many tasks of a process refresh at the same moment.
pub(crate) const TASKS: usize = 50;

/// Lets many tasks send the same token. Returns what they were sent with.
pub(crate) async fn sent(client: &Authorizer, url: &str) -> Vec<SentToken> {
    let mut all = Vec::new();
    for _ in 0..TASKS {
        let mut headers = HeaderMap::new();
        let url = url.parse().unwrap();
        let sent = client.authorize(&Method::POST, &url, &mut headers).await.unwrap();
        all.push(sent.unwrap());
    }
    all
}

/// Lets every task handle a 401 at the same moment. Returns the tokens that they send afterwards.
pub(crate) async fn refreshed(
    client: &Authorizer,
    url: &str,
    sent: Vec<SentToken>,
) -> BTreeSet<String> {
    let barrier = Arc::new(tokio::sync::Barrier::new(sent.len()));
    let mut tasks = tokio::task::JoinSet::new();
    for sent in sent {
        let (client, url, barrier) = (client.clone(), url.to_owned(), barrier.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            let (headers, mut attempts) = (HeaderMap::new(), AuthAttempts::default());
            let status = StatusCode::UNAUTHORIZED;
            client.challenged(status, &headers, Some(&sent), &mut attempts).await.unwrap();
            token_of(&client, &url).await.unwrap()
        });
    }
    within(tasks.join_all()).await.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_with_50_tasks_each_send_one_refresh_request() {
    let server = Arc::new(OAuthTestServer::start(OAuthScript::new()));
    let state = folder();
    let (ours, _) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    let mut child = Child::start(Role::Refresh, &server.url(), state.path());
    let (rejected, url) = (sent(&ours, &server.url()).await, server.url());
    child.expect("ready");

    server.hold(Endpoint::Refresh);
    child.say("go");
    let refreshing = tokio::spawn(async move { refreshed(&ours, &url, rejected).await });
    child.expect("started");
    until(&server, |server| server.wait_for(Endpoint::Refresh, 1)).await;
    server.release(Endpoint::Refresh);

    let ours = refreshing.await.unwrap();
    let theirs: BTreeSet<String> = serde_json::from_str(&child.line()).unwrap();
    assert_eq!(server.count(Endpoint::Refresh), 1);
    assert_eq!(ours.len(), 1, "{ours:?}");
    assert_eq!(ours, theirs);
    assert!(server.is_valid(ours.first().unwrap()));
    child.finished();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_of_one_folder_send_one_refresh_request_for_an_expired_token() {
    let (server, state) = serve(OAuthScript::new());
    logged_in(&server, state.path()).await;
    expire_grant(&server.url(), state.path()).await;
    let clients = [client(&server, state.path()), client(&server, state.path())];
    let calls = (0..2 * TASKS).map(|number| {
        let (client, url) = (clients[number % 2].clone(), server.url());
        tokio::spawn(async move { token_of(&client, &url).await.unwrap() })
    });
    let mut tokens = BTreeSet::new();
    for call in calls.collect::<Vec<_>>() {
        tokens.insert(within(call).await.unwrap());
    }
    assert_eq!(server.count(Endpoint::Refresh), 1);
    assert!(tokens.len() == 1 && server.is_valid(tokens.first().unwrap()), "{tokens:?}");
    assert_eq!(server.count(Endpoint::Mcp), 1, "the token is renewed before it is rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_caller_does_not_lose_the_new_refresh_token() {
    let server = Arc::new(OAuthTestServer::start(OAuthScript::new()));
    let state = folder();
    let (ours, before) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    server.hold_responses(Endpoint::Refresh);
    let (caller, url) = (ours.clone(), server.url());
    let calling = tokio::spawn(async move { call(&caller, &url).await });
    until(&server, |server| server.wait_for_processed(Endpoint::Refresh, 1)).await;
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    server.release(Endpoint::Refresh);

    // The lease is free when the refresh has ended.
    let store = store(state.path());
    drop(store.lock(&key(&server), Duration::from_secs(30)).await.unwrap());
    let stored = store.load(&key(&server)).await.unwrap().unwrap();
    assert_ne!(stored.grant.access_token, before.access_token);
    assert_ne!(stored.grant.refresh_token, before.refresh_token);
    assert_eq!(stored.refreshing_since, None);
    for client in [ours, client(&server, state.path())] {
        assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    }
    assert_eq!(server.count(Endpoint::Refresh), 1);
    server.expire_access_tokens();
    assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_refresh_token_is_sent_once_and_a_new_login_works() {
    let (server, state) = serve(OAuthScript::new());
    let (ours, _) = logged_in(&server, state.path()).await;
    server.revoke_all();
    let other = client(&server, state.path());
    for client in [&ours, &ours, &other, &client(&server, state.path())] {
        assert_login_required(client, &server).await;
    }
    assert_eq!(server.count(Endpoint::Refresh), 1);

    login(&ours).await.unwrap();
    for client in [&ours, &other] {
        assert_eq!(call(client, &server.url()).await.unwrap(), 200);
    }
    server.expire_access_tokens();
    assert_eq!(call(&other, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_grant_with_a_revoked_refresh_token_sends_one_refresh_request() {
    let (server, state) = serve(OAuthScript::new());
    logged_in(&server, state.path()).await;
    expire_grant(&server.url(), state.path()).await;
    server.revoke_all();
    let client = client(&server, state.path());
    for _ in 0..3 {
        assert_login_required(&client, &server).await;
    }
    assert_eq!(server.count(Endpoint::Refresh), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reuse_detection_ends_in_login_required() {
    let (server, state) = serve(OAuthScript::new());
    let (_, first) = logged_in(&server, state.path()).await;
    let ours = client(&server, state.path());
    server.expire_access_tokens();
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    // A backup of the store was restored: its refresh token has been used.
    change_grant(&server.url(), state.path(), |grant| *grant = (*first).clone()).await;
    let restored = client(&server, state.path());
    assert_login_required(&restored, &server).await;
    assert_eq!(server.count(Endpoint::Refresh), 2);
    assert!(call(&restored, &server.url()).await.is_err());
    assert_eq!(server.count(Endpoint::Refresh), 2);
    login(&restored).await.unwrap();
    assert_eq!(call(&restored, &server.url()).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_token_endpoint_keeps_the_refresh_token() {
    let outages =
        [Fake::Status(503), Fake::HangUp, Fake::Html, Fake::error("temporarily_unavailable")];
    let (server, state) = serve(OAuthScript::new());
    let (ours, _) = logged_in(&server, state.path()).await;
    for outage in outages {
        server.expire_access_tokens();
        server.change(|script| script.faults = vec![(Endpoint::Refresh, outage.clone(), 1)]);
        let error = call(&ours, &server.url()).await.unwrap_err();
        assert!(!matches!(error, AuthError::LoginRequired), "{outage:?}: {error}");
        assert_eq!(call(&ours, &server.url()).await.unwrap(), 200, "{outage:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_about_to_expire_is_used_while_the_token_endpoint_is_down() {
    let script = OAuthScript::new().fault(Endpoint::Refresh, Fake::Status(503), 0);
    let (server, state) = serve(script);
    logged_in(&server, state.path()).await;
    change_grant(&server.url(), state.path(), |grant| {
        (grant.issued_at, grant.expires_at) = (grant.issued_at - 3600, Some(grant.issued_at + 30));
    })
    .await;
    assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rejects_every_token_leads_to_one_refresh_per_request() {
    let (server, state) = serve(OAuthScript::new());
    let (ours, _) = logged_in(&server, state.path()).await;
    server.change(|script| script.lifetime = Duration::ZERO);
    server.expire_access_tokens();
    assert_login_required(&ours, &server).await;
    assert_eq!(server.count(Endpoint::Refresh), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_fails_before_the_request() {
    let (server, state) = serve(OAuthScript::new());
    logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    let store = Arc::new(crate::child::SteppedStore::failing_at("marked", state.path()));
    let options = AuthorizerOptions { store, ..options(&server.url(), state.path()) };
    let error = call(&Authorizer::new(options), &server.url()).await.unwrap_err();
    assert!(matches!(error, AuthError::Store(_)), "{error}");
    assert_eq!(server.count(Endpoint::Refresh), 0);
    assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
}
