//! The thread that writes the audit log.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use openclaw_secrets::Redactor;
use tokio::sync::mpsc;

use super::{AuditCounters, Message};
use crate::appended::Appended;
use crate::clock::{LogClock, Rfc3339};

/// Maximum size of one write, in bytes.
const BATCH: usize = 64 * 1024;
/// Pause after a write, to collect lines: a wakeup and a write per line would cost a call more than
/// all our other overhead. The queue has room for the lines that arrive meanwhile.
const PAUSE: Duration = Duration::from_millis(2);
/// Timeout for the lock of other processes that write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Owner of the file.
pub(super) struct Writer {
    file: Appended,
    tally: Arc<AuditCounters>,
    /// Lines not written yet, and their number.
    batch: String,
    lines: u64,
    /// Reused buffer for one line.
    line: String,
    clock: LogClock,
    /// Redactor for the arguments, if those are logged.
    shown: Option<Redactor>,
    /// Whether the last write failed: the failure is reported once.
    is_failing: bool,
}

impl Writer {
    pub(super) fn open(
        path: PathBuf,
        max_bytes: u64,
        shown: Option<Redactor>,
        tally: Arc<AuditCounters>,
    ) -> io::Result<Self> {
        let mut older = path.clone().into_os_string();
        older.push(".1");
        let file = Appended::open(path, older.into(), max_bytes, PATIENCE)?;
        let batch = String::with_capacity(BATCH);
        let line = String::new();
        let clock = LogClock::now();
        Ok(Self { file, tally, batch, lines: 0, line, clock, shown, is_failing: false })
    }

    /// Writes messages until all senders are dropped.
    pub(super) fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        while let Some(message) = messages.blocking_recv() {
            self.clock.read_again();
            self.take(message);
            while let Ok(message) = messages.try_recv() {
                self.take(message);
            }
            self.write_batch();
            // A flush unparks the thread.
            std::thread::park_timeout(PAUSE);
        }
        self.record_losses();
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Call(call) => {
                let mut line = std::mem::take(&mut self.line);
                line.clear();
                call.record().write_line(&mut line, &mut self.clock, self.shown.as_ref());
                self.take_line(&line);
                self.line = line;
            }
            Message::Line(line) => self.take_line(&line),
            Message::Flush(done) => {
                self.write_batch();
                self.record_losses();
                // The requester may be gone.
                let _ = done.send(());
            }
        }
    }

    fn take_line(&mut self, line: &str) {
        let length = self.batch.len() + line.len();
        if length > BATCH || self.file.is_full_with(length as u64) {
            self.write_batch();
        }
        self.batch.push_str(line);
        self.lines += 1;
    }

    fn write_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.record_losses();
        let mut batch = std::mem::take(&mut self.batch);
        if !self.write(&batch) {
            self.tally.lost.fetch_add(self.lines, Ordering::Relaxed);
        }
        self.tally.waiting.fetch_sub(self.lines, Ordering::Release);
        batch.clear();
        (self.batch, self.lines) = (batch, 0);
    }

    fn record_losses(&mut self) {
        let lost = self.tally.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            if !self.is_failing {
                tracing::warn!(lost, "audit log lines were lost");
            }
            let time = Rfc3339(SystemTime::now());
            if !self.write(&format!("{{\"time\":\"{time}\",\"lost\":{lost}}}\n")) {
                self.tally.lost.fetch_add(lost, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether the write succeeded.
    fn write(&mut self, lines: &str) -> bool {
        let written = self.file.add(lines.as_bytes());
        if let Err(error) = &written
            && !self.is_failing
        {
            let file = self.file.path().display();
            tracing::error!(%file, %error, "cannot write the audit log");
        }
        self.is_failing = written.is_err();
        written.is_ok()
    }
}
