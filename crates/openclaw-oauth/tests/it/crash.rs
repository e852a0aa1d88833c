//! Processes that are killed at every step of a refresh: afterwards the token works or a login is
//! required, and the file is intact.

use std::path::Path;
use std::sync::Arc;

use openclaw_oauth::error::AuthError;
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Endpoint, OAuthScript, OAuthTestServer};

use crate::child::{Child, Role};
use crate::support::{
    call, change_grant, client, folder, grant_file, key, logged_in, login, store, until,
};

/// What the next process finds.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Works,
    LoginRequired,
}

/// Starts a server that accepts a refresh token once, or, with `grace`, until its successor is used.
async fn start(grace: bool) -> (Arc<OAuthTestServer>, tempfile::TempDir) {
    let script = OAuthScript { grace, ..OAuthScript::new() };
    let server = Arc::new(OAuthTestServer::start(script));
    let state = folder();
    logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    (server, state)
}

/// Asserts that the stored grant is intact. Returns whether it is marked.
async fn is_marked(server: &OAuthTestServer, state: &Path) -> bool {
    let store = store(state);
    let listing = store.list().await.unwrap();
    assert!(listing.damaged.is_empty() && listing.grants.len() == 1, "{listing:?}");
    let stored = store.load(&key(server)).await.unwrap().unwrap();
    stored.refreshing_since.is_some()
}

/// Calls with a new process; after a required login, logs in and calls again.
async fn next(server: &OAuthTestServer, state: &Path) -> Next {
    let ours = client(server, state);
    let next = match call(&ours, &server.url()).await {
        Ok(200) => Next::Works,
        Err(AuthError::LoginRequired) => {
            login(&ours).await.unwrap();
            Next::LoginRequired
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    assert!(!is_marked(server, state).await);
    // The refresh token works, too.
    server.expire_access_tokens();
    assert_eq!(call(&client(server, state), &server.url()).await.unwrap(), 200);
    next
}

/// Kills a process at a step of its refresh. Asserts what it leaves and how many refresh requests it has
/// sent, how many more the next call sends, and what that finds.
async fn killed_at(
    (step, grace): (&str, bool),
    marked: bool,
    refreshes: [usize; 2],
    expected: Next,
) {
    let (server, state) = start(grace).await;
    let mut child = Child::start(Role::StopAt(step.into()), &server.url(), state.path());
    child.expect(step);
    child.kill();
    assert_eq!(server.count(Endpoint::Refresh), refreshes[0], "{step}");
    assert_eq!(is_marked(&server, state.path()).await, marked, "{step}");
    let waiting = client(&server, state.path());
    let first = call(&waiting, &server.url()).await;
    assert_eq!(first.is_ok(), expected == Next::Works, "{step}: {first:?}");
    assert_eq!(server.count(Endpoint::Refresh), refreshes[0] + refreshes[1], "{step}");
    assert_eq!(next(&server, state.path()).await, expected, "{step}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_with_the_lock() {
    killed_at(("locked", false), false, [0, 1], Next::Works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_with_the_mark_and_before_the_request() {
    killed_at(("marked", false), true, [0, 1], Next::Works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_request_is_processed() {
    let (server, state) = start(false).await;
    server.hold(Endpoint::Refresh);
    let child = Child::start(Role::StopAt("never".into()), &server.url(), state.path());
    until(&server, |server| server.wait_for(Endpoint::Refresh, 1)).await;
    child.kill();
    assert!(is_marked(&server, state.path()).await);
    server.release(Endpoint::Refresh);
    // The authorization server may process the request of a client that is gone, or not.
    next(&server, state.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_response_arrives() {
    // The new refresh token has never arrived, and the old one is used up, or almost.
    for (grace, expected) in [(false, Next::LoginRequired), (true, Next::Works)] {
        let (server, state) = start(grace).await;
        server.hold_responses(Endpoint::Refresh);
        let child = Child::start(Role::StopAt("never".into()), &server.url(), state.path());
        until(&server, |server| server.wait_for_processed(Endpoint::Refresh, 1)).await;
        child.kill();
        server.release(Endpoint::Refresh);
        assert!(is_marked(&server, state.path()).await);
        assert_eq!(next(&server, state.path()).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_new_token_is_saved() {
    // It is tried once.
    killed_at(("saving", false), true, [1, 1], Next::LoginRequired).await;
    killed_at(("saving", true), true, [1, 1], Next::Works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_new_token_is_saved() {
    killed_at(("saved", false), false, [1, 0], Next::Works).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_new_token_has_its_name() {
    killed_at(("written", false), true, [1, 0], Next::Works).await;
    killed_at(("written", true), true, [1, 0], Next::Works).await;
    // Twice in the same login: what was left the first time is not considered again.
    let (server, state) = start(false).await;
    for _ in 0..2 {
        let mut child = Child::start(Role::StopAt("written".into()), &server.url(), state.path());
        child.expect("written");
        child.kill();
        assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
        server.expire_access_tokens();
    }
    assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_unfinished_file_of_another_login_or_server_holds_is_not_used() {
    let (server, state) = start(false).await;
    // Of an earlier login, of another server, cut off, and none at all.
    let file = grant_file(state.path());
    let old = std::fs::read(&file).unwrap();
    let other = OAuthTestServer::start(OAuthScript::new());
    let other_state = folder();
    logged_in(&other, other_state.path()).await;
    change_grant(&server.url(), state.path(), |grant| grant.logged_in_at += 1).await;
    for (number, bytes) in [
        old.clone(),
        std::fs::read(grant_file(other_state.path())).unwrap(),
        old[..old.len() / 2].to_vec(),
        Vec::new(),
    ]
    .iter()
    .enumerate()
    {
        std::fs::write(file.with_file_name(format!(".unfinished-{number}")), bytes).unwrap();
    }
    let mut child = Child::start(Role::StopAt("marked".into()), &server.url(), state.path());
    child.expect("marked");
    child.kill();
    assert_eq!(call(&client(&server, state.path()), &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_saves() {
    let (server, state) = start(false).await;
    for _ in 0..8 {
        let mut child = Child::start(Role::Save, &server.url(), state.path());
        child.expect("saving");
        child.kill();
        is_marked(&server, state.path()).await;
    }
    assert_eq!(next(&server, state.path()).await, Next::Works);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_killed_process_does_not_block_others() {
    let (server, state) = start(false).await;
    let mut child = Child::start(Role::StopAt("locked".into()), &server.url(), state.path());
    child.expect("locked");
    let (waiting, url) = (client(&server, state.path()), server.url());
    let calling = tokio::spawn(async move { call(&waiting, &url).await });
    until(&server, |server| server.wait_for(Endpoint::Mcp, 3)).await;
    assert_eq!(server.count(Endpoint::Refresh), 0);
    child.kill();
    assert_eq!(calling.await.unwrap().unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1);
}
