//! Sends spans to a collector: OTLP over HTTP, in protobuf.
//!
//! Work only puts its spans in a bounded queue; a thread of its own sends them in batches. A
//! collector that is down, slow or wrong costs spans, which are counted, and never time.

mod http;
mod otlp;
mod settings;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use openclaw_secrets::Redactor;

use crate::span::SpanRecord;
use crate::tracer::{Sink, Tracer};
use http::{Collector, SendError};
pub use settings::{Batches, Off, Settings};

/// How often a batch is sent that the collector cannot take right now.
const TRIES: u32 = 3;
/// The delay before it is sent again, unless the collector names one, and the longest one.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Sends spans to a collector. Nothing runs before the first span has ended.
#[derive(Debug)]
pub struct Exporter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    redactor: Redactor,
    state: Mutex<State>,
    /// Notified when a batch is full, or when the exporter is closed.
    wake: Condvar,
    /// Notified when everything is sent.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Vec<SpanRecord>,
    /// Spans of the batch that is being sent.
    sending: usize,
    /// Spans that no collector has got.
    dropped: u64,
    thread: ThreadState,
    is_closed: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ThreadState {
    #[default]
    NotStarted,
    Running,
    Ended,
}

impl Exporter {
    /// Creates an exporter. The redactor is applied to every text that leaves the program.
    pub fn new(settings: Settings, redactor: Redactor) -> Self {
        let state = Mutex::default();
        let (wake, done) = (Condvar::new(), Condvar::new());
        Self { shared: Arc::new(Shared { settings, redactor, state, wake, done }) }
    }

    /// A tracer whose spans are sent by this exporter.
    pub fn tracer(&self) -> Tracer {
        let Shared { settings, redactor, .. } = &*self.shared;
        let content = settings.captures_content.then(|| redactor.clone());
        let sink = Queue(Arc::clone(&self.shared));
        Tracer::new(Arc::new(sink), settings.sampler, content)
    }

    /// The number of spans that no collector has got.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Sends what is queued, for at most this long. Spans that end later are dropped.
    pub fn close(&self, patience: Duration) {
        let shared = &*self.shared;
        let mut state = shared.lock();
        state.is_closed = true;
        shared.wake.notify_all();
        let is_running = |state: &mut State| state.thread == ThreadState::Running;
        let waited = shared.done.wait_timeout_while(state, patience, is_running);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let lost = state.dropped + (state.queue.len() + state.sending) as u64;
        if lost > 0 {
            tracing::warn!(spans = lost, "spans were not sent to the collector");
        }
    }
}

/// The queue of spans that wait to be sent.
#[derive(Debug)]
struct Queue(Arc<Shared>);

impl Sink for Queue {
    fn end(&self, span: SpanRecord) {
        let shared = &self.0;
        let mut state = shared.lock();
        if state.is_closed || state.queue.len() >= shared.settings.batches.queue {
            state.dropped += 1;
            return;
        }
        state.queue.push(span);
        if state.queue.len() == shared.settings.batches.size {
            shared.wake.notify_one();
        }
        if state.thread == ThreadState::NotStarted {
            state.thread = start(shared);
        }
    }
}

/// Starts the thread that sends spans.
fn start(shared: &Arc<Shared>) -> ThreadState {
    let running = Running(Arc::clone(shared));
    let thread = std::thread::Builder::new().name("traces".to_owned());
    match thread.spawn(move || running.0.run()) {
        Ok(_) => ThreadState::Running,
        Err(error) => {
            tracing::warn!(%error, "cannot start the thread that sends spans");
            ThreadState::Ended
        }
    }
}

/// The thread. Dropping it marks it as ended, also after a panic.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.thread = ThreadState::Ended;
        state.is_closed = true;
        self.0.done.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a batch; `None` if there will be no more.
    fn next_batch(&self) -> Option<Vec<SpanRecord>> {
        let Batches { delay, size, .. } = self.settings.batches;
        let is_early = |state: &mut State| !state.is_closed && state.queue.len() < size;
        let waited = self.wake.wait_timeout_while(self.lock(), delay, is_early);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_closed && state.queue.is_empty() {
            return None;
        }
        state.sending = state.queue.len().min(size);
        let end = state.sending;
        Some(state.queue.drain(..end).collect())
    }

    /// Waits before a batch is sent again, unless the exporter is closed. Returns whether to send it.
    fn pause(&self, delay: Duration) -> bool {
        let is_open = |state: &mut State| !state.is_closed;
        let waited = self.wake.wait_timeout_while(self.lock(), delay, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Sends batches until the exporter is closed.
    fn run(&self) {
        let mut collector = match Collector::new(&self.settings) {
            Ok(collector) => collector,
            Err(error) => {
                tracing::warn!(%error, "cannot send spans");
                let mut state = self.lock();
                state.is_closed = true;
                let queued = std::mem::take(&mut state.queue);
                state.dropped += queued.len() as u64;
                return;
            }
        };
        let mut is_failing = false;
        while let Some(batch) = self.next_batch() {
            if batch.is_empty() {
                continue;
            }
            let body = otlp::request(&batch, &self.settings.resource, &self.redactor);
            let sent = self.send(&mut collector, &body);
            self.sent(&sent);
            match sent {
                Ok(()) if is_failing => {
                    is_failing = false;
                    tracing::info!(collector = %self.settings.place(), "spans are sent again");
                }
                Ok(()) => {}
                Err(error) => {
                    // Once per outage: a collector may be down for days.
                    if !std::mem::replace(&mut is_failing, true) {
                        let collector = self.settings.place();
                        tracing::warn!(%collector, %error, "spans are not sent to the collector");
                    }
                }
            }
        }
    }

    /// Counts the spans of a batch that was sent, or was not.
    fn sent(&self, sent: &Result<(), SendError>) {
        let mut state = self.lock();
        let spans = std::mem::take(&mut state.sending);
        if sent.is_err() {
            state.dropped += spans as u64;
        }
    }

    fn send(&self, collector: &mut Collector, body: &[u8]) -> Result<(), SendError> {
        let deadline = Instant::now() + self.settings.batches.timeout;
        let mut tries = 1;
        loop {
            let error = match collector.send(body.to_vec()) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let Some(after) = error.retry_after() else { return Err(error) };
            let delay = after.unwrap_or(RETRY * tries).min(LONGEST_RETRY);
            if tries == TRIES || Instant::now() + delay > deadline || !self.pause(delay) {
                return Err(error);
            }
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::span::Kind;

    #[test]
    fn a_collector_that_never_answers_costs_spans_and_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let variable = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(address.clone()),
            "OTEL_BSP_MAX_QUEUE_SIZE" => Some("100".to_owned()),
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" => Some("10".to_owned()),
            _ => None,
        };
        let settings = Settings::from_variables(&variable, &mut Vec::new()).unwrap();
        let exporter = Exporter::new(settings, Redactor::new());
        let tracer = exporter.tracer();
        for _ in 0..10_000 {
            drop(tracer.start("a", Kind::Internal, None));
        }
        let queued = exporter.shared.lock().queue.len();
        assert!(queued <= 100, "{queued}");
        // One batch is being sent.
        assert!(exporter.dropped() >= 10_000 - 100 - 10, "{}", exporter.dropped());
        exporter.close(Duration::ZERO);
        drop(tracer.start("late", Kind::Internal, None));
        assert!(exporter.shared.lock().queue.len() <= 100);
    }

    #[test]
    fn nothing_runs_before_the_first_span() {
        let variable = |name: &str| {
            (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned())
        };
        let settings = Settings::from_variables(&variable, &mut Vec::new()).unwrap();
        let exporter = Exporter::new(settings, Redactor::new());
        drop(exporter.tracer());
        assert_eq!(exporter.shared.lock().thread, ThreadState::NotStarted);
        exporter.close(Duration::from_secs(600));
    }
}
