//! One turn at a time in a session, and interrupted turns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use openclaw_agent::{EndReason, LoopEvent, TurnError};
use openclaw_models::Message;
use openclaw_models::scripted::ScriptedTurn as Says;
use openclaw_sessions::{
    Entry, Lease, LeaseError, LeaseKeeper, ListFilter, NewEntry, ReadFilter, Session, SessionField,
    SessionKey, SessionStore, StoreError,
};
use tokio::sync::{Notify, Semaphore};

use crate::support::{Bench, LONG, TestTool, assert_acceptable, from_outside, text};

#[tokio::test]
async fn a_second_turn_of_a_session_waits_for_the_first_and_disturbs_nothing() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let tool = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        TestTool::new("wait", move |_, _| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            Box::pin(async move {
                begun.notify_one();
                go_on.acquire().await.unwrap().forget();
                from_outside("waited")
            })
        })
    };
    let says = [Says::calls(&[("wait", "{}")]), Says::says("one"), Says::says("two")];
    let bench = Bench::new(says).await.tool(tool);
    let mut turn = bench.turn("second");
    // The first turn continues once the second reports that it waits.
    turn.observer = Arc::new(move |event| {
        if matches!(event, LoopEvent::Notice(_)) {
            go_on.add_permits(1);
        }
    });
    let second = async {
        begun.notified().await;
        tokio::time::timeout(LONG, bench.agent.answer(&turn)).await.unwrap().unwrap()
    };
    let (first, second) = tokio::join!(bench.say("first"), second);
    assert_eq!((first.text.as_str(), second.text.as_str()), ("one", "two"));
    assert_eq!(bench.kept().await.len(), 6);
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn after_a_turn_dropped_during_a_call_the_history_is_acceptable_to_providers() {
    let begun = Arc::new(Notify::new());
    let tool = {
        let begun = Arc::clone(&begun);
        TestTool::new("wait", move |_, _| {
            begun.notify_one();
            Box::pin(std::future::pending())
        })
    };
    let calls = Says::calls(&[("wait", "{}"), ("look", "{}")]);
    let bench = Bench::new([calls, Says::says("I am back")]).await.tool(tool);
    let bench = bench.tool(TestTool::saying("look", "a sea"));
    let turn = bench.turn("wait");
    tokio::select! {
        answer = bench.agent.answer(&turn) => panic!("{answer:?}"),
        () = begun.notified() => {}
        () = tokio::time::sleep(LONG) => panic!("the tool was not called"),
    }
    assert_eq!(bench.say("are you there?").await.text, "I am back");
    let asked = bench.asked_last();
    assert_acceptable(&asked);
    let results = bench.results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|it| it.is_error && text(it).contains("unknown")), "{results:?}");
}

#[tokio::test]
async fn after_a_turn_dropped_during_streaming_only_that_message_is_lost() {
    let half = Says::says("half a sen").then_hangs();
    let bench = Bench::new([half, Says::says("whole")]).await;
    let turn = bench.turn("first");
    let begun = async {
        while bench.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = bench.agent.answer(&turn) => panic!("{answer:?}"),
        begun = tokio::time::timeout(LONG, begun) => begun.unwrap(),
    }
    assert_eq!(bench.say("second").await.text, "whole");
    assert_eq!(bench.asked_last(), ["first", "second"].map(Message::user));
}

/// A store whose sessions are leased by another owner for the given durations, one per attempt.
#[derive(Debug)]
struct Contested {
    store: Arc<dyn SessionStore>,
    remaining: Mutex<VecDeque<Duration>>,
    /// Whether the other owner takes the session over again.
    comes_back: bool,
}

impl Contested {
    fn for_agent(bench: &mut Bench, remaining: impl IntoIterator<Item = u64>) {
        Self::place(bench, remaining, false);
    }

    fn taken_over(bench: &mut Bench) {
        Self::place(bench, [], true);
    }

    fn place(bench: &mut Bench, remaining: impl IntoIterator<Item = u64>, comes_back: bool) {
        let remaining = remaining.into_iter().map(Duration::from_secs).collect();
        let store = Arc::clone(&bench.agent.store);
        bench.agent.store = Arc::new(Self { store, remaining: Mutex::new(remaining), comes_back });
    }
}

/// A lease that was taken over.
#[derive(Debug)]
struct Gone;

#[async_trait]
impl LeaseKeeper for Gone {
    async fn renew(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl SessionStore for Contested {
    async fn open(&self, key: &SessionKey, agent: &str) -> Result<Session, StoreError> {
        self.store.open(key, agent).await
    }

    async fn get(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.store.get(key).await
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Session>, StoreError> {
        self.store.list(filter).await
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: Vec<NewEntry>,
    ) -> Result<Vec<u64>, StoreError> {
        self.store.append(key, entries).await
    }

    async fn read(&self, key: &SessionKey, filter: ReadFilter) -> Result<Vec<Entry>, StoreError> {
        self.store.read(key, filter).await
    }

    async fn set(
        &self,
        key: &SessionKey,
        field: SessionField,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        self.store.set(key, field, value).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.store.delete(key).await
    }

    async fn lease(&self, key: &SessionKey, by: &str, ttl: Duration) -> Result<Lease, LeaseError> {
        match self.remaining.lock().unwrap().pop_front() {
            Some(remaining) => {
                return Err(LeaseError::Busy {
                    key: key.clone(),
                    by: "somebody".to_owned(),
                    remaining,
                });
            }
            None if self.comes_back => {
                return Ok(Lease::granted(key.clone(), Duration::from_millis(60), Arc::new(Gone)));
            }
            None => {}
        }
        self.store.lease(key, by, ttl).await
    }
}

#[tokio::test]
async fn a_turn_whose_session_was_taken_over_stops_by_itself() {
    let mut bench = Bench::new([Says::says("half a sen").then_hangs()]).await;
    Contested::taken_over(&mut bench);
    let turn = bench.turn("hello");
    let answer = tokio::time::timeout(LONG, bench.agent.answer(&turn)).await.unwrap();
    assert!(matches!(answer, Err(TurnError::TakenOver)), "{answer:?}");
}

#[tokio::test]
async fn a_session_in_use_is_waited_for_and_that_is_reported_once() {
    // Its owner was killed, or lives and renews its lease.
    for remaining in [&[30, 29, 2][..], &[25, 24, 30, 29]] {
        let mut bench = Bench::new([Says::says("here I am")]).await;
        Contested::for_agent(&mut bench, remaining.iter().copied());
        assert_eq!(bench.say("hello").await.text, "here I am");
        assert_eq!(bench.notices().len(), 1, "{:?}", bench.notices());
    }
}

#[tokio::test]
async fn a_turn_that_waits_for_its_session_can_be_stopped() {
    let mut bench = Bench::new([]).await;
    Contested::for_agent(&mut bench, (1..1_000).rev());
    let mut turn = bench.turn("hello");
    let cancel = turn.cancel.clone();
    turn.observer = Arc::new(move |_| cancel.cancel());
    let answer = tokio::time::timeout(LONG, bench.agent.answer(&turn)).await.unwrap().unwrap();
    assert_eq!((answer.ended, answer.rounds), (EndReason::Cancelled, 0));
    assert!(bench.kept().await.is_empty());
}
