//! Progress of a run: its latest state, not every event, so that a slow client misses intermediate states
//! only.

use std::convert::Infallible;
use std::time::Duration;

use openclaw_tools::{Progress, ProgressWatcher};
use rmcp::task_manager::TaskContext;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The least time between two reports.
const PAUSE: Duration = Duration::from_millis(200);
/// Without news, the last state is reported again after this time: clients may wait for a sign of
/// life, with timeouts of a minute or less.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The progress of a run.
pub(crate) struct RunProgress {
    to: ReportTo,
    state: watch::Sender<String>,
}

/// Where progress is reported.
enum ReportTo {
    /// `None` if nothing receives it.
    Request(Option<ProgressWatcher>),
    Task(TaskContext),
}

impl RunProgress {
    /// Reports to the request that is answered by the run.
    pub(crate) fn of_request(watcher: Option<ProgressWatcher>) -> Self {
        Self::new(ReportTo::Request(watcher))
    }

    /// Reports in the state of a task.
    pub(crate) fn of_task(task: TaskContext) -> Self {
        Self::new(ReportTo::Task(task))
    }

    fn new(to: ReportTo) -> Self {
        Self { to, state: watch::Sender::new("starting".to_owned()) }
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

    /// Reports until it is dropped.
    pub(crate) async fn report(&self) -> Infallible {
        let mut state = self.state.subscribe();
        state.mark_changed();
        let mut done = 0.0;
        loop {
            // The sender is owned by `self`; a timeout is a heartbeat.
            let _ = timeout(HEARTBEAT, state.changed()).await;
            done += 1.0;
            let message = state.borrow_and_update().clone();
            match &self.to {
                ReportTo::Task(task) => task.set_status_message(message),
                ReportTo::Request(Some(watcher)) => {
                    watcher.report(Progress { done, total: None, message: Some(message) });
                }
                ReportTo::Request(None) => {}
            }
            sleep(PAUSE).await;
        }
    }
}
