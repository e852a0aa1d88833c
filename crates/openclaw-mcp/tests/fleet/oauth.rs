//! Remote servers with logins: the states of the fleet, and what arrives at the servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::{Fleet, FleetSetup};
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp_client::connection::remote::AuthContext;
use openclaw_oauth::authorizer::{Authorizer, AuthorizerOptions};
use openclaw_oauth::grant::GrantKey;
use openclaw_oauth::login::{LoginPrompt, LoginRequest, Logout, PromptResponse};
use openclaw_oauth::refresh::Renewals;
use openclaw_oauth::settings::AuthSettings;
use openclaw_oauth::store::{FileStore, GrantStore as _, KeyOptions};
use openclaw_testkit::oauth::{
    Browser, Endpoint, Fake, OAuthRequest, OAuthScript, OAuthTestServer,
};
use openclaw_testkit::{Script, Tool};
use openclaw_tools::ToolFailure;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::support::{call, ready_with, servers, setup, setup_in};

const PATIENCE: Duration = Duration::from_secs(60);

/// A user who approves every login.
#[derive(Debug, Default)]
struct User(Mutex<Vec<LoginRequest>>);

impl User {
    fn asked(&self) -> Vec<LoginRequest> {
        self.0.lock().unwrap().clone()
    }
}

impl LoginPrompt for User {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        drop(Browser::new().approve_in_background(login.url.as_str()));
        self.0.lock().unwrap().push(login);
        Box::pin(async { PromptResponse::Shown })
    }
}

fn store(state: &Path) -> Arc<FileStore> {
    Arc::new(FileStore::new(state, KeyOptions { use_keychain: false }))
}

fn setup_with(state: &Path, prompt: Option<Arc<User>>) -> FleetSetup {
    with_logins(setup(), state, prompt)
}

fn with_logins(mut setup: FleetSetup, state: &Path, prompt: Option<Arc<User>>) -> FleetSetup {
    let prompt = prompt.map(|user| -> Arc<dyn LoginPrompt> { user });
    let auth = AuthContext {
        store: store(state),
        prompt,
        logs_in: false,
        client_metadata_url: None,
        renewals: Renewals::default(),
    };
    setup.context.auth = Some(auth);
    setup
}

/// Starts a fleet with this server as `x`.
async fn start(server: &OAuthTestServer, setup: FleetSetup) -> (Arc<Fleet>, Arc<AgentTools>) {
    let config = servers(json!({ "x": { "url": server.url(), "timeout": 60_000 } }));
    ready_with(&config, setup).await
}

/// Logs in as another process would: with its own store on the same folder.
async fn log_in_elsewhere(server: &OAuthTestServer, state: &Path) -> Authorizer {
    let (url, settings) = (server.url().parse().unwrap(), AuthSettings::default());
    let options = AuthorizerOptions::new("x", url, settings, store(state)).unwrap();
    let elsewhere = Authorizer::new(options);
    let (user, scopes) = (User::default(), BTreeSet::new());
    let login = elsewhere.login(&user, &scopes);
    tokio::time::timeout(PATIENCE, login).await.unwrap().unwrap();
    elsewhere
}

/// Starts a fleet with a server that is logged in to, and waits until it is connected.
async fn logged_in(server: &OAuthTestServer, state: &Path) -> (Arc<Fleet>, Arc<AgentTools>) {
    log_in_elsewhere(server, state).await;
    let (fleet, tools) = start(server, setup_with(state, None)).await;
    until(&tools, ServerState::Ready).await;
    (fleet, tools)
}

/// Waits until the server has this state; returns its status.
async fn until(tools: &AgentTools, state: ServerState) -> ServerStatus {
    let server = tools.server("x").unwrap();
    let mut snapshots = server.snapshots();
    let reached = snapshots.wait_for(|snapshot| snapshot.state == state);
    match tokio::time::timeout(PATIENCE, reached).await {
        Ok(snapshot) => drop(snapshot.unwrap()),
        Err(_) => panic!("not {state:?}: {:?}", server.status()),
    }
    server.status()
}

/// Waits for a notice to the agent, and asserts that it is the only one.
async fn notice(tools: &AgentTools) -> String {
    let wait = async {
        loop {
            let mut notices = tools.take_notices();
            if let Some(notice) = notices.pop() {
                assert!(notices.is_empty(), "{notices:?} {notice}");
                return notice;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap()
}

/// Waits for the only notice to the agent, and asserts that it contains these words.
async fn assert_notice(tools: &AgentTools, words: &str) {
    let notice = notice(tools).await;
    assert!(notice.contains(words), "{notice}");
}

/// Waits until the server needs a login, and asserts that its status says how to log in.
async fn assert_needs_login(tools: &AgentTools) {
    let status = until(tools, ServerState::NeedsAuth).await;
    assert!(status.last_error.unwrap().hint.unwrap().contains("openclaw mcp login x"));
}

async fn echo(tools: &AgentTools) -> openclaw_tools::ToolOutcome {
    call(tools, "mcp_x_echo", json!({ "text": "hello" })).await
}

async fn assert_works(tools: &AgentTools) {
    let outcome = echo(tools).await;
    assert!(!outcome.is_error && outcome.rendered().contains("hello"), "{}", outcome.rendered());
}

/// The MCP requests of a method that were not rejected.
fn accepted(server: &OAuthTestServer, method: &str) -> Vec<OAuthRequest> {
    let mut requests = server.requests(Endpoint::Mcp);
    requests.retain(|request| request.json["method"] == method && request.status < 400);
    requests
}

/// A server, and an empty state folder.
fn fresh() -> (OAuthTestServer, tempfile::TempDir) {
    (OAuthTestServer::start(OAuthScript::new()), tempfile::tempdir().unwrap())
}

/// One server of each era.
fn eras() -> [OAuthTestServer; 2] {
    [Script::new().legacy(), Script::new().modern()]
        .map(|mcp| OAuthTestServer::start(OAuthScript { mcp, ..OAuthScript::new() }))
}

#[tokio::test]
async fn without_a_login_a_server_needs_one_and_nobody_is_asked() {
    let (server, state) = fresh();
    let user = Arc::new(User::default());
    let (fleet, tools) = start(&server, setup_with(state.path(), Some(user.clone()))).await;
    assert_needs_login(&tools).await;
    assert!(user.asked().is_empty());
    assert_notice(&tools, "requires a login").await;
    assert_eq!(server.count(Endpoint::Register) + server.count(Endpoint::Authorize), 0);
    fleet.stop().await;
}

#[tokio::test]
async fn a_login_in_another_process_brings_the_server_up() {
    for server in eras() {
        let state = tempfile::tempdir().unwrap();
        let (fleet, tools) = start(&server, setup_with(state.path(), None)).await;
        until(&tools, ServerState::NeedsAuth).await;
        log_in_elsewhere(&server, state.path()).await;
        until(&tools, ServerState::Ready).await;
        assert_works(&tools).await;
        fleet.stop().await;
    }
}

#[tokio::test]
async fn the_end_of_a_fleet_waits_for_a_refresh_that_was_sent() {
    let (server, state) = fresh();
    let server = Arc::new(server);
    let (fleet, tools) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    server.hold_responses(Endpoint::Refresh);
    let calling = tokio::spawn(async move { echo(&tools).await });
    let refreshing = Arc::clone(&server);
    let sent = move || refreshing.wait_for_processed(Endpoint::Refresh, 1);
    tokio::task::spawn_blocking(sent).await.unwrap();
    // The user cancels the call, and the command ends.
    calling.abort();
    let mut stopping = Box::pin(fleet.stop());
    let early = tokio::time::timeout(Duration::from_millis(500), &mut stopping).await;
    assert!(early.is_err(), "the new refresh token would be lost");
    server.release(Endpoint::Refresh);
    stopping.await;
    let key = GrantKey::new("x", &server.url().parse().unwrap());
    let stored = store(state.path()).load(&key).await.unwrap().unwrap();
    assert!(stored.refreshing_since.is_none());
    assert!(server.is_valid(stored.grant.access_token.expose()));
}

#[tokio::test]
async fn a_401_in_the_middle_of_a_session_is_refreshed_and_the_call_is_processed_once() {
    for server in eras() {
        let state = tempfile::tempdir().unwrap();
        let (fleet, tools) = logged_in(&server, state.path()).await;
        let before = tools.server("x").unwrap().snapshots().borrow().connection.clone().unwrap();
        assert_works(&tools).await;
        server.expire_access_tokens();
        assert_works(&tools).await;
        assert_eq!(accepted(&server, "tools/call").len(), 2);
        assert_eq!(server.count(Endpoint::Refresh), 1);
        assert!(accepted(&server, "initialize").len() <= 1, "the session is kept");
        let after = tools.server("x").unwrap().snapshots().borrow().connection.clone().unwrap();
        assert!(Arc::ptr_eq(&before, &after), "the connection is kept");
        fleet.stop().await;
    }
}

#[tokio::test]
async fn concurrent_calls_with_an_expired_token_share_one_refresh() {
    let (server, state) = fresh();
    let (fleet, tools) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    for outcome in join_all((0..30).map(|_| echo(&tools))).await {
        assert!(!outcome.is_error, "{}", outcome.rendered());
    }
    assert_eq!(server.count(Endpoint::Refresh), 1);
    assert_eq!(accepted(&server, "tools/call").len(), 30);
    fleet.stop().await;
}

#[tokio::test]
async fn after_a_revocation_a_login_is_required_and_brings_the_server_back() {
    for server in eras() {
        let state = tempfile::tempdir().unwrap();
        let (fleet, tools) = logged_in(&server, state.path()).await;
        assert!(tools.take_notices().is_empty());
        server.revoke_all();
        let outcome = echo(&tools).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::NeedsLogin), "{}", outcome.text());
        assert!(outcome.text().contains("openclaw mcp login x"), "{}", outcome.text());
        assert_needs_login(&tools).await;
        assert_notice(&tools, "requires a login").await;
        let again = echo(&tools).await;
        assert!(again.is_error && again.text().contains("login"), "{}", again.text());
        assert_eq!(server.count(Endpoint::Refresh), 1, "a dead token is sent once");

        log_in_elsewhere(&server, state.path()).await;
        until(&tools, ServerState::Ready).await;
        assert_works(&tools).await;
        assert_notice(&tools, "is available again").await;
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_grant_that_was_revoked_while_no_process_ran_needs_a_login() {
    let (server, state) = fresh();
    log_in_elsewhere(&server, state.path()).await;
    server.revoke_all();
    let (fleet, tools) = start(&server, setup_with(state.path(), None)).await;
    assert_needs_login(&tools).await;
    assert_eq!(server.count(Endpoint::Refresh), 1);
    log_in_elsewhere(&server, state.path()).await;
    until(&tools, ServerState::Ready).await;
    fleet.stop().await;
}

#[tokio::test]
async fn an_outage_of_the_authorization_server_is_no_reason_for_a_login() {
    let (server, state) = fresh();
    let (fleet, tools) = logged_in(&server, state.path()).await;
    server.expire_access_tokens();
    server.change(|script| script.faults = vec![(Endpoint::Refresh, Fake::Status(503), 1)]);
    let outcome = echo(&tools).await;
    assert!(outcome.is_error && !outcome.text().contains("mcp login"), "{}", outcome.rendered());
    assert_works(&tools).await;
    fleet.stop().await;
}

#[tokio::test]
async fn after_a_logout_the_token_is_invalid_and_a_login_is_required() {
    let (server, state) = fresh();
    let elsewhere = log_in_elsewhere(&server, state.path()).await;
    let (fleet, tools) = start(&server, setup_with(state.path(), None)).await;
    until(&tools, ServerState::Ready).await;
    let token = elsewhere.in_use().unwrap().access_token.clone();
    let ours = tools.server("x").unwrap().authorizer().await.unwrap().unwrap();
    let outcome = ours.logout().await.unwrap();
    assert!(matches!(outcome, Logout::Revoked), "{outcome:?}");
    assert!(!server.is_valid(token.expose()));
    let outcome = echo(&tools).await;
    assert!(outcome.text().contains("openclaw mcp login x"), "{}", outcome.text());
    until(&tools, ServerState::NeedsAuth).await;
    assert_eq!(server.count(Endpoint::Refresh), 0);
    fleet.stop().await;
}

#[tokio::test]
async fn a_call_that_needs_another_scope_succeeds_once_the_user_grants_it() {
    for server in eras() {
        server.change(|script| script.tool_scopes = vec![("echo".into(), "admin".into())]);
        let state = tempfile::tempdir().unwrap();
        log_in_elsewhere(&server, state.path()).await;
        let user = Arc::new(User::default());
        let (fleet, tools) = start(&server, setup_with(state.path(), Some(user.clone()))).await;
        until(&tools, ServerState::Ready).await;
        assert_works(&tools).await;
        let asked = user.asked();
        assert_eq!(asked.len(), 1);
        let scopes: BTreeSet<_> = asked[0].scopes.iter().map(String::as_str).collect();
        assert_eq!(scopes, BTreeSet::from(["admin", "mcp"]));
        assert_eq!(accepted(&server, "tools/call").len(), 1);
        fleet.stop().await;
    }
}

#[tokio::test]
async fn without_a_user_a_missing_scope_fails_the_call_and_not_the_server() {
    let mcp = Script::new().tools([Tool::new("echo"), Tool::new("wipe")]);
    let script = OAuthScript { mcp, ..OAuthScript::new() }.tool_scope("wipe", "admin");
    let server = OAuthTestServer::start(script);
    let state = tempfile::tempdir().unwrap();
    let (fleet, tools) = logged_in(&server, state.path()).await;
    let outcome = call(&tools, "mcp_x_wipe", json!({})).await;
    assert!(outcome.is_error, "{}", outcome.rendered());
    assert!(outcome.rendered().contains("permission"), "{}", outcome.rendered());
    assert!(outcome.rendered().contains("admin"), "{}", outcome.rendered());
    let outcome = call(&tools, "mcp_x_echo", json!({})).await;
    assert!(!outcome.is_error, "{}", outcome.rendered());
    assert_eq!(tools.server("x").unwrap().status().state, ServerState::Ready);
    fleet.stop().await;
}

#[tokio::test]
async fn a_token_does_not_reach_the_target_of_a_redirect() {
    let [server, other] = eras();
    let state = tempfile::tempdir().unwrap();
    let (fleet, tools) = logged_in(&server, state.path()).await;
    let fault = (Endpoint::Mcp, Fake::Redirect(other.url()), 0);
    server.change(|script| script.faults = vec![fault]);
    let outcome = echo(&tools).await;
    assert!(outcome.is_error, "{}", outcome.rendered());
    assert!(other.all_requests().is_empty(), "{:?}", other.all_requests());
    fleet.stop().await;
}

#[tokio::test]
async fn two_names_for_one_url_are_two_accounts() {
    let (server, state) = fresh();
    log_in_elsewhere(&server, state.path()).await;
    let entry = json!({ "url": server.url(), "timeout": 60_000 });
    let config = servers(json!({ "x": entry, "work": entry }));
    let (fleet, tools) = ready_with(&config, setup_with(state.path(), None)).await;
    until(&tools, ServerState::Ready).await;
    let other = tools.server("work").unwrap().status();
    assert_eq!(other.state, ServerState::NeedsAuth);
    assert!(other.last_error.unwrap().hint.unwrap().contains("openclaw mcp login work"));
    fleet.stop().await;
}

#[tokio::test]
async fn a_damaged_token_file_needs_a_login_and_a_login_repairs_it() {
    let (server, state) = fresh();
    log_in_elsewhere(&server, state.path()).await;
    for entry in std::fs::read_dir(state.path().join("mcp/tokens")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            std::fs::write(path, "{").unwrap();
        }
    }
    let (fleet, tools) = start(&server, setup_with(state.path(), None)).await;
    assert_needs_login(&tools).await;
    log_in_elsewhere(&server, state.path()).await;
    until(&tools, ServerState::Ready).await;
    fleet.stop().await;
}

#[tokio::test]
async fn an_authorization_server_is_reached_through_the_proxy_of_the_environment() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let document =
        json!({ "resource": server.url(), "authorization_servers": ["https://as.example.com"] });
    let fake = Fake::Json(200, document);
    server.change(|script| script.faults.push((Endpoint::ResourceMetadata, fake, 0)));
    for (scheme, beginning) in [("http", &b"CONNECT as.example.com:443 "[..]), ("socks5h", &[5])] {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", proxy.local_addr().unwrap());
        let environment = [("PATH", "/usr/bin:/bin"), ("ALL_PROXY", url.as_str())];
        let state = tempfile::tempdir().unwrap();
        let setup = setup_in(environment.into_iter().collect());
        let mut setup = with_logins(setup, state.path(), Some(Arc::new(User::default())));
        setup.context.auth.as_mut().unwrap().logs_in = true;
        setup.tries_again = false;
        let asked = tokio::spawn(async move {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut sent = vec![0; 1024];
            let read = stream.read(&mut sent).await.unwrap();
            sent.truncate(read);
            sent
        });
        // The server itself is on this machine, and is reached directly.
        let (fleet, tools) = start(&server, setup).await;
        assert_ne!(tools.server("x").unwrap().status().state, ServerState::Ready);
        let sent = tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap();
        assert!(sent.starts_with(beginning), "{}", String::from_utf8_lossy(&sent));
        fleet.stop().await;
    }
}
