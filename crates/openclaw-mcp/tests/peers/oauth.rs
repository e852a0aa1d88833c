//! Logins at real authorization servers: `oidc-provider` in front of a server of the TypeScript SDK,
//! and `FastMCP` with the authorization server of the Python SDK.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp_client::connection::remote::AuthContext;
use openclaw_mcp_client::host::Host;
use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::{Grant, GrantKey};
use openclaw_oauth::login::{LoginPrompt, LoginRequest, Logout, PromptResponse};
use openclaw_oauth::refresh::Renewals;
use openclaw_oauth::store::{FileStore, GrantStore as _, KeyOptions};
use openclaw_testkit::oauth::Browser;
use openclaw_testkit::{OAuthPeer, OidcOptions, Peers};
use openclaw_tools::ToolOutcome;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::support::{call, servers, setup, until, within};

/// A user who signs in as `bob`, and clicks on the pages of the authorization server.
#[derive(Debug)]
struct User {
    approves: bool,
    asked: Mutex<Vec<LoginRequest>>,
}

impl User {
    fn new(approves: bool) -> Arc<Self> {
        Arc::new(Self { approves, asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl LoginPrompt for User {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        let (url, approves) = (login.url.to_string(), self.approves);
        self.asked.lock().unwrap().push(login);
        drop(std::thread::spawn(move || {
            let mut browser = Browser::of("bob");
            if approves { browser.approve_and_return(&url) } else { browser.deny_and_return(&url) }
        }));
        Box::pin(async { PromptResponse::Shown })
    }
}

/// A fleet with one server, `x`, and its user.
struct Client {
    fleet: Arc<Fleet>,
    tools: Arc<AgentTools>,
    user: Arc<User>,
    state: TempDir,
}

impl Client {
    /// Starts without a login, and asserts that one is required.
    async fn start(url: &str) -> Self {
        let (state, user) = (tempfile::tempdir().unwrap(), User::new(true));
        let config = servers(&json!({ "x": { "url": url, "timeout": 120_000 } }));
        let fleet = Fleet::start(&config, setup_with(state.path(), &user));
        let tools = fleet.agent("main").unwrap();
        within(fleet.tried()).await;
        let client = Self { fleet, tools, user, state };
        client.until(ServerState::NeedsAuth).await;
        assert_eq!(client.user.asked(), 0);
        client
    }

    /// Starts, logs in as a command would, and waits until the server has come up by itself.
    async fn logged_in(url: &str) -> (Self, Arc<Grant>) {
        let client = Self::start(url).await;
        let grant = client.login(true).await.unwrap();
        client.until(ServerState::Ready).await;
        (client, grant)
    }

    async fn until(&self, state: ServerState) {
        until(&mut self.tools.server("x").unwrap().snapshots(), state).await;
    }

    /// An authorizer as another process would have it.
    async fn authorizer(&self) -> Authorizer {
        self.tools.server("x").unwrap().authorizer().await.unwrap().unwrap()
    }

    async fn login(&self, approves: bool) -> Result<Arc<Grant>, AuthError> {
        let authorizer = self.authorizer().await;
        within(authorizer.login(User::new(approves).as_ref(), &BTreeSet::new())).await
    }

    async fn call(&self, tool: &str) -> ToolOutcome {
        call(&self.tools, &format!("mcp_x_{tool}"), json!({})).await
    }

    /// Calls `whoami`; returns its result.
    async fn whoami(&self) -> Value {
        let outcome = self.call("whoami").await;
        assert!(!outcome.is_error, "{}", outcome.rendered());
        let text = outcome.rendered();
        let (from, to) = (text.find('{').unwrap(), text.rfind('}').unwrap());
        serde_json::from_str(&text[from..=to]).unwrap()
    }

    async fn stop(self) {
        self.fleet.stop().await;
    }
}

fn setup_with(state: &Path, user: &Arc<User>) -> FleetSetup {
    let mut setup = setup(Host::default());
    let prompt: Arc<dyn LoginPrompt> = user.clone();
    setup.context.auth = Some(AuthContext {
        store: Arc::new(FileStore::new(state, KeyOptions { use_keychain: false })),
        prompt: Some(prompt),
        logs_in: false,
        client_metadata_url: None,
        renewals: Renewals::default(),
    });
    setup
}

/// Runs what blocks on another thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    within(spawn_blocking(work)).await.unwrap()
}

/// An authorization server, and the server that it protects.
type Pair = Arc<(OAuthPeer, OAuthPeer)>;

async fn protected(options: OidcOptions) -> Pair {
    blocking(move || {
        let peers = Peers::find();
        let provider = peers.oidc_provider(&options);
        let server = peers.protected_server(&provider, &options);
        Arc::new((provider, server))
    })
    .await
}

async fn token_requests(pair: &Pair, grant_type: &'static str) -> Vec<Value> {
    let pair = Arc::clone(pair);
    blocking(move || pair.0.token_requests(grant_type)).await
}

#[tokio::test]
async fn a_user_logs_in_at_oidc_provider_and_calls_a_tool() {
    let pair = protected(OidcOptions::default()).await;
    let client = Client::start(pair.1.url()).await;
    let denied = client.login(false).await.unwrap_err();
    assert!(denied.to_string().contains("access_denied"), "{denied}");

    let grant = client.login(true).await.unwrap();
    assert_eq!(grant.issuer, pair.0.url());
    client.until(ServerState::Ready).await;
    let whoami = client.whoami().await;
    assert_eq!((&whoami["subject"], &whoami["scopes"]), (&json!("bob"), &json!(["mcp:read"])));
    assert_eq!(whoami["client"], json!(grant.client.id));
    let requests = token_requests(&pair, "authorization_code").await;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["form"]["resource"], pair.1.url());
    client.stop().await;
}

#[tokio::test]
async fn a_token_of_oidc_provider_is_renewed_when_it_expires_with_rotation() {
    let oidc = OidcOptions { access_token_lifetime: 2, ..OidcOptions::default() };
    let pair = protected(oidc).await;
    let (client, first) = Client::logged_in(pair.1.url()).await;
    // Every call succeeds, before and after the expiry.
    let renewed = async {
        while token_requests(&pair, "refresh_token").await.len() < 2 {
            assert_eq!(client.whoami().await["subject"], "bob");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(renewed).await;
    let requests = token_requests(&pair, "refresh_token").await;
    assert!(requests.iter().all(|request| request["status"] == 200), "{requests:?}");
    let stored = client.authorizer().await.stored().await.unwrap().unwrap();
    assert_ne!(stored.refresh_token, first.refresh_token);
    client.stop().await;
}

#[tokio::test]
async fn a_token_that_the_server_rejects_is_renewed_and_a_revoked_one_needs_a_login() {
    let pair = protected(OidcOptions::default()).await;
    let (client, _) = Client::logged_in(pair.1.url()).await;
    let server = Arc::clone(&pair);
    blocking(move || server.1.expire_tokens()).await;
    assert_eq!(client.whoami().await["subject"], "bob");
    assert_eq!(token_requests(&pair, "refresh_token").await.len(), 1);

    let server = Arc::clone(&pair);
    blocking(move || {
        server.0.revoke_refresh_tokens();
        server.1.expire_tokens();
    })
    .await;
    for _ in 0..2 {
        let outcome = client.call("whoami").await;
        assert!(outcome.is_error && outcome.text().contains("login"), "{}", outcome.text());
        client.until(ServerState::NeedsAuth).await;
    }
    let hint = client.tools.server("x").unwrap().status().last_error.unwrap().hint.unwrap();
    assert!(hint.contains("openclaw mcp login x"), "{hint}");
    assert_eq!(token_requests(&pair, "refresh_token").await.len(), 2);
    client.login(true).await.unwrap();
    client.until(ServerState::Ready).await;
    assert_eq!(client.whoami().await["subject"], "bob");
    client.stop().await;
}

#[tokio::test]
async fn a_refresh_token_that_is_used_twice_ends_the_login_at_oidc_provider() {
    let pair = protected(OidcOptions::default()).await;
    let (client, first) = Client::logged_in(pair.1.url()).await;
    let expire = || {
        let server = Arc::clone(&pair);
        blocking(move || server.1.expire_tokens())
    };
    expire().await;
    client.whoami().await;
    client.fleet.stop().await;

    // The state folder is restored from a backup, with a refresh token that was used.
    let store = FileStore::new(client.state.path(), KeyOptions { use_keychain: false });
    let key = GrantKey::new("x", &pair.1.url().parse().unwrap());
    let lease = store.lock(&key, Duration::from_secs(30)).await.unwrap();
    store.save(&lease, &first).await.unwrap();
    drop(lease);
    expire().await;
    let config = servers(&json!({ "x": { "url": pair.1.url(), "timeout": 120_000 } }));
    let fleet = Fleet::start(&config, setup_with(client.state.path(), &client.user));
    let client = Client { tools: fleet.agent("main").unwrap(), fleet, ..client };
    client.until(ServerState::NeedsAuth).await;
    let outcomes = token_requests(&pair, "refresh_token").await;
    let outcomes: Vec<_> = outcomes.iter().map(|request| &request["status"]).collect();
    assert_eq!(outcomes, [200, 400]);
    client.login(true).await.unwrap();
    client.until(ServerState::Ready).await;
    client.whoami().await;
    client.stop().await;
}

#[tokio::test]
async fn the_user_of_oidc_provider_grants_another_scope_in_the_middle_of_a_call() {
    let pair = protected(OidcOptions::default()).await;
    let (client, _) = Client::logged_in(pair.1.url()).await;
    let outcome = client.call("admin_task").await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
    assert!(outcome.rendered().contains("done"), "{}", outcome.rendered());
    assert_eq!(client.user.asked(), 1);
    let scopes: BTreeSet<_> =
        client.authorizer().await.stored().await.unwrap().unwrap().scopes.clone();
    assert!(scopes.contains("mcp:read") && scopes.contains("mcp:admin"), "{scopes:?}");
    let outcome = client.call("admin_task").await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
    assert_eq!(client.user.asked(), 1);
    client.stop().await;
}

#[tokio::test]
async fn a_logout_revokes_the_tokens_at_oidc_provider() {
    let oidc = OidcOptions { access_token_format: "opaque", ..OidcOptions::default() };
    let pair = protected(oidc).await;
    let (client, _) = Client::logged_in(pair.1.url()).await;
    client.whoami().await;
    let outcome = client.authorizer().await.logout().await.unwrap();
    assert!(matches!(outcome, Logout::Revoked), "{outcome:?}");
    let server = Arc::clone(&pair);
    let requests = blocking(move || server.0.requests()).await;
    let revocations: Vec<_> =
        requests.iter().filter(|request| request["path"] == "/token/revocation").collect();
    assert!(revocations.len() == 1 && revocations[0]["status"] == 200, "{revocations:?}");
    let outcome = client.call("whoami").await;
    assert!(outcome.text().contains("openclaw mcp login x"), "{}", outcome.text());
    client.until(ServerState::NeedsAuth).await;
    assert!(token_requests(&pair, "refresh_token").await.is_empty());
    client.stop().await;
}

#[tokio::test]
async fn tokens_are_bound_to_a_key_where_oidc_provider_requires_it() {
    assert_bound(false).await;
}

#[tokio::test]
async fn proofs_have_the_nonces_that_oidc_provider_and_the_server_require() {
    assert_bound(true).await;
}

/// `oidc-provider`, which offers DPoP, and a `FastMCP` server that checks its tokens.
async fn fastmcp_jwt(options: OidcOptions) -> Pair {
    blocking(move || {
        let peers = Peers::find();
        let provider = peers.oidc_provider(&options);
        let server = peers.fastmcp_jwt(&provider, &options);
        Arc::new((provider, server))
    })
    .await
}

#[tokio::test]
async fn a_bearer_check_of_the_typescript_sdk_is_passed_where_the_issuer_offers_dpop() {
    let oidc = OidcOptions { bearer_only: true, ..OidcOptions::default() };
    assert_bearer(protected(oidc).await).await;
}

#[tokio::test]
async fn the_jwt_verifier_of_fastmcp_is_passed_where_the_issuer_offers_dpop() {
    assert_bearer(fastmcp_jwt(OidcOptions::default()).await).await;
}

async fn assert_bearer(pair: Pair) {
    let (client, grant) = Client::logged_in(pair.1.url()).await;
    assert!(grant.dpop.is_none());
    assert_eq!(client.whoami().await["subject"], "bob");
    let server = Arc::clone(&pair);
    blocking(move || server.1.expire_tokens()).await;
    assert_eq!(client.whoami().await["subject"], "bob");
    let refreshes = token_requests(&pair, "refresh_token").await;
    assert!(refreshes.len() == 1 && refreshes[0]["status"] == 200, "{refreshes:?}");
    let server = Arc::clone(&pair);
    let seen = blocking(move || server.1.seen()).await;
    assert!(seen.iter().all(|request| request["scheme"] != "DPoP"), "{seen:?}");
    client.stop().await;
}

#[tokio::test]
async fn a_server_that_requires_bound_tokens_and_rejects_them_works_after_a_second_login() {
    let requiring = OidcOptions { dpop_required: true, ..OidcOptions::default() };
    let bearer_only = OidcOptions { bearer_only: true, ..requiring.clone() };
    for pair in [protected(bearer_only).await, fastmcp_jwt(requiring).await] {
        let client = Client::start(pair.1.url()).await;
        assert!(client.login(true).await.unwrap().dpop.is_some());
        // The authorization server binds the refresh tokens of public clients, too.
        let rejected = async {
            loop {
                let stored = client.authorizer().await.stored().await.unwrap().unwrap();
                if stored.bearer_only {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        within(rejected).await;
        assert!(client.login(true).await.unwrap().dpop.is_none());
        client.until(ServerState::Ready).await;
        assert_eq!(client.whoami().await["subject"], "bob");
        client.stop().await;
    }
}

async fn assert_bound(nonce: bool) {
    let oidc = OidcOptions { dpop: true, dpop_nonce: nonce, ..OidcOptions::default() };
    let pair = protected(oidc).await;
    let (client, grant) = Client::logged_in(pair.1.url()).await;
    assert!(grant.dpop.is_some());
    assert_eq!(client.whoami().await["subject"], "bob");
    let server = Arc::clone(&pair);
    blocking(move || {
        server.1.expire_tokens();
        // Also changes the nonce.
        server.1.require_dpop_nonce(nonce);
    })
    .await;
    assert_eq!(client.whoami().await["subject"], "bob");
    let refreshes = token_requests(&pair, "refresh_token").await;
    let succeeded = refreshes.iter().filter(|request| request["status"] == 200);
    assert_eq!(succeeded.count(), 1, "{refreshes:?}");
    let server = Arc::clone(&pair);
    let seen = blocking(move || server.1.seen()).await;
    let accepted = seen.iter().filter(|request| request["status"] == 200);
    assert!(accepted.clone().count() > 0);
    assert!(accepted.into_iter().all(|request| request["scheme"] == "DPoP"), "{seen:?}");
    client.stop().await;
}

#[tokio::test]
async fn a_user_logs_in_at_fastmcp_and_its_token_is_renewed() {
    let server = Arc::new(blocking(|| Peers::find().fastmcp_oauth()).await);
    let (client, first) = Client::logged_in(server.url()).await;
    let whoami = client.whoami().await;
    assert_eq!(whoami, json!({ "client": first.client.id, "scopes": ["read"] }));

    let peer = Arc::clone(&server);
    blocking(move || peer.expire_tokens()).await;
    assert_eq!(client.whoami().await["scopes"], json!(["read"]));
    let peer = Arc::clone(&server);
    let refreshes = blocking(move || peer.token_requests("refresh_token")).await;
    assert_eq!(refreshes.len(), 1);
    let stored = client.authorizer().await.stored().await.unwrap().unwrap();
    assert_ne!(stored.refresh_token, first.refresh_token);

    let peer = Arc::clone(&server);
    blocking(move || {
        peer.expire_tokens();
        peer.revoke_refresh_tokens();
    })
    .await;
    let outcome = client.call("whoami").await;
    assert!(outcome.text().contains("openclaw mcp login x"), "{}", outcome.text());
    client.until(ServerState::NeedsAuth).await;

    // The same client logs in again: this server compares the whole redirect URI.
    let again = client.login(true).await.unwrap();
    assert_eq!(again.client.id, first.client.id);
    client.until(ServerState::Ready).await;
    client.whoami().await;
    let outcome = client.authorizer().await.logout().await.unwrap();
    assert!(matches!(outcome, Logout::Revoked), "{outcome:?}");
    client.stop().await;
}
