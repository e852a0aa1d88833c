//! A client with its state folder, and the user in front of it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use openclaw_oauth::authorizer::{AuthAttempts, Authorizer, AuthorizerOptions};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::{Grant, GrantKey};
use openclaw_oauth::login::{LoginPrompt, LoginRequest, PromptResponse};
use openclaw_oauth::settings::AuthSettings;
use openclaw_oauth::store::{FileStore, GrantStore, KeyOptions};
use openclaw_testkit::oauth::wire::{self, HttpResponse};
use openclaw_testkit::oauth::{Browser, OAuthScript, OAuthTestServer};
use serde_json::json;
use tempfile::TempDir;

/// A test fails if something takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The name of the server in the configuration.
pub(crate) const SERVER: &str = "notes";

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Starts a server. Returns it with an empty state folder.
pub(crate) fn serve(script: OAuthScript) -> (OAuthTestServer, TempDir) {
    (OAuthTestServer::start(script), folder())
}

/// Returns a store as a new process would open it.
pub(crate) fn store(state: &Path) -> Arc<FileStore> {
    Arc::new(FileStore::new(state, KeyOptions { use_keychain: false }))
}

/// Returns the options of a client without a user.
pub(crate) fn options(url: &str, state: &Path) -> AuthorizerOptions {
    options_with(url, state, AuthSettings::default())
}

/// Like [`options`], with settings.
pub(crate) fn options_with(url: &str, state: &Path, settings: AuthSettings) -> AuthorizerOptions {
    AuthorizerOptions::new(SERVER, url.parse().unwrap(), settings, store(state)).unwrap()
}

/// Returns a client without a user, as a new process would create it.
pub(crate) fn client(server: &OAuthTestServer, state: &Path) -> Authorizer {
    Authorizer::new(options(&server.url(), state))
}

/// Logs in; returns the client and the grant.
pub(crate) async fn logged_in(server: &OAuthTestServer, state: &Path) -> (Authorizer, Arc<Grant>) {
    let client = client(server, state);
    let grant = login(&client).await.unwrap();
    (client, grant)
}

/// Logs in with a user who approves.
pub(crate) async fn login(client: &Authorizer) -> Result<Arc<Grant>, AuthError> {
    within(client.login(&User::approving(), &BTreeSet::new())).await
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("timed out")
}

pub(crate) fn key(server: &OAuthTestServer) -> GrantKey {
    GrantKey::new(SERVER, &server.url().parse().unwrap())
}

/// Returns the file of the only grant in a state folder.
pub(crate) fn grant_file(state: &Path) -> PathBuf {
    let entries = std::fs::read_dir(state.join("mcp/tokens")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut grants = paths.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".json") && name.matches('.').count() == 1
    });
    let grant = grants.next().expect("no grant is stored");
    assert!(grants.next().is_none(), "more than one grant is stored");
    grant
}

/// Changes the stored grant.
pub(crate) async fn change_grant(url: &str, state: &Path, change: impl FnOnce(&mut Grant)) {
    let (store, key) = (store(state), GrantKey::new(SERVER, &url.parse().unwrap()));
    let lease = store.lock(&key, PATIENCE).await.unwrap();
    let mut grant = store.load(&key).await.unwrap().unwrap().grant;
    change(&mut grant);
    store.save(&lease, &grant).await.unwrap();
}

/// Lets the stored token expire by the clock.
pub(crate) async fn expire_grant(url: &str, state: &Path) {
    change_grant(url, state, |grant| grant.expires_at = Some(grant.issued_at - 1)).await;
}

/// Calls the tool `echo`, as the engine does: with a token, and again as long as the authorizer
/// obtains others. Returns the status of the last response.
pub(crate) async fn call(client: &Authorizer, url: &str) -> Result<u16, AuthError> {
    within(Box::pin(call_now(client, url))).await
}

/// Asserts that a call fails because a login is required.
pub(crate) async fn assert_login_required(client: &Authorizer, server: &OAuthTestServer) {
    let error = call(client, &server.url()).await.unwrap_err();
    assert!(matches!(error, AuthError::LoginRequired), "{error:?}");
}

async fn call_now(client: &Authorizer, url: &str) -> Result<u16, AuthError> {
    let mut attempts = AuthAttempts::default();
    loop {
        let mut headers = HeaderMap::new();
        let sent = client.authorize(&Method::POST, &url.parse().unwrap(), &mut headers).await?;
        let response = send(url, &headers).await;
        if ![401, 403].contains(&response.status) {
            return Ok(response.status);
        }
        let (status, headers) =
            (StatusCode::from_u16(response.status).unwrap(), headers_of(&response));
        client.challenged(status, &headers, sent.as_ref(), &mut attempts).await?;
    }
}

/// Sends a call of `echo` with these headers, in the version that needs no handshake.
pub(crate) async fn send(url: &str, headers: &HeaderMap) -> HttpResponse {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo",
        "arguments": {"text": "hi"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let mut all = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()),
        ("mcp-method".to_owned(), "tools/call".to_owned()),
        ("mcp-name".to_owned(), "echo".to_owned()),
    ];
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    all.extend(headers.iter().map(text));
    let url = url.to_owned();
    let sending = tokio::task::spawn_blocking(move || {
        let all: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        wire::send("POST", &url, &all, &body.to_string())
    });
    sending.await.unwrap()
}

pub(crate) fn headers_of(response: &HttpResponse) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &response.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

/// Returns the token that a client sends now.
pub(crate) async fn token_of(client: &Authorizer, url: &str) -> Option<String> {
    let mut headers = HeaderMap::new();
    let url = url.parse().unwrap();
    within(client.authorize(&Method::POST, &url, &mut headers)).await.unwrap()?;
    let value = headers["authorization"].to_str().unwrap();
    Some(value.strip_prefix("Bearer ").unwrap().to_owned())
}

/// What the browser fetches when it is sent back to this callback URL, in this order.
type Callbacks = dyn Fn(String) -> Vec<String> + Send + Sync;

/// A user with a browser.
pub(crate) struct User {
    callbacks: Option<Arc<Callbacks>>,
    asked: Mutex<Vec<LoginRequest>>,
    browsers: Mutex<Vec<JoinHandle<Vec<HttpResponse>>>>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").finish_non_exhaustive()
    }
}

impl User {
    /// Approves, and returns to the client.
    pub(crate) fn approving() -> Self {
        Self::returning(|callback| vec![callback])
    }

    /// Approves; then the browser fetches these URLs in place of the callback.
    pub(crate) fn returning(
        callbacks: impl Fn(String) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let callbacks: Arc<Callbacks> = Arc::new(callbacks);
        Self { callbacks: Some(callbacks), asked: Mutex::default(), browsers: Mutex::default() }
    }

    /// Sees the URL and does nothing.
    pub(crate) fn idle() -> Self {
        Self { callbacks: None, asked: Mutex::default(), browsers: Mutex::default() }
    }

    /// Returns the logins that the user was asked for.
    pub(crate) fn asked(&self) -> Vec<LoginRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the pages that the browser has received from the client.
    pub(crate) fn pages(&self) -> Vec<HttpResponse> {
        let browsers = std::mem::take(&mut *self.browsers.lock().unwrap());
        browsers.into_iter().flat_map(|browser| browser.join().unwrap()).collect()
    }
}

impl LoginPrompt for User {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        let url = login.url.to_string();
        self.asked.lock().unwrap().push(login);
        if let Some(callbacks) = self.callbacks.clone() {
            let browser = std::thread::spawn(move || {
                let callback = Browser::new().approve(&url);
                callbacks(callback).iter().map(|url| wire::get(url)).collect()
            });
            self.browsers.lock().unwrap().push(browser);
        }
        Box::pin(async { PromptResponse::Shown })
    }
}

/// Waits on another thread until a condition of the test server is met.
pub(crate) async fn until(
    server: &Arc<OAuthTestServer>,
    wait: impl FnOnce(&OAuthTestServer) + Send + 'static,
) {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || wait(&server)).await.unwrap();
}
