//! Calls between the pipeline and the logging thread, in buffers that both sides use again and again:
//! to log a call allocates nothing, and usually wakes nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::entry::CallRecord;
use super::packed::{Packed, PackedCall};

/// Maximum number of waiting lines.
const MAX_LINES: usize = 4_096;
/// Maximum size of their texts, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// From this number of lines on, the thread does not pause.
const MANY: usize = MAX_LINES / 2;
/// Buffers with more capacity than this are freed after use.
const KEPT: usize = 1024 * 1024;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct AuditQueue {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    thread: Thread,
    is_closed: bool,
    /// Lines taken by the thread and not written yet.
    being_written: usize,
    /// Lines lost, and not recorded in the file yet.
    lost: u64,
    /// Lines lost since the start.
    lost_in_total: u64,
}

/// What the logging thread waits for.
#[derive(Debug, Default, PartialEq, Eq)]
enum Thread {
    #[default]
    Nothing,
    /// Any line.
    Line,
    /// Many lines, or the end of its pause.
    ManyLines,
}

/// What the logging thread takes at a time.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The texts of all lines.
    texts: String,
    lines: Vec<Line>,
    /// Notified once the lines are written.
    pub(super) flushes: Vec<oneshot::Sender<()>>,
}

#[derive(Debug)]
enum Line {
    Call(Packed),
    /// A line that was formatted by the caller, and its end in the texts.
    Whole(usize),
}

/// A line to be written.
pub(super) enum Waiting<'a> {
    /// A call, which must be formatted.
    Call(PackedCall<'a>),
    /// A whole line.
    Whole(&'a str),
}

impl Batch {
    /// Returns the lines in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = Waiting<'_>> {
        let mut start = 0;
        self.lines.iter().map(move |line| {
            let end = match line {
                Line::Call(packed) => start + packed.len(),
                Line::Whole(end) => *end,
            };
            let texts = self.texts.get(start..end).unwrap_or_default();
            start = end;
            match line {
                Line::Call(packed) => Waiting::Call(PackedCall::new(packed, texts)),
                Line::Whole(_) => Waiting::Whole(texts),
            }
        })
    }

    fn has_room(&self) -> bool {
        self.lines.len() < MAX_LINES && self.texts.len() < MAX_BYTES
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.texts.shrink_to(KEPT);
        self.lines.clear();
        self.flushes.clear();
    }
}

impl AuditQueue {
    /// Adds a call.
    pub(super) fn push(&self, call: &CallRecord<'_>) {
        self.add(|batch| {
            let packed = Packed::new(call, &mut batch.texts);
            batch.lines.push(Line::Call(packed));
        });
    }

    /// Adds a whole line.
    pub(super) fn push_line(&self, line: &str) {
        self.add(|batch| {
            batch.texts.push_str(line);
            batch.lines.push(Line::Whole(batch.texts.len()));
        });
    }

    /// Adds a line, if there is room for it.
    fn add(&self, add: impl FnOnce(&mut Batch)) {
        let mut state = self.state();
        if !state.batch.has_room() {
            state.lost += 1;
            state.lost_in_total += 1;
            return;
        }
        add(&mut state.batch);
        let is_awaited = match state.thread {
            Thread::Nothing => false,
            Thread::Line => true,
            Thread::ManyLines => state.batch.lines.len() == MANY,
        };
        drop(state);
        if is_awaited {
            self.work.notify_one();
        }
    }

    /// Returns how many lines wait to be written, and how many were lost.
    pub(super) fn backlog(&self) -> (u64, u64) {
        let state = self.state();
        ((state.batch.lines.len() + state.being_written) as u64, state.lost_in_total)
    }

    /// Requests that everything is written at once. Returns what is notified of that; `None` if
    /// everything is in the file.
    pub(super) fn flush(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state();
        if state.batch.lines.is_empty() && state.being_written == 0 && state.lost == 0 {
            return None;
        }
        let (done, is_done) = oneshot::channel();
        state.batch.flushes.push(done);
        drop(state);
        self.work.notify_one();
        Some(is_done)
    }

    /// Ends the thread once everything is written.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.work.notify_one();
    }

    /// Replaces `batch`, which was written, by the next one. Waits for it, and first for a pause to
    /// collect lines. Returns the number of lines that were lost; `None` at the end.
    pub(super) fn next(&self, batch: &mut Batch, pause: Duration) -> Option<u64> {
        batch.clear();
        let mut state = self.state();
        state.being_written = 0;
        if state.can_wait() && state.batch.lines.len() < MANY {
            state.thread = Thread::ManyLines;
            let can_wait = |state: &mut State| state.can_wait() && state.batch.lines.len() < MANY;
            let waited = self.work.wait_timeout_while(state, pause, can_wait);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.can_wait() && state.batch.lines.is_empty() {
            state.thread = Thread::Line;
            let can_wait = |state: &mut State| state.can_wait() && state.batch.lines.is_empty();
            let waited = self.work.wait_while(state, can_wait);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.thread = Thread::Nothing;
        std::mem::swap(&mut state.batch, batch);
        state.being_written = batch.lines.len();
        let is_over = batch.lines.is_empty() && batch.flushes.is_empty() && state.is_closed;
        (!is_over).then(|| std::mem::take(&mut state.lost))
    }

    /// Returns the number of lines that were lost, at the end.
    pub(super) fn lost(&self) -> u64 {
        std::mem::take(&mut self.state().lost)
    }

    /// Adds lines that could not be written to those that were lost.
    pub(super) fn add_lost(&self, lines: u64) {
        self.state().lost += lines;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether nothing must be written at once.
    fn can_wait(&self) -> bool {
        !self.is_closed && self.batch.flushes.is_empty()
    }
}
