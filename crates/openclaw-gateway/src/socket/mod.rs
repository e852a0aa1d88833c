//! The server in front of the gateway: HTTP and WebSocket, who is let in, and what nobody may overdo.

mod admission;
mod attempts;
mod connection;
mod greeting;
mod http;
mod listener;
mod origin;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_protocol::connect::{ClientInfo, Snapshot};
use openclaw_protocol::socket::SendLimits;
use openclaw_protocol::{ErrorShape, EventReceiver, Method};
use openclaw_secrets::SecretString;
use serde_json::Value;
use serde_json::value::RawValue;

pub use listener::{Bound, Listening, bind};

/// Who serves callers.
///
/// Everything here is called while somebody waits, and must come back at once.
pub trait Desk: Send + Sync + fmt::Debug {
    /// A caller has come: its end of the gateway, dropped when it goes.
    ///
    /// # Errors
    /// What to tell a caller that is not wanted.
    fn open(&self, caller: Caller) -> Result<Arc<dyn Endpoint>, ErrorShape>;

    /// What to tell a caller about the gateway.
    fn hello(&self, caller: &Caller) -> Greeting;

    /// Whether calls can be served.
    fn is_ready(&self) -> bool;

    /// What stands at `/oauth/client-metadata.json`; none if there is no such thing.
    fn client_metadata(&self) -> Option<Value>;

    /// Web pages that may call, such as `https://example.com`. Their hosts may also be ours.
    fn allowed_origins(&self) -> Vec<String>;
}

/// One caller's end of the gateway, as the socket sees it: methods by name, JSON in and out.
///
/// Dropping the future of a request cancels it.
pub trait Endpoint: Send + Sync + fmt::Debug {
    /// Answers a request.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>>;

    /// Listens from now on.
    fn events(&self) -> EventReceiver;
}

/// Who has come, after it was let in.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Which program, as it says itself.
    pub client: ClientInfo,
    /// `operator` or `node`.
    pub role: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// What it can show.
    pub caps: Vec<String>,
    /// What can be called on it, if it is a node.
    pub commands: Vec<String>,
    /// Where it is.
    pub remote: SocketAddr,
    /// Its connection; never used twice.
    pub connection: String,
}

impl Caller {
    /// Whether it may use this method.
    #[must_use]
    pub fn may(&self, method: Method) -> bool {
        method.scope().is_in(&self.scopes)
    }
}

/// What a gateway says about itself.
#[derive(Debug, Clone, Default)]
pub struct Greeting {
    /// Its version.
    pub version: String,
    /// Its methods.
    pub methods: Vec<String>,
    /// Its events.
    pub events: Vec<String>,
    /// What else it can do.
    pub capabilities: Vec<String>,
    /// How it is.
    pub snapshot: Snapshot,
}

/// Where to listen, and for whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address; loopback unless somebody wants otherwise.
    pub bind: IpAddr,
    /// The port; 0 for any.
    pub port: u16,
    /// What callers must show. Without one, everybody on this machine is let in, and nobody else.
    pub token: Option<SecretString>,
    /// What nobody may overdo.
    pub limits: Limits,
}

/// What nobody may overdo.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest message of somebody who was not let in yet, in bytes.
    pub stranger_message: usize,
    /// The largest message, in bytes.
    pub message: usize,
    /// How long it may take to be let in, from the first byte on.
    pub authenticate: Duration,
    /// How many may be connected.
    pub connections: usize,
    /// How many of one address may be connected and not let in yet.
    pub strangers: usize,
    /// How many requests of one caller are served at once; more wait in its socket.
    pub requests: usize,
    /// How much may wait for a caller that does not read.
    pub send: SendLimits,
    /// How often a caller is told that the gateway is there, and asked whether it is.
    pub tick: Duration,
    /// How many wrong tokens one address may show within `wrong_tokens_window`.
    pub wrong_tokens: u32,
    /// After too many, for how long nothing from there is listened to.
    pub wrong_tokens_window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stranger_message: 64 * 1024,
            message: 25 * 1024 * 1024,
            authenticate: Duration::from_secs(10),
            connections: 256,
            strangers: 64,
            requests: 64,
            send: SendLimits {
                bytes: 50 * 1024 * 1024,
                frames: 4_096,
                pause: 1024 * 1024,
                stall: Duration::from_secs(20),
            },
            tick: Duration::from_secs(30),
            wrong_tokens: 10,
            wrong_tokens_window: Duration::from_secs(60),
        }
    }
}

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could come in, and there is no token.
    #[error("other machines can reach {0}: a token is required")]
    NeedsToken(IpAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why not.
        error: std::io::Error,
    },
}
