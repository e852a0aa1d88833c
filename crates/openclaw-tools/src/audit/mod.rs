//! The audit log (N3): one line of JSON per call, in a private file.
//!
//! A call only packs its record; a separate thread formats and writes the lines. The queue between
//! them is bounded; when it is full, lines are dropped instead of delaying calls, and the file
//! records how many.

mod entry;
mod packed;
mod writer;

pub use entry::{AuditOutcome, CallRecord};

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

use openclaw_secrets::Redactor;
use tokio::sync::{mpsc, oneshot};

use crate::clock::LogClock;
use packed::Packed;
use writer::Writer;

/// Capacity of the queue, in lines.
const QUEUE: usize = 1_024;
/// Maximum size of arguments in the queue; longer ones are formatted by the caller.
const MAX_PACKED: usize = 4 * 1024;
/// Timeout of a flush.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of the audit log.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// Whether arguments are logged; otherwise only their hash is.
    pub with_arguments: bool,
    /// Secrets to remove from the arguments.
    pub redactor: Redactor,
    /// Size limit in bytes: a larger file is renamed to `….1`, and a new one is started. One old
    /// file is kept.
    pub max_bytes: u64,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { with_arguments: false, redactor: Redactor::new(), max_bytes: 64 * 1024 * 1024 }
    }
}

/// The audit log. Clones write to the same file; when the last one is dropped, queued lines are
/// still written, but only [`Audit::flush`] waits for that.
#[derive(Debug, Clone)]
pub struct Audit(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    queue: mpsc::Sender<Message>,
    writer: Thread,
    tally: Arc<AuditCounters>,
    with_arguments: bool,
    redactor: Redactor,
}

/// Counters of lines that are not in the file.
#[derive(Debug, Default)]
struct AuditCounters {
    /// Recorded, and not written yet.
    waiting: AtomicU64,
    /// Lost, and not recorded in the file yet.
    lost: AtomicU64,
    /// Lost since the start.
    lost_in_total: AtomicU64,
}

enum Message {
    Call(Packed),
    /// A call with long arguments, which are not kept in the queue.
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl AuditCounters {
    /// Returns whether everything recorded is in the file.
    fn is_settled(&self) -> bool {
        let [waiting, lost] = [&self.waiting, &self.lost];
        waiting.load(Ordering::Acquire) == 0 && lost.load(Ordering::Relaxed) == 0
    }
}

impl Audit {
    /// Creates a log that records nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Appends to a file, creating it if necessary.
    ///
    /// # Errors
    /// If it cannot be opened, or no thread can be spawned.
    pub fn to_file(path: impl Into<PathBuf>, options: AuditOptions) -> io::Result<Self> {
        let (queue, messages) = mpsc::channel(QUEUE);
        let tally = Arc::new(AuditCounters::default());
        let shown = options.with_arguments.then(|| options.redactor.clone());
        let writer = Writer::open(path.into(), options.max_bytes, shown, Arc::clone(&tally))?;
        // The thread exits when the last handle is dropped and the queue is empty.
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let writer = thread.spawn(move || writer.run(messages))?.thread().clone();
        let AuditOptions { with_arguments, redactor, .. } = options;
        Ok(Self(Some(Arc::new(Log { queue, writer, tally, with_arguments, redactor }))))
    }

    /// Returns whether calls are logged.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Logs a call. Never blocks.
    pub fn record(&self, call: &CallRecord<'_>) {
        let Some(log) = &self.0 else { return };
        let message = match call.arguments.len() <= MAX_PACKED {
            true => Message::Call(Packed::of(call)),
            false => {
                let mut line = String::new();
                let shown = log.with_arguments.then_some(&log.redactor);
                call.write_line(&mut line, &mut LogClock::now(), shown);
                Message::Line(line)
            }
        };
        log.tally.waiting.fetch_add(1, Ordering::Relaxed);
        if log.queue.try_send(message).is_err() {
            log.tally.lost.fetch_add(1, Ordering::Relaxed);
            log.tally.lost_in_total.fetch_add(1, Ordering::Relaxed);
            log.tally.waiting.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns how many lines wait to be written, and how many were lost because the queue was full.
    pub fn backlog(&self) -> (u64, u64) {
        let Some(log) = &self.0 else { return (0, 0) };
        let [waiting, lost] = [&log.tally.waiting, &log.tally.lost_in_total];
        (waiting.load(Ordering::Relaxed), lost.load(Ordering::Relaxed))
    }

    /// Waits until everything recorded so far is in the file, with a timeout. Returns whether it
    /// is.
    pub async fn flush(&self) -> bool {
        let Some(log) = &self.0 else { return true };
        if log.tally.is_settled() {
            return true;
        }
        let (done, is_done) = oneshot::channel();
        let flush = async {
            let is_sent = log.queue.send(Message::Flush(done)).await.is_ok();
            // The writer may be pausing to collect lines.
            log.writer.unpark();
            is_sent && is_done.await.is_ok()
        };
        tokio::time::timeout(FLUSH_TIMEOUT, flush).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
