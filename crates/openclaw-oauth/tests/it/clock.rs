//! A clock that is an hour off, or is set while a login is stored. Lifetimes are relative, so what is
//! stored is wrong by the difference, and nothing else.

use openclaw_testkit::oauth::{Endpoint, OAuthScript, OAuthTestServer};

use crate::support::{call, change_grant, client, logged_in, serve};

const HOUR: i64 = 3600;

/// Stores a grant of a login during which the clock was `ahead` of the present one, in seconds.
async fn login_with_clock(server: &OAuthTestServer, state: &std::path::Path, ahead: i64) {
    logged_in(server, state).await;
    change_grant(&server.url(), state, |grant| {
        grant.issued_at += ahead;
        grant.logged_in_at += ahead;
        grant.expires_at = grant.expires_at.map(|at| at + ahead);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_clock_was_set_back_the_token_is_used_until_the_server_rejects_it() {
    let (server, state) = serve(OAuthScript::new());
    login_with_clock(&server, state.path(), HOUR).await;
    let client = client(&server, state.path());
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 0);
    // By then it has expired for the server, but not by our clock.
    server.expire_access_tokens();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Refresh), 1);
    let grant = client.in_use().unwrap();
    assert_eq!(grant.expires_at, Some(grant.issued_at + HOUR), "right from now on");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_clock_was_set_forward_the_token_is_renewed_once_and_no_login_is_required() {
    let (server, state) = serve(OAuthScript::new());
    login_with_clock(&server, state.path(), -2 * HOUR).await;
    let client = client(&server, state.path());
    for _ in 0..3 {
        assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    }
    assert_eq!((server.count(Endpoint::Refresh), server.count(Endpoint::Token)), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_cannot_be_renewed_is_sent_although_it_has_expired_by_our_clock() {
    let script = OAuthScript { refresh_tokens: false, ..OAuthScript::new() };
    let (server, state) = serve(script);
    login_with_clock(&server, state.path(), -2 * HOUR).await;
    let client = client(&server, state.path());
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200, "the server decides");
}
