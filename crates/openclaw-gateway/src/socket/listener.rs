//! Accepts connections, and closes all of them at the end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use openclaw_budget::ClientBudgets;
use openclaw_protocol::Principal;
use openclaw_protocol::socket::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::access::is_same_machine;
use super::admission::{AuthenticatedConnection, OpenConnections, UnauthenticatedConnection};
use super::attempts::TokenAttempts;
use super::connection::{self, GOODBYE};
use super::connection_info::{Activity, ConnectionInfo, Upgrade};
use super::handshake::{self, Admitted, HandshakeRefusal, Peer};
use super::http::Routes;
use super::hub::{self, HubSocket};
use super::watched::WatchedStream;
use super::{CallerService, ListenError, ListenOptions, MIN_REMOTE_TOKEN};

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
    admission: Arc<OpenConnections>,
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

    /// Waits until the server stops and its deadline has passed.
    pub(super) async fn over(&self) {
        self.begun().await;
        sleep_until(self.deadline()).await;
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline.get().copied().unwrap_or_else(Instant::now)
    }
}

/// State shared by all connections.
struct Server {
    gate: Arc<Gate>,
    service: Arc<dyn CallerService>,
    routes: Arc<Routes>,
    ending: Arc<Ending>,
}

/// What decides which clients are admitted.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) options: ListenOptions,
    pub(super) attempts: TokenAttempts,
    /// The memory of clients.
    pub(super) budgets: ClientBudgets<Principal>,
}

impl Gate {
    /// Whether the address of this peer is blocked after too many wrong tokens. Other processes of
    /// this machine are not: they share its address with the one that guesses.
    pub(super) fn is_blocked(&self, peer: Peer) -> bool {
        let address = peer.remote.ip();
        !is_same_machine(address, peer.local)
            && self.attempts.refused(address, Instant::now()).is_some()
    }
}

/// A bound address. Clients that connect wait until [`serve`](Bound::serve).
#[derive(Debug)]
pub struct Bound {
    /// The bound address.
    pub address: SocketAddr,
    listener: TcpListener,
    options: ListenOptions,
}

/// Binds the address.
///
/// # Errors
/// Fails if the address cannot be bound, or is not loopback and there is no token, or a short one.
pub async fn bind(options: ListenOptions) -> Result<Bound, ListenError> {
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
    pub fn serve(self, service: Arc<dyn CallerService>) -> Listening {
        let Self { address, listener, options } = self;
        let limits = &options.limits;
        let admission = OpenConnections::new(limits);
        let ending = Arc::new(Ending::default());
        let attempts = TokenAttempts::new(limits.wrong_tokens, limits.wrong_tokens_window);
        let budgets = ClientBudgets::new(limits.memory, limits.client_memory);
        let gate = Arc::new(Gate { options, attempts, budgets });
        let server = Arc::new(Server {
            routes: Arc::new(Routes::new(Arc::clone(&service), Arc::clone(&gate))),
            ending: Arc::clone(&ending),
            gate,
            service,
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&admission), server));
        Listening { address, ending, admission, task }
    }
}

/// Owns all connections: they end with it.
async fn accept(listener: TcpListener, admission: Arc<OpenConnections>, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    let of_tokens = Arc::clone(&server);
    connections.spawn(async move {
        let Server { service, gate, ending, .. } = &*of_tokens;
        hub::end_revoked(&**service, gate, ending).await;
    });
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
    let limits = &server.gate.options.limits;
    let deadline = Instant::now() + limits.authenticate;
    let leave = stranger.leave();
    match enter(stream, remote, deadline, stranger, &server).await {
        None => {}
        Some(Entered::Lines(guest, stream, read, lines)) => {
            tokio::select! {
                () = hub::serve_lines(&*server.service, &server.gate, stream, read, lines) => {}
                () = server.ending.begun() => {}
            }
            drop(guest);
        }
        Some(Entered::Socket(stranger, socket, Ok(admitted))) => {
            let Some(guest) = stranger.let_in() else { return };
            connection::serve(*socket, *admitted, limits, &server.ending).await;
            drop(guest);
        }
        Some(Entered::Socket(_stranger, socket, Err(refusal))) => {
            let goodbye = reject(*socket, refusal);
            tokio::select! {
                () = leave.cancelled() => {}
                () = goodbye => {}
            }
        }
    }
}

async fn reject(socket: Socket, refusal: HandshakeRefusal) {
    match refusal {
        HandshakeRefusal::Told { code, reason } => socket.close(code, reason, GOODBYE).await,
        HandshakeRefusal::Socket(broken) => {
            if let Some(code) = broken.close_code() {
                socket.close(code, &broken.to_string(), GOODBYE).await;
            }
        }
    }
}

type Greeted = Result<Box<Admitted>, HandshakeRefusal>;

/// What became of a connection that began with HTTP.
enum Entered {
    /// A WebSocket, after the handshake.
    Socket(UnauthenticatedConnection, Box<Socket>, Greeted),
    /// A client of the hub that sends lines, with the bytes already read.
    Lines(AuthenticatedConnection, TcpStream, Vec<u8>, Box<HubSocket>),
}

/// Speaks HTTP until an upgrade, then performs the handshake. Returns `None` if there was no upgrade.
/// With the first request that is authenticated, the connection may stay.
async fn enter(
    stream: TcpStream,
    remote: SocketAddr,
    deadline: Instant,
    stranger: UnauthenticatedConnection,
    server: &Server,
) -> Option<Entered> {
    let local = stream.set_nodelay(true).and_then(|()| stream.local_addr()).ok()?.ip();
    let (peer, leave) = (Peer { remote, local }, stranger.leave());
    let connection = ConnectionInfo::new(peer);
    let mut speaking = pin!(speak_http(stream, connection.clone(), &server.routes));
    let (mut stranger, mut guest) = (Some(stranger), None);
    // One timer for the connection: one for each request would cost more than reading the request.
    let mut timer = pin!(sleep_until(deadline));
    let unused = server.gate.options.limits.unused;
    let mut seen = Activity::default();
    let spoken = loop {
        let is_stranger = guest.is_none();
        tokio::select! {
            biased;
            spoken = &mut speaking => break spoken,
            () = connection.authenticated(), if is_stranger => {
                guest = Some(stranger.take()?.let_in()?);
                timer.as_mut().reset(Instant::now() + unused);
            }
            () = &mut timer => {
                if is_stranger || connection.is_unused_since(&mut seen) {
                    return None;
                }
                timer.as_mut().reset(Instant::now() + unused);
            }
            () = leave.cancelled(), if is_stranger => return None,
            () = server.ending.begun(), if is_stranger => return None,
            () = connection.idle_after(&server.ending), if !is_stranger => return None,
        }
    };
    let (stream, read) = spoken.ok()??;
    match (connection.upgrade()?, stranger) {
        (Upgrade::Lines(lines), stranger) => {
            let guest = match (guest, stranger) {
                (Some(guest), _) => guest,
                (None, stranger) => stranger?.let_in()?,
            };
            Some(Entered::Lines(guest, stream, read, lines))
        }
        (Upgrade::WebSocket, Some(stranger)) => {
            stranger.upgraded();
            let limits = &server.gate.options.limits;
            let mut socket = Socket::accepted(stream, read, limits.stranger_message, limits.send);
            let greeting = handshake::greet(&mut socket, peer, &server.gate, &*server.service);
            let late = HandshakeRefusal::Told { code: 1008, reason: "not authenticated in time" };
            let greeted = tokio::select! {
                () = leave.cancelled() => return None,
                greeted = timeout_at(deadline, greeting) => greeted.unwrap_or(Err(late)),
            };
            Some(Entered::Socket(stranger, Box::new(socket), greeted.map(Box::new)))
        }
        // A connection that was used for the hub does not become one of a caller.
        (Upgrade::WebSocket, None) => None,
    }
}

/// Answers HTTP requests. Returns the stream after an upgrade, with the bytes already read.
async fn speak_http(
    stream: TcpStream,
    connection: ConnectionInfo,
    routes: &Arc<Routes>,
) -> Result<Option<(TcpStream, Vec<u8>)>, io::Error> {
    let (routes, of_connection) = (Arc::clone(routes), connection.clone());
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (routes, connection) = (Arc::clone(&routes), of_connection.clone());
        async move {
            let (busy, open) = (connection.busy(), connection.open());
            let mut response = routes.respond(request, &connection).await;
            response.body_mut().keep_open(open);
            drop(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let served = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .serve_connection(WatchedStream::new(stream, connection.clone()), service)
        .without_shutdown();
    let parts = served.await.map_err(io::Error::other)?;
    Ok(connection.is_upgraded().then(|| (parts.io.into_inner(), parts.read_buf.to_vec())))
}
