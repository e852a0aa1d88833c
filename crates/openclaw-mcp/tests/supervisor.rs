//! The state machine of a server, in paused time.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openclaw_mcp::backoff::Backoff;
use openclaw_mcp::server_log::ServerLog;
use openclaw_mcp::supervisor::{Dial, DialError, Live, Snapshot, State, Supervisor, Trouble};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// What happens at each try: an error, or a connection that lives for so long.
type Fate = Result<Option<Duration>, DialError>;

/// Connections as they are scripted; after the last of them every try is the last one again.
#[derive(Clone)]
struct Scripted {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    open: Arc<AtomicUsize>,
    tries: Arc<Mutex<Vec<Duration>>>,
    start: Instant,
}

struct Connection {
    life: Option<Duration>,
    born: Instant,
    open: Arc<AtomicUsize>,
    closed: Notify,
}

impl Scripted {
    fn new(fates: impl IntoIterator<Item = Fate>) -> Self {
        Self {
            fates: Arc::new(Mutex::new(fates.into_iter().collect())),
            open: Arc::default(),
            tries: Arc::default(),
            start: Instant::now(),
        }
    }

    /// When it was tried to connect, in seconds from the start.
    fn tried_at(&self) -> Vec<u64> {
        self.tries.lock().unwrap().iter().map(Duration::as_secs).collect()
    }
}

impl Dial for Scripted {
    type Connection = Connection;

    async fn dial(&mut self) -> Result<Connection, DialError> {
        self.tries.lock().unwrap().push(self.start.elapsed());
        let mut fates = self.fates.lock().unwrap();
        let fate = if fates.len() > 1 { fates.pop_front() } else { fates.front().cloned() };
        let life = fate.unwrap()?;
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Arc::clone(&self.open);
        Ok(Connection { life, born: Instant::now(), open, closed: Notify::new() })
    }
}

impl Live for Connection {
    async fn lost(&self) -> Trouble {
        match self.life {
            Some(life) => tokio::time::sleep_until(self.born + life).await,
            None => self.closed.notified().await,
        }
        Trouble::new("it crashed")
    }

    async fn close(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn failed() -> Fate {
    Err(DialError::Failed(Trouble::new("no such program")))
}

fn lives(seconds: u64) -> Fate {
    Ok(Some(Duration::from_secs(seconds)))
}

async fn until(
    snapshots: &mut watch::Receiver<Snapshot<Connection>>,
    state: State,
) -> Snapshot<Connection> {
    snapshots.wait_for(|snapshot| snapshot.state == state).await.unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_is_restarted_with_growing_delays_and_then_given_up() {
    let dial = Scripted::new([lives(0)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(5), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    let last = until(&mut snapshots, State::Failed).await;
    assert_eq!(dial.tried_at(), [0, 1, 3, 7, 15, 31]);
    assert_eq!(last.last_error, Some(Trouble::new("it crashed")));
    assert_eq!(last.restarts, 5);
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_healthy_minute_makes_good_for_earlier_crashes() {
    let dial = Scripted::new([lives(0), lives(0), lives(60), lives(0), Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(2), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    snapshots.wait_for(|_| dial.tried_at().len() == 5).await.unwrap();
    assert_eq!(dial.tried_at(), [0, 1, 3, 64, 66]);
    until(&mut snapshots, State::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_remote_server_is_tried_for_ever() {
    let dial = Scripted::new([failed()]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::remote(), false, ServerLog::none());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(dial.tried_at().len() > 60);
    assert_eq!(supervisor.snapshots().borrow().state, State::Restarting);
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_is_revived_by_a_refresh() {
    let dial = Scripted::new([failed(), Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(0), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    until(&mut snapshots, State::Failed).await;
    supervisor.wake();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(dial.tried_at(), [0], "to use it is not enough");
    supervisor.refresh().await;
    let ready = until(&mut snapshots, State::Ready).await;
    assert!(ready.connection.is_some() && ready.last_error.is_none());
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_is_connected_to_when_it_is_used() {
    let dial = Scripted::new([Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(5), true, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((snapshots.borrow().state, dial.tried_at().len()), (State::Idle, 0));
    supervisor.wake();
    until(&mut snapshots, State::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_needs_a_login_waits_for_it() {
    let needed = Err(DialError::NeedsAuth(Trouble::new("run `openclaw mcp auth x`")));
    let dial = Scripted::new([needed, Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::remote(), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    let waiting = until(&mut snapshots, State::NeedsAuth).await;
    assert_eq!(waiting.last_error, Some(Trouble::new("run `openclaw mcp auth x`")));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(dial.tried_at(), [0]);
    supervisor.refresh().await;
    until(&mut snapshots, State::Ready).await;
    supervisor.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_and_refreshing_close_the_connection() {
    let dial = Scripted::new([Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(5), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    until(&mut snapshots, State::Ready).await;
    supervisor.refresh().await;
    snapshots.wait_for(|_| dial.tried_at().len() == 2).await.unwrap();
    until(&mut snapshots, State::Ready).await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 1, "the old connection is closed");
    supervisor.stop().await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
    assert_eq!(snapshots.borrow().state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_supervisor_ends_its_server() {
    let dial = Scripted::new([Ok(None)]);
    let supervisor =
        Supervisor::start("x".into(), dial.clone(), Backoff::process(5), false, ServerLog::none());
    let mut snapshots = supervisor.snapshots();
    until(&mut snapshots, State::Ready).await;
    drop(supervisor);
    until(&mut snapshots, State::Closed).await;
    assert_eq!(dial.open.load(Ordering::SeqCst), 0);
}
