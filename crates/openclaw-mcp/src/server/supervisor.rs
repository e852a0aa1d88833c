//! One task for each server owns its state machine, and nothing else does (L3, L4, L6):
//!
//! ```text
//! idle ──use──▶ connecting ──ok──▶ ready ──lost──▶ restarting ──▶ connecting
//!                   │                                  │
//!                   ├──401──▶ needs-auth ──refresh──▶ connecting
//!                   └──error──▶ restarting … ──too often──▶ failed ──refresh──▶ connecting
//! ```
//!
//! How to connect is handed in ([`Dial`]), and so is when to try again ([`Backoff`]): the machine
//! itself is tested in paused time, without a process.

use std::sync::Arc;

use openclaw_content::{Untrusted, clean_line};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::server::backoff::{Backoff, HEALTHY_RUN};
use crate::server::log::ServerLog;
use crate::server::status::ServerState;

/// How many commands may wait.
const COMMANDS: usize = 16;
/// How much is shown of what went wrong.
const MESSAGE_CHARS: usize = 1_000;

/// What is to be known about a server at a moment.
#[derive(Debug)]
pub struct Snapshot<C> {
    /// Its state.
    pub state: ServerState,
    /// The connection, while it is ready.
    pub connection: Option<Arc<C>>,
    /// How often it was started again in a row.
    pub restarts: u32,
    /// What went wrong last. It is forgotten when the server has been well for a while, and when
    /// somebody has it connected to anew.
    pub last_error: Option<Trouble>,
}

impl<C> Clone for Snapshot<C> {
    fn clone(&self) -> Self {
        let Self { state, connection, restarts, last_error } = self;
        let (connection, last_error) = (connection.clone(), last_error.clone());
        Self { state: *state, connection, restarts: *restarts, last_error }
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialError {
    /// It may work later.
    Failed(Trouble),
    /// Somebody must log in first.
    NeedsAuth(Trouble),
}

/// What went wrong, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// In our words.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the server wrote to stderr last. From outside: not for a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The kind of it in a few fixed words, which quote nobody: fit for a model.
    #[serde(skip)]
    pub gist: Option<&'static str>,
}

impl Trouble {
    /// Trouble that needs no more words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same as it may be kept and shown: without secrets, the message on one clean line. Whoever
    /// told of it may have quoted the server.
    fn presentable(self, log: &ServerLog) -> Self {
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

/// A change of state.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The state from now on.
    pub state: ServerState,
    /// How often it was started again in a row.
    pub restarts: u32,
    /// What went wrong, where something did.
    pub trouble: Option<&'a Trouble>,
}

/// How to connect to a server.
pub trait Dial: Send + 'static {
    /// What a connection is.
    type Connection: Live;

    /// Connects. Dropping the future leaves nothing behind.
    fn dial(&mut self) -> impl Future<Output = Result<Self::Connection, DialError>> + Send;
}

/// A connection, as far as the supervisor must know.
pub trait Live: Send + Sync + 'static {
    /// Waits until the connection is lost; says why. Safe to cancel.
    fn lost(&self) -> impl Future<Output = Trouble> + Send;

    /// Ends it. Calls that still hold it fail at once.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

#[derive(Debug)]
enum Command {
    /// Somebody wants to use the server.
    Use,
    /// Try anew, whatever happened before.
    Refresh,
    /// The server wants a login, as its connection shows.
    NeedsAuth(Trouble),
    /// End it.
    Stop,
}

/// The way to a supervisor. It ends its server when it is dropped; [`Supervisor::stop`] waits for that.
#[derive(Debug)]
pub struct Supervisor<C> {
    commands: mpsc::Sender<Command>,
    snapshots: watch::Receiver<Snapshot<C>>,
}

impl<C: Live> Supervisor<C> {
    /// Starts supervising. A lazy server is connected to when it is first used.
    pub fn start(
        name: String,
        dial: impl Dial<Connection = C>,
        backoff: Backoff,
        lazy: bool,
        log: ServerLog,
    ) -> Self {
        Self::start_observed(name, dial, backoff, lazy, log, |_| {})
    }

    /// The same, with somebody who is told of each change of state. Unlike who looks at
    /// [`Self::snapshots`], it misses none. It must not take long.
    pub fn start_observed(
        name: String,
        dial: impl Dial<Connection = C>,
        backoff: Backoff,
        lazy: bool,
        log: ServerLog,
        observer: impl Fn(Change<'_>) + Send + 'static,
    ) -> Self {
        let first = if lazy { ServerState::Idle } else { ServerState::Connecting };
        let nothing = Snapshot { state: first, connection: None, restarts: 0, last_error: None };
        let (publisher, snapshots) = watch::channel(nothing);
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (observer, last_error) = (Box::new(observer), None);
        let logged = ServerState::Idle;
        let machine =
            Machine { name, dial, backoff, commands, publisher, log, logged, observer, last_error };
        // It ends when the commands do, and publishes nothing any more then.
        tokio::spawn(machine.run(first));
        Self { commands: sender, snapshots }
    }

    /// The server's state, now and from now on.
    pub fn snapshots(&self) -> watch::Receiver<Snapshot<C>> {
        self.snapshots.clone()
    }

    /// Says that somebody wants to use the server.
    pub fn wake(&self) {
        // If so many commands wait, it is about to be woken anyway.
        let _ = self.commands.try_send(Command::Use);
    }

    /// Has it tried again at once, whatever happened before.
    pub fn revive(&self) {
        // If so many commands wait, it is about to be tried anyway.
        let _ = self.commands.try_send(Command::Refresh);
    }

    /// Has it connected to anew.
    pub async fn refresh(&self) {
        let _ = self.commands.send(Command::Refresh).await;
    }

    /// Says that the server wants a login, though it was connected to.
    pub async fn needs_auth(&self, trouble: Trouble) {
        let _ = self.commands.send(Command::NeedsAuth(trouble)).await;
    }

    /// Ends the server, and waits until it is gone.
    pub async fn stop(&self) {
        let _ = self.commands.send(Command::Stop).await;
        self.ended().wait().await;
    }

    /// The end of the server, to be waited for.
    pub fn ended(&self) -> Ended<C> {
        Ended(self.snapshots.clone())
    }
}

/// The end of a server, to be waited for.
#[derive(Debug)]
pub struct Ended<C>(watch::Receiver<Snapshot<C>>);

impl<C> Clone for Ended<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Ended<C> {
    /// Whether it has come.
    pub fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits for it.
    pub async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// The state machine.
struct Machine<D: Dial> {
    name: String,
    dial: D,
    backoff: Backoff,
    commands: mpsc::Receiver<Command>,
    publisher: watch::Sender<Snapshot<D::Connection>>,
    log: ServerLog,
    /// The state that was logged last.
    logged: ServerState,
    observer: Box<dyn Fn(Change<'_>) + Send>,
    last_error: Option<Trouble>,
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
                // `connecting` sees to a connection as long as it lives.
                ServerState::Ready | ServerState::Closed | ServerState::Disabled => break,
            };
        }
        self.last_error = None;
        self.publish(ServerState::Closed, None);
    }

    /// Connects, and stays until the connection is lost or somebody has other plans.
    async fn connecting(&mut self) -> ServerState {
        self.publish(ServerState::Connecting, None);
        let dialled = tokio::select! {
            dialled = self.dial.dial() => dialled,
            next = interrupted(&mut self.commands) => return self.begin_anew(next),
        };
        match dialled {
            Ok(connection) => self.ready(connection).await,
            Err(DialError::NeedsAuth(cause)) => {
                self.in_trouble(ServerState::NeedsAuth, cause);
                ServerState::NeedsAuth
            }
            Err(DialError::Failed(cause)) => {
                self.in_trouble(ServerState::Restarting, cause);
                ServerState::Restarting
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
                    // First: to close it may take seconds, in which nobody should use it.
                    self.in_trouble(ServerState::Restarting, cause);
                    connection.close().await;
                    return ServerState::Restarting;
                }
                command = self.commands.recv() => {
                    let next = match command {
                        Some(Command::Use) => continue,
                        Some(Command::NeedsAuth(cause)) => {
                            self.in_trouble(ServerState::NeedsAuth, cause);
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

    /// Something went wrong.
    fn in_trouble(&mut self, state: ServerState, cause: Trouble) {
        self.last_error = Some(cause.presentable(&self.log));
        self.publish(state, None);
    }

    /// Somebody asked for what comes next: what was before does not count any more.
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

    /// Nothing to do until somebody asks.
    async fn waiting(&mut self, state: ServerState) -> ServerState {
        loop {
            match self.commands.recv().await {
                Some(Command::Stop) | None => return ServerState::Closed,
                Some(Command::Use) if state != ServerState::Idle => {}
                // It is known, or of a connection that is gone.
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
            match trouble {
                Some(Trouble { message, .. }) => {
                    tracing::warn!(%server, ?state, restarts, error = %message);
                    self.log.line(&format!("[openclaw] {state:?}: {message}"));
                }
                // What never ran has nothing to tell.
                None if logged == ServerState::Idle && state == ServerState::Closed => {}
                None => {
                    tracing::info!(%server, ?state, restarts);
                    self.log.line(&format!("[openclaw] {state:?}"));
                }
            }
        }
        let last_error = self.last_error.clone();
        self.publisher.send_replace(Snapshot { state, connection, restarts, last_error });
        if is_change {
            (self.observer)(Change { state, restarts, trouble });
        }
    }
}

/// Waits for a command that interrupts what is being done; says what to do next.
async fn interrupted(commands: &mut mpsc::Receiver<Command>) -> ServerState {
    loop {
        match commands.recv().await {
            // It is being done already.
            Some(Command::Use) => {}
            // That was the connection before.
            Some(Command::NeedsAuth(_)) => {}
            Some(Command::Refresh) => return ServerState::Connecting,
            Some(Command::Stop) | None => return ServerState::Closed,
        }
    }
}
