//! The audit log (N3): one line of JSON per call, in a private file.
//!
//! A call only packs its record; a separate thread formats and writes the lines. The queue between
//! them is bounded; when it is full, lines are dropped instead of delaying calls, and the file
//! records how many.

mod entry;
mod packed;
mod queue;
mod writer;

pub use entry::{AuditOutcome, CallRecord};

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_secrets::Redactor;

use crate::clock::LogClock;
use queue::AuditQueue;
use writer::AuditWriter;

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
    queue: Arc<AuditQueue>,
    with_arguments: bool,
    redactor: Redactor,
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close();
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
        let queue = Arc::new(AuditQueue::default());
        let shown = options.with_arguments.then(|| options.redactor.clone());
        let writer = AuditWriter::open(path.into(), options.max_bytes, shown, Arc::clone(&queue))?;
        // The thread exits when the last handle is dropped and the queue is empty.
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || writer.run())?;
        let AuditOptions { with_arguments, redactor, .. } = options;
        Ok(Self(Some(Arc::new(Log { queue, with_arguments, redactor }))))
    }

    /// Returns whether calls are logged.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Logs a call. Does not wait for the file.
    pub fn record(&self, call: &CallRecord<'_>) {
        let Some(log) = &self.0 else { return };
        if call.arguments.len() <= MAX_PACKED {
            return log.queue.push(call);
        }
        let (mut labels, mut line) = (String::new(), String::new());
        call.write_labels(&mut labels);
        let shown = log.with_arguments.then_some(&log.redactor);
        call.write_line(&mut line, &mut LogClock::now(), &labels, shown);
        log.queue.push_line(&line);
    }

    /// Returns how many lines wait to be written, and how many were lost because the queue was full.
    pub fn backlog(&self) -> (u64, u64) {
        self.0.as_ref().map_or((0, 0), |log| log.queue.backlog())
    }

    /// Waits until everything recorded so far is in the file, with a timeout. Returns whether it
    /// is.
    pub async fn flush(&self) -> bool {
        let Some(log) = &self.0 else { return true };
        let Some(written) = log.queue.flush() else { return true };
        matches!(tokio::time::timeout(FLUSH_TIMEOUT, written).await, Ok(Ok(())))
    }
}

#[cfg(test)]
mod tests;
