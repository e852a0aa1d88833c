//! A bounded queue of records, and the thread that sends them in batches.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use openclaw_secrets::Redactor;

use super::http::{Collector, SendError};
use super::settings::{Batches, Settings};

/// How often a batch is sent that the collector cannot take right now.
const TRIES: u32 = 3;
/// The delay before it is sent again, unless the collector names one, and the longest one.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What is sent to a collector.
pub trait Record: fmt::Debug + Send + Sized + 'static {
    /// What they are called in messages, in the plural.
    const NAME: &'static str;

    /// Writes a request with these records. The redactor is applied to every text.
    fn request(batch: &[Self], resource: &[(String, String)], redactor: &Redactor) -> Vec<u8>;
}

/// The queue, its thread, and the settings of both.
#[derive(Debug)]
pub(super) struct ExportQueue<R> {
    pub(super) settings: Settings,
    pub(super) redactor: Redactor,
    state: Mutex<State<R>>,
    /// Notified when a batch is full, or when the queue is closed.
    wake: Condvar,
    /// Notified when everything is sent.
    done: Condvar,
}

#[derive(Debug)]
struct State<R> {
    queue: Vec<R>,
    /// Records of the batch that is being sent.
    sending: usize,
    /// Records that no collector has got.
    dropped: u64,
    thread: ThreadState,
    is_closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum ThreadState {
    NotStarted,
    Running,
    Ended,
}

// No message is logged while the state is locked: it may be a record of this very queue.
impl<R: Record> ExportQueue<R> {
    pub(super) fn new(settings: Settings, redactor: Redactor) -> Arc<Self> {
        let thread = ThreadState::NotStarted;
        let state = State { queue: Vec::new(), sending: 0, dropped: 0, thread, is_closed: false };
        let (wake, done) = (Condvar::new(), Condvar::new());
        Arc::new(Self { settings, redactor, state: Mutex::new(state), wake, done })
    }

    /// Adds a record, or drops it if the queue is full. The first one starts the thread.
    pub(super) fn push(self: &Arc<Self>, record: R) {
        let mut state = self.lock();
        if state.is_closed || state.queue.len() >= self.settings.batches.queue {
            state.dropped += 1;
            return;
        }
        state.queue.push(record);
        if state.queue.len() == self.settings.batches.size {
            self.wake.notify_one();
        }
        if state.thread == ThreadState::NotStarted {
            state.thread = ThreadState::Running;
            drop(state);
            self.start();
        }
    }

    fn start(self: &Arc<Self>) {
        let running = Running(Arc::clone(self));
        let thread = std::thread::Builder::new().name(R::NAME.to_owned());
        if let Err(error) = thread.spawn(move || running.0.run()) {
            tracing::warn!(%error, "cannot start the thread that sends {}", R::NAME);
        }
    }

    /// The number of records that no collector has got.
    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Sends what is queued, for at most this long. Records that are added later are dropped.
    pub(super) fn close(&self, patience: Duration) {
        let mut state = self.lock();
        state.is_closed = true;
        self.wake.notify_all();
        let is_running = |state: &mut State<R>| state.thread == ThreadState::Running;
        let waited = self.done.wait_timeout_while(state, patience, is_running);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let lost = state.dropped + (state.queue.len() + state.sending) as u64;
        drop(state);
        if lost > 0 {
            tracing::warn!(lost, "{} were not sent to the collector", R::NAME);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a batch; `None` if there will be no more.
    fn next_batch(&self) -> Option<Vec<R>> {
        let Batches { delay, size, .. } = self.settings.batches;
        let is_early = |state: &mut State<R>| !state.is_closed && state.queue.len() < size;
        let waited = self.wake.wait_timeout_while(self.lock(), delay, is_early);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_closed && state.queue.is_empty() {
            return None;
        }
        state.sending = state.queue.len().min(size);
        let end = state.sending;
        Some(state.queue.drain(..end).collect())
    }

    /// Waits before a batch is sent again, unless the queue is closed. Returns whether to send it.
    fn pause(&self, delay: Duration) -> bool {
        let is_open = |state: &mut State<R>| !state.is_closed;
        let waited = self.wake.wait_timeout_while(self.lock(), delay, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Sends batches until the queue is closed.
    fn run(&self) {
        let mut collector = match Collector::new(&self.settings) {
            Ok(collector) => collector,
            Err(error) => {
                tracing::warn!(%error, "cannot send {}", R::NAME);
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
            let body = R::request(&batch, &self.settings.resource, &self.redactor);
            let sent = self.send(&mut collector, &body);
            self.sent(&sent);
            match sent {
                Ok(()) if is_failing => {
                    is_failing = false;
                    let collector = self.settings.place();
                    tracing::info!(%collector, "{} are sent again", R::NAME);
                }
                Ok(()) => {}
                Err(error) => {
                    // Once per outage: a collector may be down for days.
                    if !std::mem::replace(&mut is_failing, true) {
                        let collector = self.settings.place();
                        tracing::warn!(
                            %collector, %error, "{} are not sent to the collector", R::NAME
                        );
                    }
                }
            }
        }
    }

    /// Counts the records of a batch that was sent, or was not.
    fn sent(&self, sent: &Result<(), SendError>) {
        let mut state = self.lock();
        let records = std::mem::take(&mut state.sending);
        if sent.is_err() {
            state.dropped += records as u64;
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

/// The thread. Dropping it marks it as ended, also after a panic.
struct Running<R: Record>(Arc<ExportQueue<R>>);

impl<R: Record> Drop for Running<R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.thread = ThreadState::Ended;
        state.is_closed = true;
        self.0.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::settings::Signal;
    use super::super::settings::tests::read_for;
    use super::super::{LogRecord, SpanExporter};
    use super::*;
    use crate::record::SpanKind;

    fn settings(signal: Signal, variables: &[(&str, &str)]) -> Settings {
        read_for(signal, variables).0.unwrap()
    }

    #[test]
    fn a_collector_that_never_answers_costs_spans_and_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let settings = settings(
            Signal::Traces,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
                ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10"),
            ],
        );
        let exporter = SpanExporter::new(settings, Redactor::new());
        let tracer = exporter.tracer();
        for _ in 0..10_000 {
            drop(tracer.start("a", SpanKind::Internal, None));
        }
        let queued = exporter.0.lock().queue.len();
        assert!(queued <= 100, "{queued}");
        // One batch is being sent.
        assert!(exporter.dropped() >= 10_000 - 100 - 10, "{}", exporter.dropped());
        exporter.close(Duration::ZERO);
        drop(tracer.start("late", SpanKind::Internal, None));
        assert!(exporter.0.lock().queue.len() <= 100);
    }

    #[test]
    fn nothing_runs_before_the_first_record() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
        let spans = ExportQueue::<crate::SpanRecord>::new(
            settings(Signal::Traces, &[endpoint]),
            Redactor::new(),
        );
        let logs = [endpoint, ("OTEL_LOGS_EXPORTER", "otlp")];
        let logs = ExportQueue::<LogRecord>::new(settings(Signal::Logs, &logs), Redactor::new());
        assert_eq!(spans.lock().thread, ThreadState::NotStarted);
        assert_eq!(logs.lock().thread, ThreadState::NotStarted);
        spans.close(Duration::from_secs(600));
        logs.close(Duration::from_secs(600));
    }
}
