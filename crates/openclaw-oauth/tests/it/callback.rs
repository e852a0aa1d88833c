//! What a browser, or anyone else, can send to the callback.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use openclaw_oauth::error::AuthError;
use openclaw_oauth::login::PromptResponse;
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Endpoint, OAuthScript, OAuthTestServer, Parameter};

use crate::support::{User, call, client, folder, key, login, serve, store, until, within};

const SCRIPT: &str = "%3Cscript%3Ealert(1)%3C/script%3E";

/// Replaces the value of a parameter.
fn with(url: &str, name: &str, value: &str) -> String {
    let (before, rest) = url.split_once(&format!("{name}=")).unwrap();
    let rest = rest.find('&').map_or("", |at| &rest[at..]);
    format!("{before}{name}={value}{rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_with_a_wrong_state_is_ignored_and_the_login_goes_on() {
    let (server, state) = serve(OAuthScript::new());
    let user = User::returning(|callback| {
        let without = callback.replace("state=", "other=");
        vec![with(&callback, "state", "wrong"), without, callback]
    });
    let client = client(&server, state.path());
    within(client.login(&user, &BTreeSet::new())).await.unwrap();
    let pages = user.pages();
    assert_eq!(pages.len(), 3);
    assert!(pages[..2].iter().all(|page| page.status == 400), "{pages:?}");
    assert_eq!(pages[2].status, 200);
    assert_eq!(server.count(Endpoint::Token), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_denies_ends_the_login() {
    let script =
        OAuthScript { authorize_error: Some("access_denied".into()), ..OAuthScript::new() };
    let (server, state) = serve(script);
    let (client, user) = (client(&server, state.path()), User::approving());
    let error = within(client.login(&user, &BTreeSet::new())).await.unwrap_err();
    let AuthError::Rejected { code, .. } = &error else { panic!("{error:?}") };
    assert_eq!(code, "access_denied");
    let page = &user.pages()[0];
    assert!(page.text().to_lowercase().contains("failed"), "{}", page.text());
    assert_eq!(server.count(Endpoint::Token), 0);
    assert!(store(state.path()).load(&key(&server)).await.unwrap().is_none());
    // It is over: the next login works.
    server.change(|script| script.authorize_error = None);
    login(&client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_with_a_wrong_state_does_not_end_the_login() {
    let (server, state) = serve(OAuthScript::new());
    let user = User::returning(|callback| {
        let (address, _) = callback.split_once('?').unwrap();
        vec![format!("{address}?error=access_denied&state=wrong"), callback]
    });
    within(client(&server, state.path()).login(&user, &BTreeSet::new())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_with_a_script_are_not_repeated_by_the_page() {
    let (server, state) = serve(OAuthScript::new());
    let user = User::returning(|callback| {
        let (address, _) = callback.split_once('?').unwrap();
        vec![
            with(&callback, "state", SCRIPT),
            format!("{address}?{SCRIPT}={SCRIPT}"),
            format!("{address}/{SCRIPT}"),
            format!("{callback}&error={SCRIPT}&error_description={SCRIPT}&x={SCRIPT}"),
        ]
    });
    let client = client(&server, state.path());
    let error = within(client.login(&user, &BTreeSet::new())).await.unwrap_err();
    assert!(matches!(error, AuthError::Rejected { .. }), "{error:?}");
    let pages = user.pages();
    assert_eq!(pages.len(), 4);
    for page in pages {
        let text = page.text();
        assert!(!text.contains("alert") && !text.contains("<script"), "{text}");
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
        assert!(!text.contains("src=") && !text.contains("http"), "{text}");
    }
    assert_eq!(server.count(Endpoint::Token), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_arrives_twice_uses_the_code_once() {
    let server = Arc::new(OAuthTestServer::start(OAuthScript::new()));
    let state = folder();
    server.hold(Endpoint::Token);
    let seen = Arc::new(Mutex::new(None));
    let user = Arc::new({
        let seen = Arc::clone(&seen);
        User::returning(move |callback| {
            *seen.lock().unwrap() = Some(callback.clone());
            vec![callback]
        })
    });
    let (client, asked) = (client(&server, state.path()), Arc::clone(&user));
    let logging_in =
        tokio::spawn(async move { client.login(asked.as_ref(), &BTreeSet::new()).await });
    until(&server, |server| server.wait_for(Endpoint::Token, 1)).await;
    let callback = seen.lock().unwrap().clone().unwrap();
    let (authority, target) = callback.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut again = TcpStream::connect(authority).unwrap();
    write!(again, "GET /{target} HTTP/1.0\r\nhost: {authority}\r\n\r\n").unwrap();
    server.release(Endpoint::Token);
    within(logging_in).await.unwrap().unwrap();
    assert_eq!(user.pages()[0].status, 200);
    // The second gets the same page, or none if it is too late.
    let mut page = String::new();
    let _ = again.read_to_string(&mut page);
    assert!(page.is_empty() || page.contains("close this window"), "{page}");
    assert_eq!(server.count(Endpoint::Token), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_the_authorization_server_changes_never_ends_in_a_token() {
    let server = OAuthTestServer::start(OAuthScript::new());
    for wrong in [Parameter::Missing, Parameter::Other("wrong".into())] {
        server.change(|script| script.state = wrong);
        let state = folder();
        let (client, user) = (client(&server, state.path()), User::approving());
        let empty = BTreeSet::new();
        let login = client.login(&user, &empty);
        // It waits for the right one: this one may come from anyone.
        let visited = async {
            while user.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::task::block_in_place(|| user.pages())
        };
        let pages = tokio::select! {
            ended = login => panic!("{ended:?}"),
            pages = within(visited) => pages,
        };
        assert_eq!(pages[0].status, 400);
    }
    assert_eq!(server.count(Endpoint::Token), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_login_takes_over_the_first() {
    let (server, state) = serve(OAuthScript::new());
    let first = client(&server, state.path());
    let idle = Arc::new(User::idle());
    let asked = Arc::clone(&idle);
    let waiting = tokio::spawn(async move { first.login(asked.as_ref(), &BTreeSet::new()).await });
    let end = Instant::now() + Duration::from_secs(30);
    while idle.asked().is_empty() {
        assert!(Instant::now() < end, "the first login has not begun");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = client(&server, state.path());
    let grant = login(&second).await.unwrap();
    let error = within(waiting).await.unwrap().unwrap_err();
    assert!(matches!(error, AuthError::Cancelled { .. }), "{error:?}");
    let stored = store(state.path()).load(&key(&server)).await.unwrap().unwrap();
    assert_eq!(stored.grant.access_token, grant.access_token);
    assert_eq!(call(&second, &server.url()).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_after_a_cancelled_one_uses_its_registration() {
    let (server, state) = serve(OAuthScript::new());
    let ours = client(&server, state.path());
    assert!(within(ours.login(&Declining, &BTreeSet::new())).await.is_err());
    login(&client(&server, state.path())).await.unwrap();
    assert_eq!(server.count(Endpoint::Register), 1);
}

#[derive(Debug)]
struct Declining;

impl openclaw_oauth::login::LoginPrompt for Declining {
    fn show(
        &self,
        _: openclaw_oauth::login::LoginRequest,
    ) -> futures_util::future::BoxFuture<'_, PromptResponse> {
        Box::pin(async { PromptResponse::Declined })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_declines_ends_the_login() {
    let (server, state) = serve(OAuthScript::new());
    let client = client(&server, state.path());
    let error = within(client.login(&Declining, &BTreeSet::new())).await.unwrap_err();
    assert!(matches!(error, AuthError::Cancelled { cause: "declined" }), "{error:?}");
}
