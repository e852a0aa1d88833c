//! The HTTP transports: Streamable HTTP at `/mcp`, the old HTTP+SSE at `/sse` and `/messages`.

pub(crate) mod bodies;
mod faults;
mod gzip;
mod legacy;
mod streamable;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::engine::{self, Engine, Session, lock};
use crate::script::{RequestFlood, Script};
use bodies::{Body, EventBody, status, text};

/// Where and how HTTP is served.
#[derive(Default)]
pub(crate) struct HttpOptions {
    pub(crate) port: u16,
    pub(crate) url_file: Option<PathBuf>,
    /// The server exits with its parent, which holds the other end of stdin.
    pub(crate) exit_with_stdin: bool,
}

/// A response; `None` closes the connection without one.
pub(crate) type Reply = Option<Response<Body>>;

/// The state shared by all connections.
pub(crate) struct Server {
    engine: Arc<Engine>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// The client of requests without a session.
    stateless: Arc<Session>,
    /// Dropped streams by stream id, until a client resumes them.
    parked: Mutex<HashMap<String, EventBody>>,
    /// Clients of the old transport.
    legacy: Mutex<HashMap<String, legacy::Legacy>>,
    faults: Vec<AtomicU64>,
    next_id: AtomicU64,
    sessions_lost: AtomicBool,
}

/// A request with its complete body.
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Exchange {
    pub(crate) async fn read(request: Request<Incoming>) -> Result<Self, hyper::Error> {
        let (head, body) = request.into_parts();
        Ok(Self {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            body: body.collect().await?.to_bytes().into(),
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Serves until the process exits.
pub(crate) fn serve(script: Script, options: &HttpOptions) -> std::io::Result<()> {
    let grandchild = crate::process::begin(&script)?;
    let engine = Engine::new(script, grandchild)?;
    // One thread: anything that takes time runs on threads of the engine.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let url = format!("http://127.0.0.1:{}/mcp", listener.local_addr()?.port());
        announce(&url, options)?;
        let server = Arc::new(Server::new(engine));
        loop {
            // A failed accept concerns only that client.
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(Arc::clone(&server), stream));
            }
        }
    })
}

fn announce(url: &str, options: &HttpOptions) -> std::io::Result<()> {
    if let Some(path) = &options.url_file {
        std::fs::write(path, url)?;
    }
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{url}")?;
    stdout.flush()?;
    if options.exit_with_stdin {
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    Ok(())
}

async fn connection(server: Arc<Server>, stream: TcpStream) {
    // Without this an SSE response waits for the client's delayed ACK: 40 ms.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move {
            let reply = server.answer(request).await.map_err(std::io::Error::other)?;
            // On an error of the service, hyper closes the connection without a response.
            reply.ok_or_else(|| std::io::Error::other("hanging up"))
        }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Server {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self {
            stateless: engine.new_session(),
            faults: engine.script.http.faults.iter().map(|_| AtomicU64::new(0)).collect(),
            engine,
            sessions: Mutex::default(),
            parked: Mutex::default(),
            legacy: Mutex::default(),
            next_id: AtomicU64::new(1),
            sessions_lost: AtomicBool::new(false),
        }
    }

    fn new_id(&self, kind: &str) -> String {
        // With the pid: a restarted server must not reuse the ids of old sessions.
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        format!("{kind}-{}-{number}", std::process::id())
    }

    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Result<Reply, hyper::Error> {
        let exchange = Exchange::read(request).await?;
        Ok(self.reply(&exchange).await)
    }

    /// Records a request and responds to it.
    pub(crate) async fn reply(self: &Arc<Self>, exchange: &Exchange) -> Reply {
        if self.engine.script.record.is_some() {
            self.engine.record(record(exchange).to_string().as_bytes());
        }
        self.route(exchange).await
    }

    async fn route(self: &Arc<Self>, exchange: &Exchange) -> Reply {
        if let Some(fault) = self.fault(exchange) {
            return fault;
        }
        if let Some(refusal) = self.unauthorized(exchange) {
            return Some(refusal);
        }
        let only_legacy = self.engine.script.http.legacy_only;
        Some(match (exchange.method.as_str(), exchange.path.as_str()) {
            ("GET", "/sse") => self.open_legacy(),
            ("POST", "/messages") => self.legacy_message(exchange).await,
            ("GET", "/mcp") if only_legacy => self.open_legacy(),
            (_, "/mcp") if only_legacy => status(405),
            ("POST", "/mcp") => self.post(exchange).await,
            ("GET", "/mcp") => self.get(exchange),
            ("DELETE", "/mcp") => self.delete(exchange),
            (_, "/mcp" | "/sse" | "/messages") => status(405),
            _ => text(404, "text/plain", "not found"),
        })
    }

    /// Never returns for a response of the client, if the script says so.
    async fn stall(&self, message: &engine::Incoming<'_>) {
        let stalls = self.engine.script.http.request_flood == Some(RequestFlood::Stalling);
        if stalls && message.method.is_none() {
            std::future::pending::<()>().await;
        }
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).get(id).map(Arc::clone)
    }
}

/// A line of the recording.
fn record(exchange: &Exchange) -> Value {
    let headers: serde_json::Map<_, _> = exchange
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes()))))
        .collect();
    let body = serde_json::from_slice(&exchange.body)
        .unwrap_or_else(|_| json!(String::from_utf8_lossy(&exchange.body)));
    json!({
        "method": exchange.method.as_str(),
        "path": exchange.path,
        "headers": headers,
        "body": body,
    })
}

/// Converts the error type of bodies that never fail.
fn never(error: Infallible) -> std::io::Error {
    match error {}
}
