//! What all connections share, and the way of a request through it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hyper::Response;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::tokens::TokenStore;
use super::{OAuthRequest, metadata};
use crate::engine::lock;
use crate::http::bodies::{Body, set_header, status, text};
use crate::http::{Exchange, Reply, Server};
use crate::oauth::form;
use crate::oauth::script::{Endpoint, Fake, HUGE, OAuthScript};

/// The state of a server.
pub(super) struct Shared {
    pub(super) script: Mutex<OAuthScript>,
    pub(super) tokens: Mutex<TokenStore>,
    pub(super) requests: Mutex<Vec<OAuthRequest>>,
    /// Notified when a request arrives, and when it is processed.
    pub(super) changed: Condvar,
    pub(super) held: watch::Sender<HashSet<(Endpoint, Phase)>>,
    pub(super) mcp: Arc<Server>,
    /// The origin of the MCP server.
    pub(super) resource_origin: String,
    /// The origin of the authorization server.
    pub(super) server_origin: String,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("issuer", &self.issuer()).finish_non_exhaustive()
    }
}

/// When a held request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Before it is processed.
    Before,
    /// After it is processed: only the response is missing.
    After,
}

pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(Arc::clone(&shared), stream));
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move {
            let exchange = Exchange::read(request).await.map_err(std::io::Error::other)?;
            shared.answer(&exchange).await.ok_or_else(|| std::io::Error::other("hanging up"))
        }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Shared {
    pub(super) fn mcp_url(&self) -> String {
        format!("{}/mcp", self.resource_origin)
    }

    pub(super) fn issuer(&self) -> String {
        self.server_origin.clone()
    }

    /// Records a request, waits if it must, and responds.
    async fn answer(&self, exchange: &Exchange) -> Reply {
        let request = self.read(exchange);
        let endpoint = request.endpoint;
        let number = self.record(request.clone());
        self.wait(endpoint, Phase::Before).await;
        if let Some(delay) = self.delay(endpoint) {
            tokio::time::sleep(delay).await;
        }
        let reply = match self.fault(endpoint) {
            Some(fault) => fake(fault),
            None => self.route(exchange, &request).await,
        };
        if let Some(request) = lock(&self.requests).get_mut(number) {
            request.status = reply.as_ref().map_or(0, |reply| reply.status().as_u16());
        }
        self.changed.notify_all();
        self.wait(endpoint, Phase::After).await;
        reply
    }

    async fn route(&self, exchange: &Exchange, request: &OAuthRequest) -> Reply {
        Some(match request.endpoint {
            Endpoint::Mcp => return self.mcp(exchange, request).await,
            Endpoint::ResourceMetadata => self.resource_metadata(),
            Endpoint::ServerMetadata => self.server_metadata(),
            Endpoint::Register => self.register(request),
            Endpoint::Authorize => self.authorize(request),
            Endpoint::Token => self.exchange_code(request),
            Endpoint::Refresh => self.refresh(request),
            Endpoint::Revoke => self.revoke(request),
            Endpoint::Other => text(404, "text/plain", "not found"),
        })
    }

    fn read(&self, exchange: &Exchange) -> OAuthRequest {
        let form = match exchange.header("content-type") {
            Some(kind) if kind.starts_with("application/x-www-form-urlencoded") => {
                form::decode(&String::from_utf8_lossy(&exchange.body))
            }
            _ => BTreeMap::new(),
        };
        let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        OAuthRequest {
            endpoint: self.endpoint(exchange, &form),
            method: exchange.method.to_string(),
            path: exchange.path.clone(),
            query: form::decode(&exchange.query),
            form,
            json: serde_json::from_slice(&exchange.body).unwrap_or_default(),
            headers: exchange.headers.iter().map(header).collect(),
            status: 0,
        }
    }

    /// Each address serves only its own endpoints.
    fn endpoint(&self, exchange: &Exchange, form: &BTreeMap<String, String>) -> Endpoint {
        fn port(authority: &str) -> Option<&str> {
            authority.rsplit(':').next()
        }
        let host = exchange.header("host").unwrap_or_default();
        let path = exchange.path.as_str();
        if port(host) == port(&self.resource_origin) {
            return match path {
                "/mcp" => Endpoint::Mcp,
                metadata::OF_RESOURCE => Endpoint::ResourceMetadata,
                _ => Endpoint::Other,
            };
        }
        match path {
            metadata::OF_SERVER => Endpoint::ServerMetadata,
            "/register" => Endpoint::Register,
            "/authorize" => Endpoint::Authorize,
            "/revoke" => Endpoint::Revoke,
            "/token" => match form.get("grant_type").map(String::as_str) {
                Some("refresh_token") => Endpoint::Refresh,
                _ => Endpoint::Token,
            },
            _ => Endpoint::Other,
        }
    }

    fn record(&self, request: OAuthRequest) -> usize {
        let mut requests = lock(&self.requests);
        requests.push(request);
        self.changed.notify_all();
        requests.len() - 1
    }

    async fn wait(&self, endpoint: Endpoint, phase: Phase) {
        let mut held = self.held.subscribe();
        let _ = held.wait_for(|held| !held.contains(&(endpoint, phase))).await;
    }

    fn delay(&self, endpoint: Endpoint) -> Option<Duration> {
        let script = lock(&self.script);
        script.delays.iter().find(|(on, _)| *on == endpoint).map(|(_, time)| *time)
    }

    /// Returns the fault that applies to this request, and counts it.
    fn fault(&self, endpoint: Endpoint) -> Option<Fake> {
        let mut script = lock(&self.script);
        let at = script.faults.iter().position(|(on, ..)| *on == endpoint)?;
        let (_, fake, times) = script.faults.get_mut(at)?;
        let fake = fake.clone();
        match times {
            0 => {}
            1 => drop(script.faults.remove(at)),
            times => *times -= 1,
        }
        Some(fake)
    }
}

fn fake(fake: Fake) -> Reply {
    Some(match fake {
        Fake::Status(code) => status(code),
        Fake::Html => text(200, "text/html", "<!doctype html><title>Welcome</title>"),
        Fake::Huge => {
            let padding = "x".repeat(HUGE);
            text(200, "application/json", format!(r#"{{"padding":"{padding}"}}"#))
        }
        Fake::Redirect(target) => redirect(307, &target),
        Fake::Json(code, body) => json(code, &body),
        Fake::HangUp => return None,
    })
}

pub(super) fn json(code: u16, body: &Value) -> Response<Body> {
    let mut response = text(code, "application/json", body.to_string());
    set_header(&mut response, "cache-control", "no-store");
    response
}

pub(super) fn redirect(code: u16, target: &str) -> Response<Body> {
    let mut response = status(code);
    set_header(&mut response, "location", target);
    response
}
