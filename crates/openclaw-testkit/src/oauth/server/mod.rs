//! An authorization server and the MCP server that it protects, in the process of the test. Every
//! request is recorded.

mod authorization;
mod mcp;
mod metadata;
mod shared;
mod tokens;

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

pub use tokens::Tokens;

use super::script::{Endpoint, OAuthScript};
use crate::engine::{Engine, lock};
use crate::http::Server;
use shared::{Phase, Shared, accept};
use tokens::TokenStore;

/// The timeout of [`OAuthTestServer::wait_for`].
const PATIENCE: Duration = Duration::from_secs(60);

/// A recorded request.
#[derive(Debug, Clone)]
pub struct OAuthRequest {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The parameters of the URL.
    pub query: BTreeMap<String, String>,
    /// The parameters of the body; empty if it is not a form.
    pub form: BTreeMap<String, String>,
    /// The body, if it is JSON.
    pub json: Value,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The status of the response; 0 as long as the request is not processed, or if there is none.
    pub status: u16,
}

/// A running server. It has two addresses, one for the MCP server and one for the authorization server,
/// and runs on its own thread until it is dropped.
///
/// ```no_run
/// use openclaw_testkit::oauth::{Browser, Endpoint, Fake, OAuthScript, OAuthTestServer};
///
/// let script = OAuthScript::new().fault(Endpoint::Refresh, Fake::Status(500), 1);
/// let server = OAuthTestServer::start(script);
/// // … a client connects to `server.url()`, and `Browser::new().approve(…)` signs in …
/// assert_eq!(server.count(Endpoint::Refresh), 1);
/// ```
#[derive(Debug)]
pub struct OAuthTestServer {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OAuthTestServer {
    /// Starts a server on two free ports.
    ///
    /// # Panics
    /// If it does not start.
    #[expect(clippy::expect_used, reason = "a test cannot continue without it")]
    pub fn start(script: OAuthScript) -> Self {
        let engine = Engine::new(script.mcp.clone(), None).expect("invalid script");
        let bind = || {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let listener = listener.expect("no free port");
            listener.set_nonblocking(true).expect("no non-blocking sockets");
            listener
        };
        let listeners = [bind(), bind()];
        let [resource_origin, server_origin] = listeners.each_ref().map(|listener| {
            let port = listener.local_addr().map_or(0, |address| address.port());
            format!("http://127.0.0.1:{port}")
        });
        let shared = Arc::new(Shared {
            tokens: Mutex::new(TokenStore::new(&script.clients)),
            script: Mutex::new(script),
            requests: Mutex::default(),
            changed: Condvar::new(),
            held: watch::channel(HashSet::new()).0,
            mcp: Arc::new(Server::new(engine)),
            resource_origin,
            server_origin,
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("no runtime").block_on(async {
                for listener in listeners {
                    let listener = TcpListener::from_std(listener).expect("an open socket");
                    tokio::spawn(accept(Arc::clone(&serving), listener));
                }
                let _ = stopped.await;
            });
        });
        Self { shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the URL of the MCP server.
    pub fn url(&self) -> String {
        self.shared.mcp_url()
    }

    /// Returns the issuer: the URL of the authorization server.
    pub fn issuer(&self) -> String {
        self.shared.issuer()
    }

    /// Changes the behaviour, for requests from now on.
    pub fn change(&self, change: impl FnOnce(&mut OAuthScript)) {
        change(&mut lock(&self.shared.script));
    }

    /// Returns the requests to an endpoint.
    pub fn requests(&self, endpoint: Endpoint) -> Vec<OAuthRequest> {
        let requests = lock(&self.shared.requests);
        requests.iter().filter(|request| request.endpoint == endpoint).cloned().collect()
    }

    /// Returns all requests, in the order of their arrival.
    pub fn all_requests(&self) -> Vec<OAuthRequest> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the number of requests to an endpoint.
    pub fn count(&self, endpoint: Endpoint) -> usize {
        self.requests(endpoint).len()
    }

    /// Blocks until this many requests to an endpoint have arrived, processed or not.
    ///
    /// # Panics
    /// If that takes longer than a minute.
    pub fn wait_for(&self, endpoint: Endpoint, count: usize) {
        self.wait_until(endpoint, count, |_| true);
    }

    /// Blocks until this many requests to an endpoint are processed; the responses may be held.
    ///
    /// # Panics
    /// If that takes longer than a minute.
    pub fn wait_for_processed(&self, endpoint: Endpoint, count: usize) {
        self.wait_until(endpoint, count, |request| request.status != 0);
    }

    fn wait_until(&self, endpoint: Endpoint, count: usize, fits: impl Fn(&OAuthRequest) -> bool) {
        let enough = |requests: &[OAuthRequest]| {
            let of_endpoint = requests.iter().filter(|request| request.endpoint == endpoint);
            of_endpoint.filter(|request| fits(request)).count() >= count
        };
        let mut requests = lock(&self.shared.requests);
        let end = Instant::now() + PATIENCE;
        while !enough(&requests) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {count} requests to {endpoint:?}: {requests:?}");
            requests = match self.shared.changed.wait_timeout(requests, left) {
                Ok((requests, _)) => requests,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Keeps requests to an endpoint waiting, unprocessed, until [`release`](Self::release).
    pub fn hold(&self, endpoint: Endpoint) {
        self.shared.held.send_modify(|held| held.extend([(endpoint, Phase::Before)]));
    }

    /// Processes requests to an endpoint, but keeps the responses until [`release`](Self::release): a
    /// refresh token has been replaced, and the client does not know the new one yet.
    pub fn hold_responses(&self, endpoint: Endpoint) {
        self.shared.held.send_modify(|held| held.extend([(endpoint, Phase::After)]));
    }

    /// Continues with the requests and responses that are held.
    pub fn release(&self, endpoint: Endpoint) {
        self.shared.held.send_modify(|held| held.retain(|(held, _)| *held != endpoint));
    }

    /// Issues tokens without a login, for a client that is registered with them.
    pub fn issue(&self, scope: &str) -> Tokens {
        let lifetime = lock(&self.shared.script).lifetime;
        lock(&self.shared.tokens).issue_directly(scope, lifetime)
    }

    /// Makes all access tokens invalid; refresh tokens stay valid.
    pub fn expire_access_tokens(&self) {
        lock(&self.shared.tokens).expire_access_tokens();
    }

    /// Makes all access and refresh tokens invalid, as a user who revokes the access of all clients.
    pub fn revoke_all(&self) {
        lock(&self.shared.tokens).revoke_all();
    }

    /// Returns whether an access token is valid.
    pub fn is_valid(&self, access_token: &str) -> bool {
        lock(&self.shared.tokens).access(access_token).is_some()
    }
}

impl Drop for OAuthTestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
