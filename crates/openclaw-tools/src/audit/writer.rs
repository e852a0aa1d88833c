//! The thread that writes the audit log.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use openclaw_secrets::Redactor;

use super::packed::{Labels, PackedCall};
use super::queue::{AuditQueue, Batch, Waiting};
use crate::appended::Appended;
use crate::clock::{LogClock, Rfc3339};

/// Maximum size of one write, in bytes.
const BATCH: usize = 64 * 1024;
/// Pause after a write, to collect lines: a wakeup and a write per line would cost a call more than
/// all our other overhead. It ends early if many lines arrive meanwhile.
const PAUSE: Duration = Duration::from_millis(2);
/// Timeout for the lock of other processes that write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Owner of the file.
pub(super) struct AuditWriter {
    file: Appended,
    queue: Arc<AuditQueue>,
    /// Lines not written yet, and their number.
    batch: String,
    lines: u64,
    clock: LogClock,
    formatted: FormattedLabels,
    /// Redactor for the arguments, if those are logged.
    shown: Option<Redactor>,
    /// Whether the last write failed: the failure is reported once.
    is_failing: bool,
}

/// The labels of the last call: those of the next one are mostly the same.
#[derive(Default)]
struct FormattedLabels {
    texts: String,
    labels: Option<Labels>,
    members: String,
}

impl FormattedLabels {
    /// Returns the labels of a call as members of a line.
    fn of(&mut self, call: &PackedCall<'_>) -> &str {
        let (texts, labels) = call.labels();
        if self.labels != Some(labels) || self.texts != texts {
            self.members.clear();
            call.record().write_labels(&mut self.members);
            (self.texts, self.labels) = (texts.to_owned(), Some(labels));
        }
        &self.members
    }
}

impl AuditWriter {
    pub(super) fn open(
        path: PathBuf,
        max_bytes: u64,
        shown: Option<Redactor>,
        queue: Arc<AuditQueue>,
    ) -> io::Result<Self> {
        let mut older = path.clone().into_os_string();
        older.push(".1");
        let file = Appended::open(path, older.into(), max_bytes, PATIENCE)?;
        let (batch, clock) = (String::with_capacity(BATCH), LogClock::now());
        let formatted = FormattedLabels::default();
        Ok(Self { file, queue, batch, lines: 0, clock, formatted, shown, is_failing: false })
    }

    /// Writes lines until the log is closed.
    pub(super) fn run(mut self) {
        let mut taken = Batch::default();
        while let Some(lost) = self.queue.next(&mut taken, PAUSE) {
            self.clock.read_again();
            self.record_losses(lost);
            for line in taken.lines() {
                self.take(line);
            }
            self.write_batch();
            for done in taken.flushes.drain(..) {
                // The requester may be gone.
                let _ = done.send(());
            }
        }
        self.record_losses(self.queue.lost());
    }

    fn take(&mut self, line: Waiting<'_>) {
        let start = self.batch.len();
        match line {
            Waiting::Call(call) => {
                let labels = self.formatted.of(&call);
                let (clock, shown) = (&mut self.clock, self.shown.as_ref());
                call.record().write_line(&mut self.batch, clock, labels, shown);
            }
            Waiting::Whole(line) => self.batch.push_str(line),
        }
        let length = self.batch.len();
        if start > 0 && (length > BATCH || self.file.is_full_with(length as u64)) {
            let line = self.batch.split_off(start);
            self.write_batch();
            self.batch.push_str(&line);
        }
        self.lines += 1;
    }

    fn write_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        if !self.write(&batch) {
            self.queue.add_lost(self.lines);
        }
        batch.clear();
        (self.batch, self.lines) = (batch, 0);
    }

    fn record_losses(&mut self, lost: u64) {
        if lost > 0 {
            if !self.is_failing {
                tracing::warn!(lost, "audit log lines were lost");
            }
            let time = Rfc3339(SystemTime::now());
            if !self.write(&format!("{{\"time\":\"{time}\",\"lost\":{lost}}}\n")) {
                self.queue.add_lost(lost);
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
