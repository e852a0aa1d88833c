//! A minimal service, and a raw client.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw_gateway::socket::{
    Caller, CallerService, Endpoint, HelloInfo, ListenOptions, Listening, MetricsAccess,
    SocketLimits, bind,
};
use openclaw_protocol::socket::SendLimits;
use openclaw_protocol::{ErrorShape, EventReceiver, EventSender};
use openclaw_secrets::SecretString;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub(crate) const TOKEN: &str = "the right token";
/// Generous: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Serves a few methods, and counts callers.
#[derive(Debug)]
pub(crate) struct TestService {
    pub(crate) events: EventSender,
    pub(crate) is_ready: AtomicBool,
    pub(crate) has_metadata: AtomicBool,
    /// Number of callers with a surface.
    pub(crate) callers: watch::Sender<usize>,
    /// Number of `slow` requests in progress.
    pub(crate) slow: watch::Sender<usize>,
    /// Releases `slow` requests.
    pub(crate) go_on: Semaphore,
}

impl TestService {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            events: EventSender::new(4_096),
            is_ready: AtomicBool::new(false),
            has_metadata: AtomicBool::new(false),
            callers: watch::Sender::new(0),
            slow: watch::Sender::new(0),
            go_on: Semaphore::new(0),
        })
    }

    /// Waits until this many `slow` requests are in progress.
    pub(crate) async fn until_slow(&self, wanted: usize) {
        let mut slow = self.slow.subscribe();
        timeout(LONG, slow.wait_for(|now| *now == wanted)).await.unwrap().unwrap();
    }

    /// Waits until this many callers are connected.
    pub(crate) async fn until_callers(&self, wanted: usize) {
        let mut callers = self.callers.subscribe();
        timeout(LONG, callers.wait_for(|now| *now == wanted)).await.unwrap().unwrap();
    }
}

/// The service, as passed to the server.
#[derive(Debug)]
pub(crate) struct Shared(pub(crate) Arc<TestService>);

impl CallerService for Shared {
    fn open(&self, caller: Caller) -> Result<Arc<dyn Endpoint>, ErrorShape> {
        if caller.role == "stranger" {
            return Err(ErrorShape::invalid("no strangers"));
        }
        self.0.callers.send_modify(|callers| *callers += 1);
        Ok(Arc::new(TestSurface(Arc::clone(&self.0))))
    }

    fn hello(&self, _caller: &Caller) -> HelloInfo {
        HelloInfo {
            version: "1.2.3".to_owned(),
            methods: vec!["health".to_owned()],
            ..HelloInfo::default()
        }
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Relaxed)
    }

    fn client_metadata(&self) -> Option<Value> {
        let has = self.0.has_metadata.load(Ordering::Relaxed);
        has.then(|| json!({ "client_name": "OpenClaw" }))
    }

    fn metrics_access(&self) -> Option<Arc<MetricsAccess>> {
        Some(Arc::default())
    }

    fn allowed_origins(&self) -> Vec<String> {
        vec!["https://example.com".to_owned()]
    }
}

#[derive(Debug)]
struct TestSurface(Arc<TestService>);

impl Drop for TestSurface {
    fn drop(&mut self) {
        self.0.callers.send_modify(|callers| *callers -= 1);
    }
}

impl Endpoint for TestSurface {
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        Box::pin(async move {
            let params = params.unwrap_or_else(|| RawValue::NULL.to_owned());
            match method {
                "health" => Ok(to_raw_value(&json!({ "ok": true })).unwrap()),
                "echo" => Ok(params),
                "size" => Ok(to_raw_value(&params.get().len()).unwrap()),
                "big" => {
                    let size: usize = serde_json::from_str(params.get()).unwrap();
                    Ok(to_raw_value(&"ö".repeat(size / 2)).unwrap())
                }
                "slow" => {
                    self.0.slow.send_modify(|slow| *slow += 1);
                    self.0.go_on.acquire().await.unwrap().forget();
                    self.0.slow.send_modify(|slow| *slow -= 1);
                    Ok(params)
                }
                "panic" => panic!("as asked"),
                other => Err(ErrorShape::unknown_method(other)),
            }
        })
    }

    fn events(&self) -> EventReceiver {
        self.0.events.listen()
    }
}

/// Limits without periodic wake-ups: a missed wake-up makes the test fail.
pub(crate) fn calm() -> SocketLimits {
    let hour = Duration::from_secs(3_600);
    let send = SendLimits { stall: hour, ..SocketLimits::default().send };
    SocketLimits { tick: hour, send, ..SocketLimits::default() }
}

/// Options to listen on any port of this address, with this token.
pub(crate) fn listen_on(address: Ipv4Addr, token: Option<&str>) -> ListenOptions {
    ListenOptions {
        bind: address.into(),
        port: 0,
        token: token.map(|token| SecretString::from(token.to_owned())),
        token_is_shared: true,
        tokens: None,
        limits: SocketLimits::default(),
    }
}

/// Starts a server with a test service.
pub(crate) async fn start(limits: SocketLimits) -> (Listening, Arc<TestService>) {
    let service = TestService::new();
    let options = listen_on(Ipv4Addr::LOCALHOST, Some(TOKEN));
    let options = ListenOptions { token_is_shared: false, limits, ..options };
    let server = bind(options).await.unwrap().serve(Arc::new(Shared(Arc::clone(&service))));
    (server, service)
}

/// Like [`start`], with a client that has authenticated.
pub(crate) async fn start_and_enter(limits: SocketLimits) -> (Listening, Arc<TestService>, Raw) {
    let (server, service) = start(limits).await;
    let raw = Raw::enter(server.address).await;
    (server, service, raw)
}

/// A client that sends what it is told to, valid or not.
pub(crate) struct Raw(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Raw {
    /// Connects, and sends nothing.
    pub(crate) async fn dial(address: SocketAddr) -> Self {
        let dialled = connect_async(format!("ws://{address}"));
        Self(timeout(LONG, dialled).await.unwrap().unwrap().0)
    }

    /// Connects and authenticates.
    pub(crate) async fn enter(address: SocketAddr) -> Self {
        let mut raw = Self::dial(address).await;
        raw.ask("connect", connect_params(TOKEN)).await.unwrap();
        raw
    }

    pub(crate) async fn send(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).await.unwrap();
    }

    pub(crate) async fn send_request(&mut self, id: &str, method: &str, params: Value) {
        let request = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.send(request.to_string()).await;
    }

    /// The next frame; `None` if the connection is closed.
    pub(crate) async fn frame(&mut self) -> Option<Value> {
        loop {
            match timeout(LONG, self.0.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Sends a request and waits for the response or the error.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.send_request("1", method, params).await;
        loop {
            let mut frame = self.frame().await.unwrap();
            if frame["type"] == "res" && frame["id"] == "1" {
                return match frame["ok"] == true {
                    true => Ok(frame["payload"].take()),
                    false => Err(frame["error"].take()),
                };
            }
        }
    }

    /// The next event with this name.
    pub(crate) async fn event(&mut self, name: &str) -> Value {
        loop {
            let frame = self.frame().await.unwrap();
            if frame["event"] == name {
                return frame;
            }
        }
    }

    /// How the server closes the connection: code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            match timeout(LONG, self.0.next()).await.unwrap() {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("it was not closed: {other:?}"),
            }
        }
    }

    /// Whether the connection is closed, in whatever way.
    pub(crate) async fn is_over(&mut self) -> bool {
        loop {
            match timeout(LONG, self.0.next()).await.unwrap() {
                Some(Ok(Message::Close(_))) | None => return true,
                Some(Err(Error::Io(_) | Error::Protocol(_))) => return true,
                Some(_) => {}
            }
        }
    }
}

pub(crate) fn connect_params(token: &str) -> Value {
    json!({
        "minProtocol": 4,
        "maxProtocol": 4,
        "client": { "id": "test", "version": "1", "platform": "linux", "mode": "test" },
        "role": "operator",
        "scopes": ["operator.read", "operator.write"],
        "auth": { "token": token },
    })
}
