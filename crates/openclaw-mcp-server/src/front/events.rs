//! A client that is reached only by replies to its request, and the task that writes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use openclaw_config::LogLevel;
use serde_json::Value;
use tokio::sync::oneshot;

use super::incoming::level_of;
use super::reply::HubReply;
use crate::input::{Abilities, AskableClient, ClientAnswer, ClientQuestion};

/// How many events wait for the task that replies.
const MAX_EVENTS: usize = 64;

/// What happens during a call, for the task that replies to the client.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// The client is asked.
    Ask(ClientQuestion, oneshot::Sender<ClientAnswer>),
    /// The server sent a log message.
    Log(Value),
    /// The call is over; without a reply if it was cancelled. Not sent for calls of a future.
    Over(Option<HubReply>),
}

/// A client that is reached only by replies to its request. Few calls have events, so this is
/// lighter than a channel, which allocates room for them.
#[derive(Debug)]
pub(crate) struct ReplyingTask {
    abilities: Abilities,
    /// The level from which on it gets log messages; none without.
    log_level: Option<LogLevel>,
    mailbox: Mutex<Mailbox>,
}

#[derive(Debug, Default)]
struct Mailbox {
    events: VecDeque<CallEvent>,
    /// Received after the events.
    over: Option<Option<HubReply>>,
    reader: Option<Waker>,
    is_closed: bool,
}

/// Receives the events of a call. Dropping it withdraws its questions.
#[derive(Debug)]
pub(crate) struct CallEvents(Arc<ReplyingTask>);

impl ReplyingTask {
    /// Creates a client with these abilities, and log messages from this level on.
    pub(crate) fn new(
        abilities: Abilities,
        log_level: Option<LogLevel>,
    ) -> (Arc<Self>, CallEvents) {
        let task = Arc::new(Self { abilities, log_level, mailbox: Mutex::default() });
        (Arc::clone(&task), CallEvents(task))
    }

    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the event will be received; not if too many wait.
    fn send(&self, event: CallEvent) -> bool {
        let mut mailbox = self.lock();
        if mailbox.is_closed || mailbox.events.len() >= MAX_EVENTS {
            return false;
        }
        mailbox.events.push_back(event);
        wake(mailbox);
        true
    }

    /// Ends the call with its reply.
    pub(crate) fn reply(&self, reply: HubReply) {
        let mut mailbox = self.lock();
        // Not after a cancellation.
        mailbox.over.get_or_insert(Some(reply));
        wake(mailbox);
    }

    /// Cancels the call: what was not received yet is dropped.
    pub(crate) fn cancel(&self) {
        let mut mailbox = self.lock();
        mailbox.over = Some(None);
        let dropped = std::mem::take(&mut mailbox.events);
        wake(mailbox);
        drop(dropped);
    }
}

/// Whether a log message is of this level or above. One without a known level is.
pub(crate) fn is_logged(message: &Value, least: LogLevel) -> bool {
    let level = message.get("level").and_then(Value::as_str).and_then(level_of);
    level.is_none_or(|level| level as u8 >= least as u8)
}

fn wake(mut mailbox: MutexGuard<'_, Mailbox>) {
    let reader = mailbox.reader.take();
    drop(mailbox);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl CallEvents {
    /// Polls for the next event. The task of the last poll is woken.
    pub(crate) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<CallEvent> {
        let mut mailbox = self.0.lock();
        if let Some(event) = mailbox.events.pop_front() {
            return Poll::Ready(event);
        }
        if let Some(reply) = mailbox.over.take() {
            return Poll::Ready(CallEvent::Over(reply));
        }
        if !mailbox.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            mailbox.reader = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits for the next event. Safe to cancel.
    pub(crate) async fn next(&mut self) -> CallEvent {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for CallEvents {
    fn drop(&mut self) {
        let mut mailbox = self.0.lock();
        mailbox.is_closed = true;
        let left = (std::mem::take(&mut mailbox.events), mailbox.reader.take());
        drop(mailbox);
        // Wakes those who ask.
        drop(left);
    }
}

impl AskableClient for ReplyingTask {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            if !self.send(CallEvent::Ask(question, answer)) {
                return Err("the client can no longer answer".to_owned());
            }
            answered.await.unwrap_or_else(|_| Err("the client has disconnected".to_owned()))
        })
    }

    fn log(&self, message: &Value) {
        // Dropped if the client does not keep up.
        if self.log_level.is_some_and(|least| is_logged(message, least)) {
            self.send(CallEvent::Log(message.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::super::reply::ReplyTo;
    use super::*;
    use crate::input::ROOTS;

    fn question() -> ClientQuestion {
        ClientQuestion { method: ROOTS, params: json!({}) }
    }

    #[tokio::test]
    async fn events_arrive_in_order_and_a_waiting_task_is_woken() {
        let (client, mut events) = ReplyingTask::new(Abilities::default(), Some(LogLevel::Debug));
        let receiving = tokio::spawn(async move { [events.next().await, events.next().await] });
        tokio::task::yield_now().await;
        client.log(&json!(1));
        client.log(&json!(2));
        let received = receiving.await.unwrap().map(|event| match event {
            CallEvent::Log(message) => message,
            other => panic!("{other:?}"),
        });
        assert_eq!(received, [json!(1), json!(2)]);
    }

    #[tokio::test]
    async fn log_messages_arrive_from_the_level_that_is_wanted() {
        let levels = ["debug", "info", "error"];
        for (least, expected) in [
            (None, &[][..]),
            (Some(LogLevel::Info), &levels[1..]),
            (Some(LogLevel::Debug), &levels),
        ] {
            let (client, mut events) = ReplyingTask::new(Abilities::default(), least);
            levels.iter().for_each(|level| client.log(&json!({ "level": level })));
            for level in expected {
                let CallEvent::Log(message) = events.next().await else { panic!("{least:?}") };
                assert_eq!(message["level"], *level);
            }
            assert!(events.next().now_or_never().is_none());
        }
    }

    #[tokio::test]
    async fn a_reply_comes_after_the_events_and_a_cancellation_instead_of_them() {
        let reply = || HubReply::result("{}".to_owned(), ReplyTo::Legacy);
        let (client, mut events) = ReplyingTask::new(Abilities::default(), Some(LogLevel::Debug));
        client.reply(reply());
        client.log(&json!(1));
        assert!(matches!(events.next().await, CallEvent::Log(_)));
        assert!(matches!(events.next().await, CallEvent::Over(Some(it)) if it == reply()));
        let (client, mut events) = ReplyingTask::new(Abilities::default(), Some(LogLevel::Debug));
        let mut asking = client.ask(question());
        assert!(asking.as_mut().now_or_never().is_none());
        client.cancel();
        client.reply(reply());
        assert!(asking.await.is_err(), "it is withdrawn");
        assert!(matches!(events.next().await, CallEvent::Over(None)));
    }

    #[tokio::test]
    async fn events_are_bounded_and_questions_end_with_their_receiver() {
        let (client, events) = ReplyingTask::new(Abilities::default(), Some(LogLevel::Debug));
        let mut asking = client.ask(question());
        assert!(asking.as_mut().now_or_never().is_none());
        (1..MAX_EVENTS).for_each(|_| client.log(&json!(1)));
        assert_eq!(client.ask(question()).await, Err("the client can no longer answer".to_owned()));
        assert_eq!(client.lock().events.len(), MAX_EVENTS);
        drop(events);
        assert_eq!(asking.await, Err("the client has disconnected".to_owned()));
        assert_eq!(client.ask(question()).await, Err("the client can no longer answer".to_owned()));
    }
}
