//! Progress notifications: the latest state of a run, not every event, so that a slow client misses
//! intermediate states only.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::task_manager::TaskContext;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The least time between two notifications.
const PAUSE: Duration = Duration::from_millis(200);
/// Without news, the last state is reported again after this time: clients may wait for a sign of
/// life, with timeouts of a minute or less.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The progress of a run.
pub(crate) struct RunProgress {
    sink: Mutex<Sink>,
    state: watch::Sender<String>,
}

/// Where progress is reported.
#[derive(Clone)]
enum Sink {
    /// Nowhere: the client did not ask for it.
    None,
    /// To the client, which asked for it with this token.
    Client(Peer<RoleServer>, ProgressToken),
    /// In the state of a task.
    Task(TaskContext),
}

impl Sink {
    fn of_request(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        token.map_or(Self::None, |token| Self::Client(context.peer.clone(), token))
    }
}

impl RunProgress {
    pub(crate) fn of_request(context: &RequestContext<RoleServer>) -> Self {
        Self::new(Sink::of_request(context))
    }

    /// Reports to another request of the client from now on.
    pub(crate) fn redirect(&self, context: &RequestContext<RoleServer>) {
        *self.sink() = Sink::of_request(context);
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of_task(task: TaskContext) -> Self {
        Self::new(Sink::Task(task))
    }

    fn new(sink: Sink) -> Self {
        Self { sink: Mutex::new(sink), state: watch::Sender::new("starting".to_owned()) }
    }

    /// Sets the current state.
    pub(crate) fn set(&self, state: impl Into<String>) {
        let state = state.into();
        self.state.send_if_modified(|last| {
            let is_new = *last != state;
            *last = state;
            is_new
        });
    }

    /// Sends notifications until it is dropped.
    pub(crate) async fn report(&self) -> Infallible {
        let mut state = self.state.subscribe();
        state.mark_changed();
        let mut sent = 0.0;
        loop {
            // The sender is owned by `self`; a timeout is a heartbeat.
            let _ = timeout(HEARTBEAT, state.changed()).await;
            sent += 1.0;
            let message = state.borrow_and_update().clone();
            let sink = self.sink().clone();
            match sink {
                Sink::None => {}
                Sink::Task(task) => task.set_status_message(message),
                Sink::Client(peer, token) => {
                    let progress = ProgressNotificationParam::new(token, sent);
                    // It fails only if the client is gone.
                    let _ = peer.notify_progress(progress.with_message(message)).await;
                }
            }
            sleep(PAUSE).await;
        }
    }
}
