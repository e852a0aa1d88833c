//! The way from no token to a token, and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, Method};
use openclaw_oauth::authorizer::{Authorizer, AuthorizerOptions};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::login::Logout;
use openclaw_oauth::store::GrantStore as _;
use openclaw_secrets::SecretString;
use openclaw_testkit::oauth::{Browser, Endpoint, Fake, OAuthScript, OAuthTestServer};

use crate::support::{
    User, assert_login_required, call, client, folder, key, logged_in, login, options, serve,
    store, token_of, within,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_login_leaves_a_token_that_is_sent_to_the_server_only() {
    let (server, state) = serve(OAuthScript::new());
    let client = client(&server, state.path());
    assert_login_required(&client, &server).await;

    let user = User::approving();
    let grant = within(client.login(&user, &BTreeSet::new())).await.unwrap();
    assert_eq!(grant.issuer, server.issuer());
    assert_eq!(grant.resource, server.url());
    assert!(grant.scopes.contains("mcp"), "{:?}", grant.scopes);
    let pages = user.pages();
    assert_eq!((pages.len(), pages[0].status), (1, 200));
    assert!(pages[0].text().contains("close this window"), "{}", pages[0].text());
    let asked = user.asked();
    assert_eq!((asked.len(), asked[0].issuer.as_str()), (1, server.issuer().as_str()));

    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    let url = server.url();
    let same_origin = url.replace("/mcp", "/elsewhere");
    assert!(token_of(&client, &same_origin).await.is_some());
    let port = url.rsplit(':').next().unwrap();
    let other_host = format!("http://localhost:{port}");
    let other_scheme = url.replace("http://", "https://");
    for other in ["https://example.com/mcp", "http://127.0.0.1:9/mcp", &other_host, &other_scheme] {
        let mut headers = HeaderMap::new();
        let sent = client.authorize(&Method::POST, &other.parse().unwrap(), &mut headers).await;
        assert!(sent.unwrap().is_none() && headers.is_empty(), "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_have_pkce_state_and_resource_and_the_registration_is_reused() {
    let (server, state) = serve(OAuthScript::new());
    let (client, _) = logged_in(&server, state.path()).await;
    let authorize = &server.requests(Endpoint::Authorize)[0].query;
    assert_eq!(authorize["code_challenge_method"], "S256");
    assert_eq!(authorize["resource"], server.url());
    assert_eq!(authorize["scope"], "mcp");
    let token = &server.requests(Endpoint::Token)[0].form;
    assert_eq!(token["resource"], server.url());
    assert!(token["code_verifier"].len() >= 43);

    login(&client).await.unwrap();
    let again = &server.requests(Endpoint::Authorize)[1].query;
    assert_ne!(authorize["state"], again["state"]);
    assert_ne!(authorize["code_challenge"], again["code_challenge"]);
    // The server compares the whole redirect URI, with its port.
    assert_eq!(authorize["redirect_uri"], again["redirect_uri"]);
    assert_eq!(server.count(Endpoint::Register), 1);

    let uri: url::Url = again["redirect_uri"].parse().unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", uri.port().unwrap())).unwrap();
    login(&client).await.unwrap();
    assert_eq!(server.count(Endpoint::Register), 2, "the port is taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_another_process_is_used_without_a_restart() {
    let (server, state) = serve(OAuthScript::new());
    let waiting = client(&server, state.path());
    assert!(call(&waiting, &server.url()).await.is_err());
    let before = waiting.version().await;
    logged_in(&server, state.path()).await;
    assert_ne!(waiting.version().await, before);
    assert_eq!(call(&waiting, &server.url()).await.unwrap(), 200);
    assert_eq!(server.count(Endpoint::Authorize), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_can_be_pasted_in_another_process_and_only_once() {
    let (server, state) = serve(OAuthScript::new());
    let redirect_uri = "http://127.0.0.1:9/callback";
    let first = client(&server, state.path());
    let request = first.begin_login(redirect_uri, &BTreeSet::new()).await.unwrap();
    let url = request.url().to_string();
    let callback = tokio::task::spawn_blocking(move || Browser::new().approve(&url)).await.unwrap();

    let second = client(&server, state.path());
    second.finish_pasted(&SecretString::from(callback.clone())).await.unwrap();
    assert_eq!(call(&second, &server.url()).await.unwrap(), 200);
    let again = client(&server, state.path()).finish_pasted(&SecretString::from(callback)).await;
    assert!(matches!(again, Err(AuthError::LoginRequired)), "{again:?}");
    assert_eq!(server.count(Endpoint::Token), 1);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_not_used_up_by_a_login_that_cannot_be_stored() {
    let (server, state) = serve(OAuthScript::new());
    let ours = || client(&server, state.path());
    let request =
        ours().begin_login("http://127.0.0.1:9/callback", &BTreeSet::new()).await.unwrap();
    let url = request.url().to_string();
    let callback = tokio::task::spawn_blocking(move || Browser::new().approve(&url)).await.unwrap();
    let login = std::fs::read_dir(state.path().join("mcp/tokens")).unwrap();
    let login = login.map(|entry| entry.unwrap().path().to_string_lossy().into_owned());
    let grant =
        login.filter_map(|path| Some(path.strip_suffix(".login.json")?.to_owned() + ".json"));
    let grant = grant.last().unwrap();
    std::os::unix::fs::symlink("missing", &grant).unwrap();
    let callback = SecretString::from(callback);
    let error = ours().finish_pasted(&callback).await.unwrap_err().to_string();
    assert!(error.ends_with("a symbolic link; remove the link"), "{error}");
    let error = login_error(&ours()).await;
    assert!(error.ends_with("a symbolic link; remove the link"), "{error}");
    assert_eq!((server.count(Endpoint::Token), server.count(Endpoint::Authorize)), (0, 1));
    std::fs::remove_file(&grant).unwrap();
    ours().finish_pasted(&callback).await.unwrap();
}

async fn login_error(client: &Authorizer) -> String {
    crate::support::login(client).await.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_without_a_token_lead_to_one_login() {
    let server = Arc::new(OAuthTestServer::start(OAuthScript::new()));
    let state = folder();
    let user = Arc::new(User::approving());
    let options = AuthorizerOptions {
        prompt: Some(user.clone()),
        logs_in: true,
        ..options(&server.url(), state.path())
    };
    let client = Authorizer::new(options);
    let calls = (0..10).map(|_| {
        let (client, url) = (client.clone(), server.url());
        tokio::spawn(async move { call(&client, &url).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(user.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_revokes_and_forgets_also_when_the_server_is_down() {
    let (server, state) = serve(OAuthScript::new());
    let (client, grant) = logged_in(&server, state.path()).await;
    let outcome = client.logout().await.unwrap();
    assert!(matches!(outcome, Logout::Revoked), "{outcome:?}");
    assert!(!server.is_valid(grant.access_token.expose()));
    assert!(token_of(&client, &server.url()).await.is_none());
    assert!(store(state.path()).load(&key(&server)).await.unwrap().is_none());
    assert!(matches!(client.logout().await.unwrap(), Logout::NotLoggedIn));

    let (client, _) = logged_in(&server, state.path()).await;
    server.change(|script| script.faults = vec![(Endpoint::Revoke, Fake::Status(503), 0)]);
    let outcome = client.logout().await.unwrap();
    assert!(matches!(outcome, Logout::Forgotten(_)), "{outcome:?}");
    assert!(store(state.path()).load(&key(&server)).await.unwrap().is_none());
}
