//! Accepts connections, and closes all of them at the end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use openclaw_protocol::socket::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, UnauthenticatedConnection};
use super::attempts::Attempts;
use super::connection::{self, GOODBYE};
use super::handshake::{self, Admitted, Peer, Refusal};
use super::http::{self, RequestInfo};
use super::{CallerService, ListenError, MIN_REMOTE_TOKEN, Options};

/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Delay after a failed accept (too many open files).
const PAUSE: Duration = Duration::from_millis(50);

/// A listening server. It stops when this is dropped.
#[derive(Debug)]
pub struct Listening {
    /// The address it listens on.
    pub address: SocketAddr,
    ending: Arc<Ending>,
    admission: Arc<Admission>,
    task: JoinHandle<()>,
}

impl Listening {
    /// Number of authenticated connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.admission.guests()
    }

    /// Stops. Callers are notified, and get the responses that complete within `grace`.
    pub async fn stop(mut self, grace: Duration) {
        self.ending.begin(grace);
        let whole = grace + GOODBYE + GOODBYE;
        if timeout(whole, &mut self.task).await.is_err() {
            tracing::warn!("connections did not close in time; aborting them");
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether the server is stopping, and its deadline.
#[derive(Debug, Default)]
pub(super) struct Ending {
    begun: CancellationToken,
    deadline: OnceLock<Instant>,
}

impl Ending {
    fn begin(&self, grace: Duration) {
        self.deadline.get_or_init(|| Instant::now() + grace);
        self.begun.cancel();
    }

    pub(super) async fn begun(&self) {
        self.begun.cancelled().await;
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline.get().copied().unwrap_or_else(Instant::now)
    }
}

/// State shared by all connections.
struct Server {
    options: Options,
    desk: Arc<dyn CallerService>,
    router: Router,
    attempts: Attempts,
    ending: Arc<Ending>,
}

/// A bound address. Clients that connect wait until [`serve`](Bound::serve).
#[derive(Debug)]
pub struct Bound {
    /// The bound address.
    pub address: SocketAddr,
    listener: TcpListener,
    options: Options,
}

/// Binds the address.
///
/// # Errors
/// Fails if the address cannot be bound, or is not loopback and there is no token, or a short one.
pub async fn bind(options: Options) -> Result<Bound, ListenError> {
    if !options.bind.to_canonical().is_loopback() {
        match options.token.as_ref().map_or(0, |token| token.expose().chars().count()) {
            0 => return Err(ListenError::NeedsToken(options.bind)),
            1..MIN_REMOTE_TOKEN => return Err(ListenError::ShortToken(options.bind)),
            _ => {}
        }
    }
    let wanted = SocketAddr::new(options.bind, options.port);
    let bound = TcpListener::bind(wanted).await;
    let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) =
        bound.map_err(|error| ListenError::Bind { address: wanted, error })?;
    Ok(Bound { address, listener, options })
}

impl Bound {
    /// Serves all connections, including those that already wait. Must be called within a Tokio
    /// runtime.
    #[must_use]
    pub fn serve(self, desk: Arc<dyn CallerService>) -> Listening {
        let Self { address, listener, options } = self;
        let limits = &options.limits;
        let admission = Admission::new(limits);
        let ending = Arc::new(Ending::default());
        let server = Arc::new(Server {
            router: http::router(Arc::clone(&desk)),
            attempts: Attempts::new(limits.wrong_tokens, limits.wrong_tokens_window),
            ending: Arc::clone(&ending),
            options,
            desk,
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&admission), server));
        Listening { address, ending, admission, task }
    }
}

/// Owns all connections: they end with it.
async fn accept(listener: TcpListener, admission: Arc<Admission>, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = server.ending.begun() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    if let Some(stranger) = admission.enter(remote.ip().to_canonical()) {
                        connections.spawn(serve(stream, remote, stranger, Arc::clone(&server)));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn serve(
    stream: TcpStream,
    remote: SocketAddr,
    stranger: UnauthenticatedConnection,
    server: Arc<Server>,
) {
    let limits = &server.options.limits;
    let deadline = Instant::now() + limits.authenticate;
    let leave = stranger.leave();
    let entering = enter(stream, remote, deadline, &stranger, &server);
    let entered = tokio::select! {
        () = leave.cancelled() => return,
        () = server.ending.begun() => return,
        entered = entering => entered,
    };
    let Some((socket, greeted)) = entered else { return };
    match greeted {
        Ok(admitted) => {
            let Some(guest) = stranger.let_in() else { return };
            connection::serve(socket, admitted, limits, &server.ending).await;
            drop(guest);
        }
        Err(refusal) => {
            let goodbye = say_no(socket, refusal);
            tokio::select! {
                () = leave.cancelled() => {}
                () = goodbye => {}
            }
        }
    }
}

async fn say_no(socket: Socket, refusal: Refusal) {
    match refusal {
        Refusal::Told { code, reason } => socket.close(code, reason, GOODBYE).await,
        Refusal::Socket(broken) => {
            if let Some(code) = broken.close_code() {
                socket.close(code, &broken.to_string(), GOODBYE).await;
            }
        }
    }
}

type Greeted = Result<Admitted, Refusal>;

/// Speaks HTTP until the upgrade to WebSocket, then performs the handshake. Returns `None` if there
/// was no upgrade.
async fn enter(
    stream: TcpStream,
    remote: SocketAddr,
    deadline: Instant,
    stranger: &UnauthenticatedConnection,
    server: &Server,
) -> Option<(Socket, Greeted)> {
    let local = stream.set_nodelay(true).and_then(|()| stream.local_addr()).ok()?.ip();
    let upgraded = timeout_at(deadline, speak_http(stream, local, &server.router)).await;
    let (stream, read) = upgraded.ok()?.ok()??;
    stranger.upgraded();
    let Options { limits, .. } = &server.options;
    let mut socket = Socket::accepted(stream, read, limits.stranger_message, limits.send);
    let peer = Peer { remote, local };
    let greeting =
        handshake::greet(&mut socket, peer, &server.options, &server.attempts, &*server.desk);
    let greeted = timeout_at(deadline, greeting)
        .await
        .unwrap_or(Err(Refusal::Told { code: 1008, reason: "not authenticated in time" }));
    Some((socket, greeted))
}

/// Answers HTTP requests. Returns the stream after an upgrade to WebSocket, with the bytes already
/// read.
async fn speak_http(
    stream: TcpStream,
    local: IpAddr,
    router: &Router,
) -> Result<Option<(TcpStream, Vec<u8>)>, io::Error> {
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let visit = RequestInfo { local, is_upgraded: Arc::clone(&is_upgraded) };
    let routes = TowerToHyperService::new(router.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(visit.clone());
        routes.call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .without_shutdown();
    let parts = connection.await.map_err(io::Error::other)?;
    let is_upgraded = is_upgraded.load(Ordering::Relaxed);
    Ok(is_upgraded.then(|| (parts.io.into_inner(), parts.read_buf.to_vec())))
}
