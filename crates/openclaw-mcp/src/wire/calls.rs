//! The calls that wait for an answer, and the ids they are known by.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call_error::CallError;
use super::fast_lane::Limits;
use super::peek::number;
use super::progress::Watcher;
use crate::wire::json::Json;

/// Our ids begin here: `rmcp` counts from zero and never comes this far. All stay below 2^53, which
/// every JSON implementation can represent.
const BASE: u64 = 1 << 40;
const SLOT_BITS: u32 = 16;
const GENERATIONS: u64 = 1 << 23;

/// The id of a call: a slot, and the generation of its use, so that a late answer meets nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId(u64);

impl CallId {
    /// The id that stands in a message, if it is one of ours.
    pub(super) fn parse(id: &RawValue) -> Option<Self> {
        Self::of_number(number(id)?)
    }

    /// The id of this number, if it is one of ours.
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

/// What a server answered: its result, or none.
pub(super) type CallReply = Result<Json, Fault>;

/// What a server answered in the place of a result.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error, as raw JSON.
    Error(Box<RawValue>),
    /// Something that is no JSON.
    Unreadable,
    /// Nothing for so long: the caller gives up.
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

struct Waiting {
    id: CallId,
    /// Whoever waits; none once the call has timed out.
    answer: Option<oneshot::Sender<CallReply>>,
    /// When it times out, unless its caller keeps the time itself.
    due: Option<Due>,
    /// When the server last told of progress.
    progress: Option<Instant>,
    /// Whoever wants to know what it tells; mostly nobody.
    watcher: Option<Watcher>,
}

struct Due {
    at: Instant,
    started: Instant,
    limits: Limits,
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

/// The calls that wait.
#[derive(Default)]
pub(super) struct Calls {
    slots: Vec<Option<Waiting>>,
    free: Vec<usize>,
    generation: u64,
    /// When is looked for calls that are due; never, as far as is known, if there is none.
    next_look: Option<Instant>,
    /// How many questions of the server somebody thinks about.
    asked: usize,
    /// When the last one was answered.
    answered: Option<Instant>,
}

impl Calls {
    /// A new call; none if far too many wait.
    pub(super) fn open(&mut self) -> Option<(CallId, oneshot::Receiver<CallReply>)> {
        let slot = self.free.pop().or_else(|| {
            let fits = self.slots.len() < 1 << SLOT_BITS;
            fits.then(|| {
                self.slots.push(None);
                self.slots.len() - 1
            })
        })?;
        self.generation = (self.generation + 1) % GENERATIONS;
        let id = CallId(BASE | self.generation << SLOT_BITS | slot as u64);
        let (answer, receiver) = oneshot::channel();
        let answer = Some(answer);
        self.slots[slot] = Some(Waiting { id, answer, due: None, progress: None, watcher: None });
        Some((id, receiver))
    }

    /// Ends a call; none if it does not wait (any more).
    pub(super) fn close(&mut self, id: CallId) -> Option<Option<oneshot::Sender<CallReply>>> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.as_ref().is_none_or(|waiting| waiting.id != id) {
            return None;
        }
        self.free.push(id.slot());
        slot.take().map(|waiting| waiting.answer)
    }

    /// Lets a call that begins now time out. Returns whether that is sooner than the next look.
    pub(super) fn limit(&mut self, id: CallId, now: Instant, limits: Limits) -> bool {
        let Some(waiting) = self.waiting(id) else { return false };
        let at = now + limits.timeout;
        waiting.due = Some(Due { at, started: now, limits });
        let is_sooner = self.next_look.is_none_or(|next| at < next);
        if is_sooner {
            self.next_look = Some(at);
        }
        is_sooner
    }

    /// Ends the wait of calls that are due. Their callers then close them. Returns when to look again.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let (asked, answered) = (self.asked, self.answered);
        let mut next_look = None;
        for waiting in self.slots.iter_mut().flatten() {
            let progress = waiting.last_progress(asked, answered, now);
            let Some(due) = waiting.due.as_mut().filter(|_| waiting.answer.is_some()) else {
                continue;
            };
            if due.at <= now {
                let Some(left) = due.limits.left(due.started, progress, now) else {
                    let after = now.saturating_duration_since(due.started);
                    if let Some(answer) = waiting.answer.take() {
                        let _ = answer.send(Err(Fault::TimedOut(after)));
                    }
                    continue;
                };
                due.at = now + left;
            }
            next_look = Some(next_look.map_or(due.at, |next: Instant| next.min(due.at)));
        }
        self.next_look = next_look;
        next_look
    }

    /// From now on, this one is told of the call's progress.
    pub(super) fn watch(&mut self, id: CallId, watcher: &Watcher) {
        if let Some(waiting) = self.waiting(id) {
            waiting.watcher = Some(watcher.clone());
        }
    }

    /// Notes that the server told of progress; says who wants to know what.
    pub(super) fn progressed(&mut self, id: CallId) -> Option<Watcher> {
        let waiting = self.waiting(id)?;
        waiting.progress = Some(Instant::now());
        waiting.watcher.clone()
    }

    fn waiting(&mut self, id: CallId) -> Option<&mut Waiting> {
        self.slots.get_mut(id.slot())?.as_mut().filter(|waiting| waiting.id == id)
    }

    /// When the server last told of progress in a call. While somebody thinks about a question of it, that
    /// is now: it cannot go on before.
    pub(super) fn last_progress(&self, id: CallId) -> Option<Instant> {
        let waiting = self.slots.get(id.slot())?.as_ref().filter(|waiting| waiting.id == id)?;
        waiting.last_progress(self.asked, self.answered, Instant::now())
    }

    /// Somebody begins to think about a question of the server.
    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    /// Somebody has answered, or nobody will.
    pub(super) fn answered(&mut self) {
        self.asked = self.asked.saturating_sub(1);
        self.answered = Some(Instant::now());
    }

    /// Ends all calls: whoever waits learns that no answer will come.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
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
    fn a_late_answer_meets_nobody() {
        let mut calls = Calls::default();
        let (first, _first_answer) = calls.open().unwrap();
        assert!(calls.close(first).is_some());
        let (second, _second_answer) = calls.open().unwrap();
        assert_ne!(first, second, "the slot is used again, the id is not");
        assert!(calls.close(first).is_none());
        assert!(calls.close(second).is_some());
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn ids_are_recognised_as_numbers_and_as_strings_and_those_of_others_are_not() {
        let mut calls = Calls::default();
        let (id, _answer) = calls.open().unwrap();
        assert_eq!(CallId::parse(&raw(&id.number().to_string())), Some(id));
        assert_eq!(CallId::parse(&raw(&format!("\"{}\"", id.number()))), Some(id));
        for other in ["0", "\"abc\"", "null", "-1", "1.5", "[]"] {
            assert_eq!(CallId::parse(&raw(other)), None);
        }
    }

    #[test]
    fn while_somebody_thinks_about_a_question_no_call_is_late() {
        let mut calls = Calls::default();
        let (id, _answer) = calls.open().unwrap();
        assert_eq!(calls.last_progress(id), None);
        calls.asked();
        calls.asked();
        calls.answered();
        let first = calls.last_progress(id).unwrap();
        assert!(calls.last_progress(id).unwrap() >= first, "one is still open");
        calls.answered();
        let last = calls.last_progress(id);
        assert!(last.is_some() && calls.last_progress(id) == last, "the clock runs from here");
    }

    #[test]
    fn there_is_a_bound_on_calls_that_wait() {
        let mut calls = Calls::default();
        let open: Vec<_> = std::iter::from_fn(|| calls.open()).collect();
        assert_eq!(open.len(), 1 << SLOT_BITS);
        calls.clear();
        assert!(calls.open().is_some());
    }
}
