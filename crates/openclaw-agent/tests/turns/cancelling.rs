//! Cancelled turns.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::{EndReason, LoopEvent};
use openclaw_models::scripted::{Scripted, ScriptedTurn as Says};
use openclaw_models::{Chunk, Message};
use tokio::sync::{Notify, oneshot};

use crate::support::{Bench, LONG, TestTool, assert_acceptable, text};

/// A call runs at least this long before it is cancelled.
const RUN: Duration = Duration::from_millis(20);

/// Notifies when it is dropped.
struct Dropped(Option<oneshot::Sender<()>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.take().map(|sender| sender.send(()));
    }
}

#[tokio::test]
async fn a_turn_stopped_in_mid_stream_keeps_what_was_said() {
    let says = Says::from(vec![Chunk::Text("The sea is".to_owned())]).then_hangs();
    let bench = Bench::new([says, Says::says("blue")]).await;
    let mut turn = bench.turn("what is the sea like?");
    let (said, cancel) = (Arc::new(Notify::new()), turn.cancel.clone());
    turn.observer = {
        let said = Arc::clone(&said);
        Arc::new(move |_| said.notify_one())
    };
    let stop = async {
        said.notified().await;
        cancel.cancel();
    };
    let (answer, ()) =
        tokio::time::timeout(LONG, async { tokio::join!(bench.agent.answer(&turn), stop) })
            .await
            .unwrap();
    let answer = answer.unwrap();
    assert_eq!((answer.ended, answer.text.as_str()), (EndReason::Cancelled, "The sea is"));
    assert_eq!(bench.say("go on").await.text, "blue");
    let asked = bench.asked_last();
    assert!(matches!(&asked[1], Message::Assistant { text, .. } if text == "The sea is"));
    assert_acceptable(&asked);
}

#[tokio::test]
async fn a_turn_stopped_in_mid_call_drops_the_call_keeps_what_was_done_and_the_next_one_works() {
    let (begun, (sender, dropped)) = (Arc::new(Notify::new()), oneshot::channel());
    let slow = {
        let (begun, sender) = (Arc::clone(&begun), std::sync::Mutex::new(Some(sender)));
        TestTool::new("wait", move |_, _| {
            let guard = Dropped(sender.lock().unwrap().take());
            let begun = Arc::clone(&begun);
            Box::pin(async move {
                let _guard = guard;
                tokio::time::sleep(RUN).await;
                begun.notify_one();
                std::future::pending().await
            })
        })
    };
    let calls = Says::calls(&[("look", "{}"), ("wait", "{}")]);
    let bench = Bench::new([calls, Says::says("fine")]).await.tool(slow);
    let bench = bench.tool(TestTool::saying("look", "a sea"));
    let turn = bench.turn("wait");
    let stop = async {
        begun.notified().await;
        turn.cancel.cancel();
        dropped.await.unwrap();
    };
    let both = async { tokio::join!(bench.agent.answer(&turn), stop) };
    let (answer, ()) = tokio::time::timeout(LONG, both).await.unwrap();
    assert_eq!(answer.unwrap().ended, EndReason::Cancelled);
    let ran = |event: &LoopEvent| match event {
        LoopEvent::CallEnded(ended) if ended.name == "wait" => Some(ended.duration),
        _ => None,
    };
    let ran = bench.seen.lock().unwrap().iter().find_map(ran).unwrap();
    assert!(ran >= RUN, "its duration is reported: {ran:?}");
    assert_eq!(bench.say("and now?").await.text, "fine");
    assert_acceptable(&bench.asked_last());
    let results = bench.results();
    assert!(text(&results[0]).contains("a sea"), "completed calls are kept: {results:?}");
    assert!(results[1].is_error && text(&results[1]).contains("cancelled"), "{results:?}");
}

#[tokio::test]
async fn a_turn_cancelled_while_history_is_summarized_ends_immediately_and_loses_nothing() {
    let words = "words ".repeat(400);
    let model = Scripted::new([
        Says::says(&words),
        Says::says(&words),
        // The summary never arrives.
        Says::from(Vec::new()).then_hangs(),
    ]);
    let bench = Bench::with(model.with_context_tokens(3_000)).await;
    bench.say("one").await;
    bench.say("two").await;
    let turn = bench.turn("three");
    let stop = async {
        while bench.model.requests().len() < 3 {
            tokio::task::yield_now().await;
        }
        turn.cancel.cancel();
    };
    let both = async { tokio::join!(bench.agent.answer(&turn), stop) };
    let (answer, ()) = tokio::time::timeout(LONG, both).await.unwrap();
    assert_eq!(answer.unwrap().ended, EndReason::Cancelled);
    assert!(bench.notices().is_empty(), "nothing was compacted");
    assert_eq!(bench.kept().await.len(), 5);
}
