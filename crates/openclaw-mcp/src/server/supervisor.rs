//! The state machine of a server, owned by one task per server (L3, L4, L6):
//!
//! ```text
//! idle ──use──▶ connecting ──ok──▶ ready ──lost──▶ restarting ──▶ connecting
//!                   │                                  │
//!                   ├──401──▶ needs-auth ──refresh──▶ connecting
//!                   ├──error──▶ restarting … ──too often──▶ failed ──refresh──▶ connecting
//!                   └──no such program──▶ failed
//! ```
//!
//! How to connect ([`Dial`]) and when to retry ([`Backoff`]) are passed in, so the state machine is
//! tested in paused time, without a process.

use std::sync::Arc;

use openclaw_content::{Untrusted, clean_line};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::server::backoff::{Backoff, HEALTHY_RUN};
use crate::server::status::ServerState;
use openclaw_mcp_client::log::ServerLog;

/// The capacity of the command queue.
const COMMANDS: usize = 16;
/// The maximum length of an error message.
const MESSAGE_CHARS: usize = 1_000;

/// The state of a server at one point in time.
#[derive(Debug)]
pub struct ServerSnapshot<C> {
    /// Its state.
    pub state: ServerState,
    /// The connection, while it is ready.
    pub connection: Option<Arc<C>>,
    /// The number of restarts in a row.
    pub restarts: u32,
    /// The last error. Cleared after a healthy run and by an explicit reconnect.
    pub last_error: Option<ServerError>,
}

impl<C> Clone for ServerSnapshot<C> {
    fn clone(&self) -> Self {
        let Self { state, connection, restarts, last_error } = self;
        let connection = connection.clone();
        let last_error = last_error.clone();
        Self { state: *state, connection, restarts: *restarts, last_error }
    }
}

/// Why a dial failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialError {
    /// A retry may succeed.
    Failed(ServerError),
    /// A retry cannot succeed before something is repaired, such as a missing program.
    Broken(ServerError),
    /// A login is required first.
    NeedsAuth(ServerError),
}

/// Why a server is not available, for users.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerError {
    /// The message.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The last lines of the server's stderr. Untrusted: not for a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// A fixed short description without quoted text, safe for a model.
    #[serde(skip)]
    pub gist: Option<&'static str>,
}

impl ServerError {
    /// Creates one with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Redacts secrets and sanitizes the message to one line: it may quote the server.
    fn sanitized(self, log: &ServerLog) -> Self {
        let Self { message, hint, last_lines, gist } = self;
        let redacted = |text: String| log.redact(&text).into_owned();
        Self {
            message: clean_line(Untrusted::new(&redacted(message)), MESSAGE_CHARS),
            hint: hint.map(redacted),
            last_lines: last_lines.into_iter().map(redacted).collect(),
            gist,
        }
    }
}

/// A state change.
#[derive(Debug, Clone, Copy)]
pub struct StateChange<'a> {
    /// The new state.
    pub state: ServerState,
    /// The number of restarts in a row.
    pub restarts: u32,
    /// The error, if there is one.
    pub trouble: Option<&'a ServerError>,
}

/// How to connect to a server.
pub trait Dial: Send + 'static {
    /// The connection type.
    type Connection: Live;

    /// Connects. Dropping the future releases everything.
    fn dial(&mut self) -> impl Future<Output = Result<Self::Connection, DialError>> + Send;

    /// After [`DialError::NeedsAuth`], waits until another program has logged in. Cancel-safe.
    fn authorized(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// The part of a connection that the supervisor needs.
pub trait Live: Send + Sync + 'static {
    /// Waits until the connection is lost and returns the reason. Cancel-safe.
    fn lost(&self) -> impl Future<Output = ServerError> + Send;

    /// Closes it. Calls in flight fail immediately.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

#[derive(Debug)]
enum Command {
    /// A caller needs the server.
    Use,
    /// Reconnect, whatever the state.
    Refresh,
    /// A call was answered with 401.
    NeedsAuth(ServerError),
    /// Stop the server.
    Stop,
}

/// A handle to the supervisor task of a server. Dropping it stops the server; [`Supervisor::stop`]
/// also waits until it has stopped.
#[derive(Debug)]
pub struct Supervisor<C> {
    commands: mpsc::Sender<Command>,
    snapshots: watch::Receiver<ServerSnapshot<C>>,
}

impl<C: Live> Supervisor<C> {
    /// Starts supervising. A lazy server is connected on first use. Unlike a receiver from
    /// [`Self::snapshots`], the observer misses no state change. It must not block.
    pub fn start(
        name: String,
        dial: impl Dial<Connection = C>,
        backoff: Backoff,
        lazy: bool,
        log: ServerLog,
        observer: impl Fn(StateChange<'_>) + Send + 'static,
    ) -> Self {
        let first = if lazy { ServerState::Idle } else { ServerState::Connecting };
        let nothing =
            ServerSnapshot { state: first, connection: None, restarts: 0, last_error: None };
        let (publisher, snapshots) = watch::channel(nothing);
        let (sender, commands) = mpsc::channel(COMMANDS);
        let observer = Box::new(observer);
        let last_error = None;
        let logged = ServerState::Idle;
        let machine =
            Machine { name, dial, backoff, commands, publisher, log, logged, observer, last_error };
        // The task ends when the sender is dropped, and closes the watch channel.
        tokio::spawn(machine.run(first));
        Self { commands: sender, snapshots }
    }

    /// Subscribes to the server's state.
    pub fn snapshots(&self) -> watch::Receiver<ServerSnapshot<C>> {
        self.snapshots.clone()
    }

    /// Connects to an idle server.
    pub fn wake(&self) {
        // If the queue is full, it is about to be woken anyway.
        let _ = self.commands.try_send(Command::Use);
    }

    /// Retries immediately, whatever the state, without waiting for the queue.
    pub fn revive(&self) {
        // If the queue is full, it is about to be retried anyway.
        let _ = self.commands.try_send(Command::Refresh);
    }

    /// Reconnects, whatever the state.
    pub async fn refresh(&self) {
        let _ = self.commands.send(Command::Refresh).await;
    }

    /// Reports that the server requires a login although it was connected.
    pub async fn needs_auth(&self, trouble: ServerError) {
        let _ = self.commands.send(Command::NeedsAuth(trouble)).await;
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(&self) {
        let _ = self.commands.send(Command::Stop).await;
        self.ended().wait().await;
    }

    /// Returns a handle to wait until the server has stopped.
    pub fn ended(&self) -> SupervisorEnded<C> {
        SupervisorEnded(self.snapshots.clone())
    }
}

/// A handle to wait until a server has stopped.
#[derive(Debug)]
pub struct SupervisorEnded<C>(watch::Receiver<ServerSnapshot<C>>);

impl<C> Clone for SupervisorEnded<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> SupervisorEnded<C> {
    /// Whether it has stopped.
    pub fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits until it has stopped.
    pub async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

struct Machine<D: Dial> {
    name: String,
    dial: D,
    backoff: Backoff,
    commands: mpsc::Receiver<Command>,
    publisher: watch::Sender<ServerSnapshot<D::Connection>>,
    log: ServerLog,
    /// The last state that was logged.
    logged: ServerState,
    observer: Box<dyn Fn(StateChange<'_>) + Send>,
    last_error: Option<ServerError>,
}

impl<D: Dial> Machine<D> {
    async fn run(mut self, first: ServerState) {
        let mut next = first;
        loop {
            next = match next {
                ServerState::Connecting => self.connecting().await,
                ServerState::Restarting => self.restarting().await,
                ServerState::Idle | ServerState::NeedsAuth | ServerState::Failed => {
                    self.waiting(next).await
                }
                // `connecting` handles a connection until it is lost.
                ServerState::Ready | ServerState::Closed | ServerState::Disabled => break,
            };
        }
        self.last_error = None;
        self.publish(ServerState::Closed, None);
    }

    /// Connects, and returns when the connection is lost or a command ends it.
    async fn connecting(&mut self) -> ServerState {
        self.publish(ServerState::Connecting, None);
        let dialled = tokio::select! {
            dialled = self.dial.dial() => dialled,
            next = interrupted(&mut self.commands) => return self.begin_anew(next),
        };
        match dialled {
            Ok(connection) => self.ready(connection).await,
            Err(DialError::NeedsAuth(cause)) => {
                self.publish_error(ServerState::NeedsAuth, cause);
                ServerState::NeedsAuth
            }
            Err(DialError::Failed(cause)) => {
                self.publish_error(ServerState::Restarting, cause);
                ServerState::Restarting
            }
            Err(DialError::Broken(cause)) => {
                self.publish_error(ServerState::Failed, cause);
                ServerState::Failed
            }
        }
    }

    async fn ready(&mut self, connection: D::Connection) -> ServerState {
        let connection = Arc::new(connection);
        let since = Instant::now();
        self.publish(ServerState::Ready, Some(Arc::clone(&connection)));
        let mut lost = std::pin::pin!(connection.lost());
        loop {
            let is_in_doubt = self.last_error.is_some();
            tokio::select! {
                cause = &mut lost => {
                    self.backoff.ran_for(since.elapsed());
                    // Published first: closing may take seconds, and the connection must not be
                    // used meanwhile.
                    self.publish_error(ServerState::Restarting, cause);
                    connection.close().await;
                    return ServerState::Restarting;
                }
                command = self.commands.recv() => {
                    let next = match command {
                        Some(Command::Use) => continue,
                        Some(Command::NeedsAuth(cause)) => {
                            self.publish_error(ServerState::NeedsAuth, cause);
                            ServerState::NeedsAuth
                        }
                        Some(Command::Refresh) => {
                            let next = self.begin_anew(ServerState::Connecting);
                            self.publish(next, None);
                            next
                        }
                        Some(Command::Stop) | None => {
                            let next = self.begin_anew(ServerState::Closed);
                            self.publish(next, None);
                            next
                        }
                    };
                    connection.close().await;
                    return next;
                }
                () = sleep_until(since + HEALTHY_RUN), if is_in_doubt => {
                    self.last_error = None;
                    self.publish(ServerState::Ready, Some(Arc::clone(&connection)));
                }
            }
        }
    }

    fn publish_error(&mut self, state: ServerState, cause: ServerError) {
        self.last_error = Some(cause.sanitized(&self.log));
        self.publish(state, None);
    }

    /// Clears the backoff and the last error after an explicit command.
    fn begin_anew(&mut self, next: ServerState) -> ServerState {
        self.backoff.reset();
        self.last_error = None;
        next
    }

    async fn restarting(&mut self) -> ServerState {
        let Some(delay) = self.backoff.next_delay() else {
            self.publish(ServerState::Failed, None);
            return ServerState::Failed;
        };
        self.publish(ServerState::Restarting, None);
        tokio::select! {
            () = sleep(delay) => ServerState::Connecting,
            next = interrupted(&mut self.commands) => self.begin_anew(next),
        }
    }

    /// Waits for a command or, if a login is required, for one elsewhere.
    async fn waiting(&mut self, state: ServerState) -> ServerState {
        loop {
            let command = tokio::select! {
                command = self.commands.recv() => command,
                () = self.dial.authorized(), if state == ServerState::NeedsAuth => {
                    return self.begin_anew(ServerState::Connecting);
                }
            };
            match command {
                Some(Command::Stop) | None => return ServerState::Closed,
                Some(Command::Use) if state != ServerState::Idle => {}
                // Already known, or about a previous connection.
                Some(Command::NeedsAuth(_)) => {}
                Some(Command::Use | Command::Refresh) => {
                    return self.begin_anew(ServerState::Connecting);
                }
            }
        }
    }

    fn publish(&mut self, state: ServerState, connection: Option<Arc<D::Connection>>) {
        let restarts = self.backoff.tries();
        let server = &self.name;
        let is_in_trouble =
            matches!(state, ServerState::Restarting | ServerState::NeedsAuth | ServerState::Failed);
        let trouble = self.last_error.as_ref().filter(|_| is_in_trouble);
        let is_change = self.publisher.borrow().state != state;
        let logged = std::mem::replace(&mut self.logged, state);
        if logged != state {
            // As users see it elsewhere.
            let shown = match state {
                ServerState::NeedsAuth => "Login required".to_owned(),
                state => format!("{state:?}"),
            };
            match trouble {
                Some(ServerError { message, .. }) => {
                    tracing::warn!(%server, ?state, restarts, error = %message, "server state changed");
                    self.log.line(&format!("[openclaw] {shown}: {message}"));
                }
                // A server that never ran has nothing to log.
                None if logged == ServerState::Idle && state == ServerState::Closed => {}
                None => {
                    tracing::info!(%server, ?state, restarts, "server state changed");
                    self.log.line(&format!("[openclaw] {shown}"));
                }
            }
        }
        let last_error = self.last_error.clone();
        self.publisher.send_replace(ServerSnapshot { state, connection, restarts, last_error });
        if is_change {
            (self.observer)(StateChange { state, restarts, trouble });
        }
    }
}

/// Waits for a command that interrupts the current step, and returns the next state.
async fn interrupted(commands: &mut mpsc::Receiver<Command>) -> ServerState {
    loop {
        match commands.recv().await {
            // Already connecting.
            Some(Command::Use) => {}
            // About a previous connection.
            Some(Command::NeedsAuth(_)) => {}
            Some(Command::Refresh) => return ServerState::Connecting,
            Some(Command::Stop) | None => return ServerState::Closed,
        }
    }
}
