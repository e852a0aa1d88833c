//! Nothing secret is logged, at any level, by us or by the HTTP client.

use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex};

use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::settings::AuthSettings;
use openclaw_testkit::oauth::{Endpoint, OAuthScript, OAuthTestServer};

use crate::child::{Child, Role};
use crate::support::{call, expire_grant, folder, login, options_with};

const SECRET: &str = "the-configured-client-secret";

fn settings() -> AuthSettings {
    AuthSettings {
        client_id: Some("known".into()),
        client_secret: Some(SECRET.into()),
        ..AuthSettings::default()
    }
}

/// The role of a child: it has a log of its own, with the events of all crates.
pub(crate) async fn log_everything(url: &str, state: &Path, file: &Path) {
    let file = Arc::new(Mutex::new(File::create(file).unwrap()));
    let writer = move || File::try_clone(&file.lock().unwrap()).unwrap();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(writer)
        .init();
    let client = || Authorizer::new(options_with(url, state, settings()));
    let first = client();
    tracing::trace!("the log works");
    let error = call(&first, url).await.unwrap_err();
    tracing::trace!(%error, ?error);
    login(&first).await.unwrap();
    tracing::trace!(grant = ?first.in_use(), authorizer = ?first, "everything that can be shown");
    assert_eq!(call(&first, url).await.unwrap(), 200);
    expire_grant(url, state).await;
    assert_eq!(call(&client(), url).await.unwrap(), 200);
    let outcome = client().logout().await;
    tracing::trace!(?outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_logged_at_any_level() {
    let script =
        OAuthScript { clients: vec![("known".into(), Some(SECRET.into()))], ..OAuthScript::new() };
    let server = Arc::new(OAuthTestServer::start(script));
    let state = folder();
    // The first refresh of the child is rejected, the second succeeds.
    let before = Authorizer::new(options_with(&server.url(), state.path(), settings()));
    before.confirm_issuer(&server.issuer()).await.unwrap();
    login(&before).await.unwrap();
    expire_grant(&server.url(), state.path()).await;
    server.revoke_all();
    let log = state.path().join("log");
    let child = Child::start(Role::Log(log.clone()), &server.url(), state.path());
    tokio::task::spawn_blocking(|| child.finished()).await.unwrap();
    let refreshes = server.requests(Endpoint::Refresh);
    assert_eq!(refreshes.iter().map(|request| request.status).collect::<Vec<_>>(), [400, 200]);
    assert_eq!(server.count(Endpoint::Revoke), 1);

    let log = fs::read_to_string(log).unwrap();
    for expected in ["the log works", "openclaw_oauth", "hyper_util", "reqwest", "logged in"] {
        assert!(log.contains(expected), "{expected} is not in the log");
    }
    let mut secrets = vec![SECRET.to_owned()];
    let names = ["code", "code_verifier", "state", "refresh_token", "token", "code_challenge"];
    for request in server.all_requests() {
        let all = request.form.iter().chain(&request.query);
        secrets.extend(
            all.filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.clone()),
        );
        let header = request.headers.get("authorization");
        secrets.extend(header.and_then(|it| it.split(' ').nth(1)).map(str::to_owned));
    }
    assert!(secrets.len() > 15, "{secrets:?}");
    for secret in
        secrets.iter().map(String::as_str).chain(["test-access", "test-refresh", "test-code"])
    {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret}: {line:?}");
    }
}
