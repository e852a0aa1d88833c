//! One turn at a time in a session, and turns that end without an end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_agent::{Answer, TurnError};
use openclaw_models::Message;
use openclaw_models::scripted::Turn as Says;
use openclaw_sessions::{
    Entry, Lease, LeaseError, LeaseKeeper, ListFilter, NewEntry, ReadFilter, Session, SessionKey,
    SessionStore, StoreError,
};
use tokio::sync::{Notify, Semaphore};

use crate::support::{Bench, LONG, TestTool, assert_acceptable, from_outside, key, text};

/// Says something as soon as the session is free.
async fn say_when_free(bench: &Bench, words: &str) -> Answer {
    let turn = bench.turn(words);
    let trying = async {
        loop {
            match bench.agent.answer(&turn).await {
                Err(TurnError::Busy(LeaseError::Busy { .. })) => tokio::task::yield_now().await,
                answer => return answer.unwrap(),
            }
        }
    };
    tokio::time::timeout(LONG, trying).await.unwrap()
}

#[tokio::test]
async fn a_second_turn_of_a_session_is_told_that_one_is_running_and_disturbs_nothing() {
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
    let second = async {
        begun.notified().await;
        let error = bench.agent.answer(&bench.turn("second")).await.unwrap_err();
        let TurnError::Busy(LeaseError::Busy { key: of, .. }) = &error else { panic!("{error}") };
        assert_eq!(*of, key());
        assert!(error.to_string().contains("in use"), "{error}");
        go_on.add_permits(1);
    };
    let (first, ()) = tokio::join!(bench.say("first"), second);
    assert_eq!(first.text, "one");
    assert_eq!(bench.kept().await.len(), 4, "nothing of the second is there");
    assert_eq!(bench.say("third").await.text, "two");
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn after_a_turn_that_was_torn_away_in_mid_call_history_is_one_that_a_provider_takes() {
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
    assert_eq!(say_when_free(&bench, "are you there?").await.text, "I am back");
    let asked = bench.asked_last();
    assert_acceptable(&asked);
    let results = bench.results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|it| it.is_error && text(it).contains("not known")), "{results:?}");
}

#[tokio::test]
async fn after_a_turn_that_was_torn_away_in_mid_sentence_at_most_that_sentence_is_lost() {
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
    assert_eq!(say_when_free(&bench, "second").await.text, "whole");
    assert_eq!(bench.asked_last(), ["first", "second"].map(Message::user));
}

/// A store whose leases do not last: somebody else takes every session over.
#[derive(Debug)]
struct Fickle(Arc<dyn SessionStore>);

/// The lease of a [`Fickle`] store.
#[derive(Debug)]
struct Gone;

impl LeaseKeeper for Gone {
    fn renew(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn release(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

type Answered<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl SessionStore for Fickle {
    fn open<'a>(&'a self, key: &'a SessionKey, agent: &'a str) -> Answered<'a, Session> {
        self.0.open(key, agent)
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> Answered<'a, Option<Session>> {
        self.0.get(key)
    }

    fn list(&self, filter: ListFilter) -> Answered<'_, Vec<Session>> {
        self.0.list(filter)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, entries: Vec<NewEntry>) -> Answered<'a, Vec<u64>> {
        self.0.append(key, entries)
    }

    fn read<'a>(&'a self, key: &'a SessionKey, filter: ReadFilter) -> Answered<'a, Vec<Entry>> {
        self.0.read(key, filter)
    }

    fn set_title<'a>(&'a self, key: &'a SessionKey, title: Option<&'a str>) -> Answered<'a, ()> {
        self.0.set_title(key, title)
    }

    fn set_model<'a>(&'a self, key: &'a SessionKey, model: Option<&'a str>) -> Answered<'a, ()> {
        self.0.set_model(key, model)
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> Answered<'a, bool> {
        self.0.delete(key)
    }

    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        _: &'a str,
        _: Duration,
    ) -> BoxFuture<'a, Result<Lease, LeaseError>> {
        let lease = Lease::granted(key.clone(), Duration::from_millis(60), Arc::new(Gone));
        Box::pin(std::future::ready(Ok(lease)))
    }
}

#[tokio::test]
async fn a_turn_whose_session_was_taken_over_stops_by_itself() {
    let mut bench = Bench::new([Says::says("half a sen").then_hangs()]).await;
    bench.agent.store = Arc::new(Fickle(Arc::clone(&bench.agent.store)));
    let turn = bench.turn("hello");
    let answer = tokio::time::timeout(LONG, bench.agent.answer(&turn)).await.unwrap();
    assert!(matches!(answer, Err(TurnError::TakenOver)), "{answer:?}");
}
