//! The state machine of a server, in paused time.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openclaw_backoff::Jitter;
use openclaw_mcp::server::backoff::{Backoff, RestartLimit};
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::supervisor::{
    Dial, DialError, Live, ServerError, ServerSnapshot, StateChange, Supervisor,
};
use openclaw_mcp_client::log::ServerLog;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The result of each dial: an error, or a connection that lasts this long (`None`: until it is
/// closed).
type Fate = Result<Option<Duration>, DialError>;

/// Scripted connections; the last result is repeated.
#[derive(Clone)]
struct Scripted {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    open: Arc<AtomicUsize>,
    /// How long closing takes.
    farewell: Duration,
    tries: Arc<Mutex<Vec<Duration>>>,
    start: Instant,
}

struct Connection {
    life: Option<Duration>,
    born: Instant,
    open: Arc<AtomicUsize>,
    farewell: Duration,
    closed: Notify,
}

impl Scripted {
    fn new(fates: impl IntoIterator<Item = Fate>) -> Self {
        Self {
            fates: Arc::new(Mutex::new(fates.into_iter().collect())),
            open: Arc::default(),
            farewell: Duration::ZERO,
            tries: Arc::default(),
            start: Instant::now(),
        }
    }

    /// When it was dialled, in seconds since the start.
    fn tried_at(&self) -> Vec<u64> {
        self.tries.lock().unwrap().iter().map(Duration::as_secs).collect()
    }
}

impl Dial for Scripted {
    type Connection = Connection;

    async fn dial(&mut self) -> Result<Connection, DialError> {
        self.tries.lock().unwrap().push(self.start.elapsed());
        // Takes a moment, so that the state `Connecting` is observable.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut fates = self.fates.lock().unwrap();
        let fate = if fates.len() > 1 { fates.pop_front() } else { fates.front().cloned() };
        let life = fate.unwrap()?;
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Arc::clone(&self.open);
        let farewell = self.farewell;
        Ok(Connection { life, born: Instant::now(), open, farewell, closed: Notify::new() })
    }
}

impl Live for Connection {
    async fn lost(&self) -> ServerError {
        match self.life {
            Some(life) => tokio::time::sleep_until(self.born + life).await,
            None => self.closed.notified().await,
        }
        ServerError::new("it crashed")
    }

    async fn close(&self) {
        tokio::time::sleep(self.farewell).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn failed() -> Fate {
    Err(DialError::Failed(ServerError::new("no such program")))
}

fn lives(seconds: u64) -> Fate {
    Ok(Some(Duration::from_secs(seconds)))
}

/// This many restarts, without jitter.
fn process(limit: u32) -> Backoff {
    Backoff::process(RestartLimit::new(limit), Jitter::none())
}

type Snapshots = watch::Receiver<ServerSnapshot<Connection>>;

/// Supervises a server that is connected to at once.
fn supervise(dial: &Scripted, backoff: Backoff) -> (Supervisor<Connection>, Snapshots) {
    let log = ServerLog::none();
    let supervisor = Supervisor::start("x".to_owned(), dial.clone(), backoff, false, log, |_| {});
    let snapshots = supervisor.snapshots();
    (supervisor, snapshots)
}

async fn until(snapshots: &mut Snapshots, state: ServerState) -> ServerSnapshot<Connection> {
    snapshots.wait_for(|snapshot| snapshot.state == state).await.unwrap().clone()
}

/// Asserts that a server that was tried once is tried again on request, and not before.
async fn is_retried_only_on_request(
    dial: &Scripted,
    supervisor: Supervisor<Connection>,
    mut snapshots: Snapshots,
) {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(dial.tried_at(), [0]);
    supervisor.refresh().await;
    until(&mut snapshots, ServerState::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_is_restarted_with_growing_delays_and_then_given_up() {
    let dial = Scripted::new([lives(0)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    let last = until(&mut snapshots, ServerState::Failed).await;
    assert_eq!(dial.tried_at(), [0, 1, 3, 7, 15, 31]);
    assert_eq!(last.last_error, Some(ServerError::new("it crashed")));
    assert_eq!(last.restarts, 5);
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_start_fails_at_once_and_is_tried_again_on_request() {
    let missing = ServerError::new("program `x` not found");
    let dial = Scripted::new([Err(DialError::Broken(missing.clone())), Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    let last = until(&mut snapshots, ServerState::Failed).await;
    assert_eq!((last.last_error, last.restarts), (Some(missing), 0));
    is_retried_only_on_request(&dial, supervisor, snapshots).await;
}

#[tokio::test(start_paused = true)]
async fn a_healthy_minute_resets_the_crash_count() {
    let dial = Scripted::new([lives(0), lives(0), lives(60), lives(0), Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(2));
    snapshots.wait_for(|_| dial.tried_at().len() == 5).await.unwrap();
    assert_eq!(dial.tried_at(), [0, 1, 3, 64, 66]);
    until(&mut snapshots, ServerState::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_shown_until_the_server_has_been_healthy_for_a_minute() {
    let dial = Scripted::new([lives(5), failed(), Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    assert_eq!(until(&mut snapshots, ServerState::Ready).await.last_error, None);
    let crashed = Some(ServerError::new("it crashed"));
    assert_eq!(until(&mut snapshots, ServerState::Restarting).await.last_error, crashed);
    assert_eq!(until(&mut snapshots, ServerState::Connecting).await.last_error, crashed);
    let again = until(&mut snapshots, ServerState::Ready).await;
    assert_eq!(again.last_error, Some(ServerError::new("no such program")), "the newer one");
    snapshots.wait_for(|snapshot| snapshot.last_error.is_none()).await.unwrap();
    assert_eq!(dial.start.elapsed().as_secs(), 5 + 1 + 2 + 60);
    assert_eq!(snapshots.borrow().state, ServerState::Ready);
    assert!(snapshots.borrow().connection.is_some());
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_not_offered_while_it_is_being_closed() {
    let farewell = Duration::from_secs(20);
    let dial = Scripted { farewell, ..Scripted::new([lives(5), Ok(None)]) };
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    until(&mut snapshots, ServerState::Ready).await;
    let lost = until(&mut snapshots, ServerState::Restarting).await;
    assert!(lost.connection.is_none());
    assert_eq!(dial.open.load(Ordering::SeqCst), 1, "it is still being closed");
    until(&mut snapshots, ServerState::Ready).await;
    assert_eq!(dial.tried_at(), [0, 26]);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_are_shown_on_one_line_and_without_secrets() {
    let redactor = openclaw_secrets::Redactor::new();
    redactor.add(&"hunter22".to_owned().into());
    let trouble = ServerError {
        message: "it said:\n\u{1b}key hunter22".to_owned(),
        hint: Some("not hunter22".to_owned()),
        last_lines: vec!["hunter22?".to_owned()],
        gist: None,
    };
    let dial = Scripted::new([Err(DialError::Failed(trouble))]);
    let log = ServerLog::none().without_secrets(redactor);
    let supervisor = Supervisor::start("x".into(), dial, process(0), false, log, |_| {});
    let shown = until(&mut supervisor.snapshots(), ServerState::Failed).await.last_error.unwrap();
    assert_eq!(shown.message, "it said: key [REDACTED]");
    assert_eq!(shown.hint.as_deref(), Some("not [REDACTED]"));
    assert_eq!(shown.last_lines, ["[REDACTED]?"]);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_remote_server_is_retried_without_end() {
    let dial = Scripted::new([failed()]);
    let (supervisor, snapshots) = supervise(&dial, Backoff::remote(Jitter::none()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(dial.tried_at().len() > 60);
    assert_eq!(snapshots.borrow().state, ServerState::Restarting);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_state_change_is_reported() {
    let dial = Scripted::new([failed(), lives(0), Ok(None)]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let observer = move |change: StateChange<'_>| {
        let message = change.trouble.map(|trouble| trouble.message.clone());
        tell.send((change.state, message)).unwrap();
    };
    let (backoff, log) = (process(5), ServerLog::none());
    let supervisor = Supervisor::start("x".into(), dial, backoff, true, log, observer);
    supervisor.wake();
    let mut snapshots = supervisor.snapshots();
    snapshots.wait_for(|it| it.state == ServerState::Ready && it.restarts == 2).await.unwrap();
    supervisor.stop().await;
    let mut changes = Vec::new();
    while let Some(change) = told.recv().await {
        changes.push(change);
    }
    let because = |message: &str| Some(message.to_owned());
    let expected = [
        (ServerState::Connecting, None),
        (ServerState::Restarting, because("no such program")),
        (ServerState::Connecting, None),
        (ServerState::Ready, None),
        (ServerState::Restarting, because("it crashed")),
        (ServerState::Connecting, None),
        (ServerState::Ready, None),
        (ServerState::Closed, None),
    ];
    assert_eq!(changes, expected);
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_is_revived_by_a_refresh() {
    let dial = Scripted::new([failed(), Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(0));
    until(&mut snapshots, ServerState::Failed).await;
    supervisor.wake();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(dial.tried_at(), [0], "using it does not retry");
    supervisor.refresh().await;
    let ready = until(&mut snapshots, ServerState::Ready).await;
    assert!(ready.connection.is_some() && ready.last_error.is_none());
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_is_connected_to_when_it_is_used() {
    let dial = Scripted::new([Ok(None)]);
    let log = ServerLog::none();
    let supervisor = Supervisor::start("x".into(), dial.clone(), process(5), true, log, |_| {});
    let mut snapshots = supervisor.snapshots();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((snapshots.borrow().state, dial.tried_at().len()), (ServerState::Idle, 0));
    supervisor.wake();
    until(&mut snapshots, ServerState::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_needs_a_login_is_not_retried() {
    let needed = Err(DialError::NeedsAuth(ServerError::new("set `apiKey`")));
    let dial = Scripted::new([needed, Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, Backoff::remote(Jitter::none()));
    let waiting = until(&mut snapshots, ServerState::NeedsAuth).await;
    assert_eq!(waiting.last_error, Some(ServerError::new("set `apiKey`")));
    is_retried_only_on_request(&dial, supervisor, snapshots).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_and_refreshing_close_the_connection() {
    let dial = Scripted::new([Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    until(&mut snapshots, ServerState::Ready).await;
    supervisor.refresh().await;
    snapshots.wait_for(|_| dial.tried_at().len() == 2).await.unwrap();
    until(&mut snapshots, ServerState::Ready).await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 1, "the old connection is closed");
    supervisor.stop().await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
    assert_eq!(snapshots.borrow().state, ServerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_supervisor_stops_its_server() {
    let dial = Scripted::new([Ok(None)]);
    let (supervisor, mut snapshots) = supervise(&dial, process(5));
    until(&mut snapshots, ServerState::Ready).await;
    drop(supervisor);
    until(&mut snapshots, ServerState::Closed).await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn servers_that_crash_together_are_not_restarted_together() {
    let tried = async |seed| {
        let dial = Scripted::new([lives(0)]);
        let backoff = Backoff::process(RestartLimit::new(5), Jitter::seeded(seed));
        let (supervisor, mut snapshots) = supervise(&dial, backoff);
        until(&mut snapshots, ServerState::Failed).await;
        supervisor.stop().await;
        dial.tries.lock().unwrap().clone()
    };
    let (one, other) = (tried(1).await, tried(2).await);
    assert_eq!((one.len(), other.len()), (6, 6));
    for ((one, other), nominal) in one.iter().zip(&other).zip([0, 1, 3, 7, 15, 31]).skip(1) {
        let within = Duration::from_millis(nominal * 800)..=Duration::from_millis(nominal * 1_201);
        assert!(within.contains(one) && within.contains(other), "{one:?} {other:?} {nominal}");
        assert_ne!(one, other);
    }
}
