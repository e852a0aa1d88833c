//! Pending calls and their ids.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call_error::CallError;
use super::fast_lane::{TimeLimits, WorkId};
use super::peek::number;
use super::progress::ProgressWatcher;
use crate::wire::json::{Json, JsonRef};

/// Our ids start here: `rmcp` counts from zero and never gets this far. All stay below 2^53, which
/// every JSON implementation can represent.
const BASE: u64 = 1 << 40;
const SLOT_BITS: u32 = 16;
const GENERATIONS: u64 = 1 << 23;
/// How many calls are remembered that ended without a response.
const MAX_ABANDONED: usize = 4_096;

/// The id of a call: a slot and a generation, so that a late response does not match a newer call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId(u64);

impl CallId {
    /// The id of no call.
    pub(super) const NONE: Self = Self(0);

    /// Parses the id of a message, if it is one of ours.
    pub(super) fn parse(id: &RawValue) -> Option<Self> {
        Self::of_number(number(id)?)
    }

    /// Returns the id with this number, if it is one of ours.
    pub(super) fn of_number(id: u64) -> Option<Self> {
        (id >= BASE).then_some(Self(id))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    fn slot(self) -> usize {
        usize::try_from(self.0 & ((1 << SLOT_BITS) - 1)).unwrap_or(usize::MAX)
    }
}

/// The outcome of a call: the server's result, or why there is none.
pub(super) type CallReply = Result<Json, Fault>;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server's error, as raw JSON.
    Error(Box<RawValue>),
    /// Invalid JSON.
    Unreadable,
    /// The call timed out after this time.
    TimedOut(Duration),
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(error) => Self::Rpc(error),
            Fault::Unreadable => Self::Unreadable { body: String::new() },
            Fault::TimedOut(after) => Self::TimedOut(after),
        }
    }
}

/// Receives the response to a call that no future waits for. If it is dropped, the call was cancelled.
pub trait OnReply: Send {
    /// Handles the response to the call with this number, which was received at `now`. Runs on the
    /// task that reads the server, so it must not block.
    fn reply(self: Box<Self>, call: u64, reply: Result<JsonRef<'_>, CallError>, now: Instant);
}

/// What gets the response to a call.
pub(super) enum Waiter {
    /// A future.
    Future(oneshot::Sender<CallReply>),
    /// A function.
    Function(Box<dyn OnReply>),
}

/// A call that no future waits for and that has timed out.
pub(super) struct Expired {
    pub(super) id: CallId,
    pub(super) call: Box<dyn OnReply>,
    pub(super) after: Duration,
}

struct Waiting {
    id: CallId,
    /// The caller; `None` once the call has timed out.
    waiter: Option<Waiter>,
    /// When the call times out; `None` if the caller enforces the timeout.
    due: Option<Due>,
    /// When the server last reported progress.
    progress: Option<Instant>,
    /// Receives the progress reports, if set.
    watcher: Option<ProgressWatcher>,
    /// The call among those in progress on the server, if they are tracked.
    work: Option<WorkId>,
}

struct Due {
    at: Instant,
    started: Instant,
    limits: TimeLimits,
}

impl Waiting {
    fn last_progress(
        &self,
        asked: usize,
        answered: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        match asked {
            0 => self.progress.max(answered),
            _ => Some(now),
        }
    }
}

/// The pending calls of a connection.
#[derive(Default)]
pub(super) struct PendingCalls {
    slots: Vec<Option<Waiting>>,
    free: Vec<usize>,
    generation: u64,
    /// When to check for timed-out calls; `None` if no timeout is pending.
    next_look: Option<Instant>,
    /// Number of requests from the server that the user is answering.
    asked: usize,
    /// When the last of them was answered.
    answered: Option<Instant>,
    /// Calls that ended here without a response, oldest first: the server may still process them.
    abandoned: VecDeque<(CallId, WorkId)>,
    /// Those whose response has arrived since.
    responded: Vec<WorkId>,
}

impl PendingCalls {
    /// Opens a call that a future waits for; `None` if the limit is reached.
    pub(super) fn open(&mut self) -> Option<(CallId, oneshot::Receiver<CallReply>)> {
        let (answer, receiver) = oneshot::channel();
        let id = self.has_room().then(|| self.open_for(|_| Waiter::Future(answer)))?;
        Some((id, receiver))
    }

    /// Returns whether a call can be opened.
    pub(super) fn has_room(&self) -> bool {
        self.count() < 1 << SLOT_BITS
    }

    /// Opens a call for the waiter that `waiter` returns. There must be room.
    pub(super) fn open_for(&mut self, waiter: impl FnOnce(CallId) -> Waiter) -> CallId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.generation = (self.generation + 1) % GENERATIONS;
        let id = CallId(BASE | self.generation << SLOT_BITS | slot as u64);
        let waiter = Some(waiter(id));
        let (due, progress, watcher, work) = (None, None, None, None);
        self.slots[slot] = Some(Waiting { id, waiter, due, progress, watcher, work });
        id
    }

    /// Closes a call; `None` if it is not pending.
    pub(super) fn close(&mut self, id: CallId) -> Option<Option<Waiter>> {
        self.remove(id).map(|waiting| waiting.waiter)
    }

    fn remove(&mut self, id: CallId) -> Option<Waiting> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.as_ref().is_none_or(|waiting| waiting.id != id) {
            return None;
        }
        self.free.push(id.slot());
        slot.take()
    }

    /// Closes a call whose response has arrived; `None` if nobody waits for it. A late response shows
    /// that the server no longer processes the call.
    pub(super) fn respond(&mut self, id: CallId) -> Option<Waiter> {
        match self.remove(id) {
            Some(Waiting { waiter: Some(waiter), .. }) => return Some(waiter),
            // It has timed out just now.
            Some(Waiting { work, .. }) => self.responded.extend(work),
            None => {
                let found = self.abandoned.iter().position(|(abandoned, _)| *abandoned == id);
                let abandoned = found.and_then(|at| self.abandoned.remove(at));
                self.responded.extend(abandoned.map(|(_, work)| work));
            }
        }
        None
    }

    /// Closes a call that ends without a response; `None` if it is not pending.
    pub(super) fn abandon(&mut self, id: CallId) -> Option<Option<Waiter>> {
        let Waiting { waiter, work, .. } = self.remove(id)?;
        self.remember(id, work);
        Some(waiter)
    }

    fn remember(&mut self, id: CallId, work: Option<WorkId>) {
        let Some(work) = work else { return };
        if self.abandoned.len() == MAX_ABANDONED {
            self.abandoned.pop_front();
        }
        self.abandoned.push_back((id, work));
    }

    /// Returns the calls whose response has arrived after they had ended, once each.
    pub(super) fn late_responses(&mut self) -> Vec<WorkId> {
        std::mem::take(&mut self.responded)
    }

    /// Sets which call this is among those in progress on the server.
    pub(super) fn track(&mut self, id: CallId, work: Option<WorkId>) {
        if let Some(waiting) = self.waiting(id) {
            waiting.work = work;
        }
    }

    /// Sets the timeout of a call that starts now. Returns whether it is earlier than the next
    /// check.
    pub(super) fn limit(&mut self, id: CallId, now: Instant, limits: TimeLimits) -> bool {
        let Some(waiting) = self.waiting(id) else { return false };
        let at = now + limits.timeout;
        waiting.due = Some(Due { at, started: now, limits });
        let is_sooner = self.next_look.is_none_or(|next| at < next);
        if is_sooner {
            self.next_look = Some(at);
        }
        is_sooner
    }

    /// Completes the calls that have timed out; the futures that wait for them then close them. Returns
    /// the time of the next check, and closes and returns the calls that no future waits for.
    pub(super) fn expire(&mut self, now: Instant) -> (Option<Instant>, Vec<Expired>) {
        let asked = self.asked;
        let answered = self.answered;
        let mut next_look = None;
        let mut expired = Vec::new();
        let mut abandoned = Vec::new();
        for slot in &mut self.slots {
            let Some(waiting) = slot else { continue };
            let progress = waiting.last_progress(asked, answered, now);
            let Some(due) = waiting.due.as_mut().filter(|_| waiting.waiter.is_some()) else {
                continue;
            };
            if due.at <= now {
                let Some(left) = due.limits.left(due.started, progress, now) else {
                    let id = waiting.id;
                    let after = now.saturating_duration_since(due.started);
                    match waiting.waiter.take() {
                        Some(Waiter::Future(answer)) => {
                            let _ = answer.send(Err(Fault::TimedOut(after)));
                        }
                        Some(Waiter::Function(call)) => {
                            abandoned.push((id, waiting.work));
                            *slot = None;
                            self.free.push(id.slot());
                            expired.push(Expired { id, call, after });
                        }
                        None => {}
                    }
                    continue;
                };
                due.at = now + left;
            }
            next_look = Some(next_look.map_or(due.at, |next: Instant| next.min(due.at)));
        }
        self.next_look = next_look;
        for (id, work) in abandoned {
            self.remember(id, work);
        }
        (next_look, expired)
    }

    /// Sends further progress reports of the call to `watcher`.
    pub(super) fn watch(&mut self, id: CallId, watcher: &ProgressWatcher) {
        if let Some(waiting) = self.waiting(id) {
            waiting.watcher = Some(watcher.clone());
        }
    }

    /// Records a progress report; returns the watcher of the call.
    pub(super) fn progressed(&mut self, id: CallId) -> Option<ProgressWatcher> {
        let waiting = self.waiting(id)?;
        waiting.progress = Some(Instant::now());
        waiting.watcher.clone()
    }

    /// Tells the watcher of the call that the server has closed the stream of its response for now.
    pub(super) fn paused(&mut self, id: u64, retry: Duration) {
        let waiting = CallId::of_number(id).and_then(|id| self.waiting(id));
        if let Some(watcher) = waiting.and_then(|waiting| waiting.watcher.as_ref()) {
            watcher.pause(retry);
        }
    }

    fn waiting(&mut self, id: CallId) -> Option<&mut Waiting> {
        self.slots.get_mut(id.slot())?.as_mut().filter(|waiting| waiting.id == id)
    }

    /// Returns when the server last reported progress of a call. While the user answers a request
    /// from the server this is now, because the server cannot proceed.
    pub(super) fn last_progress(&self, id: CallId) -> Option<Instant> {
        let waiting = self.slots.get(id.slot())?.as_ref().filter(|waiting| waiting.id == id)?;
        waiting.last_progress(self.asked, self.answered, Instant::now())
    }

    /// Records that the user was asked to answer a request from the server.
    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    /// Records that such a request was answered or dropped.
    pub(super) fn answered(&mut self) {
        self.asked = self.asked.saturating_sub(1);
        self.answered = Some(Instant::now());
    }

    /// Drops all calls, which wakes the futures that wait for them with an error. Returns those that no
    /// future waits for.
    pub(super) fn clear(&mut self) -> Vec<(CallId, Box<dyn OnReply>)> {
        let all = std::mem::take(self).slots.into_iter().flatten();
        let functions = all.filter_map(|waiting| match waiting.waiter {
            Some(Waiter::Function(call)) => Some((waiting.id, call)),
            Some(Waiter::Future(_)) | None => None,
        });
        functions.collect()
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_late_response_does_not_match_a_new_call() {
        let mut calls = PendingCalls::default();
        let (first, _first_answer) = calls.open().unwrap();
        assert!(calls.close(first).is_some());
        let (second, _second_answer) = calls.open().unwrap();
        assert_ne!(first, second, "the slot is reused, the id is not");
        assert!(calls.close(first).is_none());
        assert!(calls.close(second).is_some());
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn a_late_response_ends_the_work_on_an_abandoned_call() {
        let mut calls = PendingCalls::default();
        let ids: Vec<CallId> = (0..3)
            .map(|work| {
                let (id, _answer) = calls.open().unwrap();
                calls.track(id, Some(WorkId(work)));
                id
            })
            .collect();
        assert!(calls.abandon(ids[0]).is_some());
        assert!(calls.abandon(ids[1]).is_some());
        assert!(calls.respond(ids[2]).is_some(), "somebody waits for this one");
        assert_eq!(calls.late_responses(), []);
        assert!(calls.respond(ids[1]).is_none());
        assert!(calls.respond(ids[1]).is_none(), "the second response is ignored");
        assert_eq!(calls.late_responses(), [WorkId(1)]);
        assert_eq!(calls.late_responses(), []);
    }

    #[test]
    fn ids_are_recognised_as_numbers_and_as_strings_and_those_of_others_are_not() {
        let mut calls = PendingCalls::default();
        let (id, _answer) = calls.open().unwrap();
        assert_eq!(CallId::parse(&raw(&id.number().to_string())), Some(id));
        assert_eq!(CallId::parse(&raw(&format!("\"{}\"", id.number()))), Some(id));
        for other in ["0", "\"abc\"", "null", "-1", "1.5", "[]"] {
            assert_eq!(CallId::parse(&raw(other)), None);
        }
    }

    #[test]
    fn calls_do_not_time_out_while_the_user_answers_the_server() {
        let mut calls = PendingCalls::default();
        let (id, _answer) = calls.open().unwrap();
        assert_eq!(calls.last_progress(id), None);
        calls.asked();
        calls.asked();
        calls.answered();
        let first = calls.last_progress(id).unwrap();
        assert!(calls.last_progress(id).unwrap() >= first, "one is still open");
        calls.answered();
        let last = calls.last_progress(id);
        assert!(last.is_some() && calls.last_progress(id) == last, "the timeout runs from here");
    }

    #[test]
    fn the_number_of_pending_calls_is_bounded() {
        let mut calls = PendingCalls::default();
        let open: Vec<_> = std::iter::from_fn(|| calls.open()).collect();
        assert_eq!(open.len(), 1 << SLOT_BITS);
        calls.clear();
        assert!(calls.open().is_some());
    }
}
