//! Limits on what a model may do in a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_agent::EndReason;
use openclaw_models::scripted::ScriptedTurn as Says;

use crate::support::{Bench, TestTool, assert_acceptable, from_outside, text};

#[tokio::test]
async fn after_so_many_rounds_a_turn_ends_and_the_next_one_works() {
    let rounds = (0..5).map(|nth| Says::calls(&[("look", format!(r#"{{"nth":{nth}}}"#).as_str())]));
    let mut bench = Bench::new(rounds).await.tool(TestTool::saying("look", "a sea"));
    bench.agent.limits.max_rounds = 5;
    let answer = bench.say("look for ever").await;
    assert_eq!((answer.ended, answer.rounds, answer.calls), (EndReason::TooManyRounds, 5, 5));
    bench.model.push(Says::says("enough"));
    assert_eq!(bench.say("stop").await.text, "enough");
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn the_same_call_forever_is_refused_then_ends_the_turn() {
    let made = Arc::new(AtomicUsize::new(0));
    let tool = {
        let made = Arc::clone(&made);
        TestTool::new("look", move |_, _| {
            made.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { from_outside("a sea") })
        })
    };
    let forever = std::iter::repeat_with(|| Says::calls(&[("look", "{}")])).take(50);
    let bench = Bench::new(forever).await.tool(tool);
    let answer = bench.say("look").await;
    assert_eq!(answer.ended, EndReason::GoingInCircles);
    assert_eq!(made.load(Ordering::SeqCst), 3, "then it is rejected");
    assert_eq!(bench.model.requests().len(), 8);
    let refused = bench.results();
    assert!(refused[0].is_error && text(&refused[0]).contains("not repeated"), "{refused:?}");
}

#[tokio::test]
async fn the_same_call_may_be_made_often_if_something_else_is_done_in_between() {
    let edit_and_test = (0..10).flat_map(|nth| {
        let edit = format!(r#"{{"nth":{nth}}}"#);
        [Says::calls(&[("edit", edit.as_str())]), Says::calls(&[("test", "{}")])]
    });
    let bench = Bench::new(edit_and_test.chain([Says::says("it works")])).await;
    let bench = bench.tool(TestTool::saying("edit", "done"));
    let bench = bench.tool(TestTool::saying("test", "one failed"));
    assert_eq!(bench.say("make it work").await.text, "it works");
    let kept = bench.kept().await;
    assert!(kept.iter().all(|record| record.calls.iter().all(|call| call.failure.is_none())));
}

#[tokio::test]
async fn calls_beyond_the_limit_of_a_round_are_rejected() {
    let arguments: Vec<String> = (0..300).map(|nth| format!(r#"{{"nth":{nth}}}"#)).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|it| ("look", it.as_str())).collect();
    let bench = Bench::new([Says::calls(&calls), Says::says("done")]).await;
    let bench = bench.tool(TestTool::saying("look", "a sea"));
    assert_eq!(bench.say("look").await.text, "done");
    let results = bench.results();
    assert_eq!((results.len(), results.iter().filter(|it| !it.is_error).count()), (300, 128));
    assert!(text(&results[299]).contains("per round"), "{:?}", results[299]);
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn an_empty_answer_leaves_a_history_that_providers_accept() {
    let bench = Bench::new([Says::says(""), Says::says("hello")]).await;
    assert_eq!(bench.say("hello?").await.text, "");
    assert_eq!(bench.say("hello??").await.text, "hello");
    assert_acceptable(&bench.asked_last());
}
