//! Writes log lines to stderr on a thread of its own: however slow the reader of stderr is, and
//! however much is logged, no task waits for it.

use std::io::{self, IsTerminal as _, stderr};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many bytes may wait to be written. Lines beyond that are dropped and counted.
const MAX_PENDING: usize = 4 * 1024 * 1024;

/// Where lines go while a prompt is on the terminal: on stderr, they would be written into it.
static ABOVE_PROMPT: Mutex<Option<SyncSender<String>>> = Mutex::new(None);

/// Shows the lines above a prompt from now on, or on stderr again.
pub(crate) fn show_above_prompt(printer: Option<SyncSender<String>>) {
    *ABOVE_PROMPT.lock().unwrap_or_else(PoisonError::into_inner) = printer;
}

/// Writes lines above the prompt. Those that do not fit in its queue are dropped.
fn write_above_prompt(lines: &[u8]) -> bool {
    let printer = ABOVE_PROMPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(printer) = &*printer else { return false };
    if !stderr().is_terminal() {
        return false;
    }
    for line in String::from_utf8_lossy(lines).lines() {
        let _ = printer.try_send(line.to_owned());
    }
    true
}

/// A writer that never blocks. Clones share the thread, which starts with the first line.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Writes the line that reports dropped ones.
    report: fn(u64) -> String,
}

#[derive(Default)]
struct State {
    pending: Vec<u8>,
    /// How many lines were dropped since the last report.
    dropped: u64,
    is_writing: bool,
    has_thread: bool,
}

impl LogWriter {
    /// Creates a writer to stderr.
    pub(crate) fn new(report: fn(u64) -> String) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { state, changed, report }))
    }

    /// Waits until everything is written, for a limited time: the reader may be stuck.
    pub(crate) fn finish(&self, limit: Duration) {
        let is_busy = |state: &mut State| !state.pending.is_empty() || state.is_writing;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), limit, is_busy);
        drop(waited);
    }

    fn start_thread(&self, state: &mut State) {
        let shared = Arc::clone(&self.0);
        // It runs as long as the process: a write that blocks cannot be cancelled.
        let thread = std::thread::Builder::new().name("log".to_owned());
        state.has_thread = thread.spawn(move || shared.write_all(stderr())).is_ok();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues bytes; drops them if too many are waiting.
    fn push(&self, state: &mut State, bytes: &[u8]) {
        if state.pending.len() + bytes.len() > MAX_PENDING {
            state.dropped += 1;
            return;
        }
        if state.dropped > 0 {
            let report = (self.report)(std::mem::take(&mut state.dropped));
            state.pending.extend_from_slice(report.as_bytes());
        }
        state.pending.extend_from_slice(bytes);
    }

    /// Writes what is queued, endlessly. The lock is not held while writing.
    fn write_all(&self, mut to: impl io::Write) {
        let mut writing = Vec::new();
        let mut state = self.lock();
        loop {
            state.is_writing = false;
            self.changed.notify_all();
            let is_idle = |state: &mut State| state.pending.is_empty();
            let waited = self.changed.wait_while(state, is_idle);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut state.pending, &mut writing);
            state.is_writing = true;
            drop(state);
            // A failure to write the log cannot be reported anywhere.
            if !write_above_prompt(&writing) {
                let _ = to.write_all(&writing);
            }
            writing.clear();
            state = self.lock();
        }
    }
}

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if !state.has_thread {
            self.start_thread(&mut state);
        }
        if !state.has_thread {
            drop(state);
            stderr().write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.0.push(&mut state, bytes);
        drop(state);
        self.0.changed.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_dropped_and_counted() {
        let writer = LogWriter::new(|dropped| format!("{dropped} dropped\n"));
        let mut state = State::default();
        let line = vec![b'x'; MAX_PENDING / 2];
        for _ in 0..5 {
            writer.0.push(&mut state, &line);
        }
        assert_eq!((state.pending.len(), state.dropped), (MAX_PENDING, 3));
        state.pending.clear();
        writer.0.push(&mut state, b"next\n");
        assert_eq!(String::from_utf8(state.pending).unwrap(), "3 dropped\nnext\n");
    }
}
