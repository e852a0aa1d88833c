//! The audit log (N3): one line of JSON for each call, in a private file.
//!
//! A call only packs what is to be logged; a thread of its own makes the lines and writes them. The queue between
//! them is bounded; when it is full, lines are lost rather than calls held up, and the file says how many.

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

use packed::Packed;
use writer::Writer;

/// How many lines may wait to be written.
const QUEUE: usize = 1_024;
/// Longer arguments do not wait to be written.
const MAX_PACKED: usize = 4 * 1024;
/// How long to wait for the disk at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// How the audit log is kept.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// Whether the arguments of calls are written down; otherwise only their hash is.
    pub with_arguments: bool,
    /// What must not be in them.
    pub redactor: Redactor,
    /// When the file is larger, it becomes `….1`, and a new one begins. One old file is kept.
    pub max_bytes: u64,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { with_arguments: false, redactor: Redactor::new(), max_bytes: 64 * 1024 * 1024 }
    }
}

/// The audit log. A clone writes to the same file; when the last is dropped, what is queued is still
/// written, but only [`Audit::flush`] waits for that.
#[derive(Debug, Clone)]
pub struct Audit(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    queue: mpsc::Sender<Message>,
    writer: Thread,
    tally: Arc<Tally>,
    with_arguments: bool,
    redactor: Redactor,
}

/// How many lines are not where they belong.
#[derive(Debug, Default)]
struct Tally {
    /// Recorded, and not in the file yet.
    waiting: AtomicU64,
    /// Given up, and the file does not say so yet.
    lost: AtomicU64,
}

enum Message {
    Call(Packed),
    /// A call with long arguments: they are not kept until there is time for them.
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl Tally {
    /// Whether all that was recorded is in the file.
    fn is_settled(&self) -> bool {
        let [waiting, lost] = [&self.waiting, &self.lost];
        waiting.load(Ordering::Acquire) == 0 && lost.load(Ordering::Relaxed) == 0
    }
}

impl Audit {
    /// Nothing is logged.
    pub fn none() -> Self {
        Self(None)
    }

    /// Appends to a file, which is made if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or no thread can be started.
    pub fn to_file(path: impl Into<PathBuf>, options: AuditOptions) -> io::Result<Self> {
        let (queue, messages) = mpsc::channel(QUEUE);
        let tally = Arc::new(Tally::default());
        let shown = options.with_arguments.then(|| options.redactor.clone());
        let writer = Writer::open(path.into(), options.max_bytes, shown, Arc::clone(&tally))?;
        // It ends by itself when the last handle is gone and the queue is empty.
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let writer = thread.spawn(move || writer.run(messages))?.thread().clone();
        let AuditOptions { with_arguments, redactor, .. } = options;
        Ok(Self(Some(Arc::new(Log { queue, writer, tally, with_arguments, redactor }))))
    }

    /// Whether calls are logged at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Logs a call. Never waits.
    pub fn record(&self, call: &CallRecord<'_>) {
        let Some(log) = &self.0 else { return };
        let message = match call.arguments.len() <= MAX_PACKED {
            true => Message::Call(Packed::of(call)),
            false => {
                let mut line = String::new();
                call.write_line(&mut line, log.with_arguments.then_some(&log.redactor));
                Message::Line(line)
            }
        };
        log.tally.waiting.fetch_add(1, Ordering::Relaxed);
        if log.queue.try_send(message).is_err() {
            log.tally.lost.fetch_add(1, Ordering::Relaxed);
            log.tally.waiting.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits until all that was recorded so far is in the file, but not for a disk that hangs.
    /// Returns whether it is.
    pub async fn flush(&self) -> bool {
        let Some(log) = &self.0 else { return true };
        if log.tally.is_settled() {
            return true;
        }
        let (done, is_done) = oneshot::channel();
        let flush = async {
            let is_sent = log.queue.send(Message::Flush(done)).await.is_ok();
            // It may let lines gather.
            log.writer.unpark();
            is_sent && is_done.await.is_ok()
        };
        tokio::time::timeout(FLUSH_TIMEOUT, flush).await.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
