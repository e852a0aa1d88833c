//! Calls: concurrent within a limit, in order, and invalid ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_agent::{EndReason, LoopEvent};
use openclaw_models::scripted::ScriptedTurn as Says;
use tokio::sync::Barrier;

use crate::support::{Bench, TestTool, assert_acceptable, from_outside, text};

#[tokio::test]
async fn calls_run_side_by_side_within_the_bound_and_their_results_keep_the_models_order() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    // Three must run concurrently or none continues; a fourth would be counted.
    let barrier = Arc::new(Barrier::new(3));
    let counted = {
        let most = Arc::clone(&most);
        TestTool::new("look", move |arguments, _| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let barrier = Arc::clone(&barrier);
            Box::pin(async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                barrier.wait().await;
                let nth = arguments["nth"].as_u64().unwrap();
                // Later calls finish first.
                for _ in nth..9 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                from_outside(&format!("seen {nth}"))
            })
        })
    };
    let arguments: Vec<String> = (0..9).map(|nth| format!(r#"{{"nth":{nth}}}"#)).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|it| ("look", it.as_str())).collect();
    let mut bench = Bench::new([Says::calls(&calls), Says::says("done")]).await.tool(counted);
    bench.agent.limits.parallel_calls = 3;
    let answer = bench.say("look nine times").await;
    assert_eq!((answer.text.as_str(), answer.ended), ("done", EndReason::Done));
    assert_eq!((answer.rounds, answer.calls), (2, 9));
    assert_eq!(most.load(Ordering::SeqCst), 3);
    for (nth, result) in bench.results().iter().enumerate() {
        assert_eq!(result.id, format!("call-{}", nth + 1));
        assert!(text(result).contains(&format!("seen {nth}")), "{result:?}");
    }
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn an_unknown_tool_is_reported_and_the_turn_continues() {
    let says = [Says::calls(&[("mcp_none\u{7}", "{}")]), Says::says("I see")];
    let bench = Bench::new(says).await;
    assert_eq!(bench.say("call it").await.text, "I see");
    let results = bench.results();
    assert!(results[0].is_error);
    let words = text(&results[0]);
    assert!(words.contains("Unknown tool 'mcp_none'"), "{words}");
    assert!(!words.contains('\u{7}'), "the name is sanitized");
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_rejected_and_missing_ones_count_as_empty() {
    let calls = [
        ("look", "{nonsense"),
        ("look", "[1,2]"),
        ("look", "\"text\""),
        ("look", ""),
        ("look", "null"),
        ("look", "{\"a\":1}"),
    ];
    let called = Arc::new(AtomicUsize::new(0));
    let tool = {
        let called = Arc::clone(&called);
        TestTool::new("look", move |arguments, _| {
            assert!(arguments.is_object());
            called.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { from_outside("seen") })
        })
    };
    let bench = Bench::new([Says::calls(&calls), Says::says("done")]).await.tool(tool);
    bench.say("look").await;
    let results = bench.results();
    let is_error: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(is_error, [true, true, true, false, false, false]);
    assert!(text(&results[0]).contains("not valid JSON"), "{:?}", results[0]);
    assert!(text(&results[1]).contains("must be a JSON object"), "{:?}", results[1]);
    assert_eq!(called.load(Ordering::SeqCst), 3);
    let kept = bench.kept().await;
    assert_eq!(kept[2].calls[0].failure.as_deref(), Some("invalid-arguments"));
}

#[tokio::test]
async fn every_call_reports_its_start_and_end() {
    let says = [Says::calls(&[("look", "{}"), ("nothing", "{}")]), Says::says("done")];
    let bench = Bench::new(says).await.tool(TestTool::saying("look", "a sea"));
    bench.say("look").await;
    let seen = bench.seen.lock().unwrap();
    let mut told: Vec<String> = Vec::new();
    for event in seen.iter() {
        match event {
            LoopEvent::CallStarted(call) => told.push(format!("{} begins", call.id)),
            LoopEvent::CallEnded(call) => told.push(format!("{} ends {}", call.id, call.is_error)),
            LoopEvent::Text(text) => told.push(text.clone()),
            _ => {}
        }
    }
    told[..4].sort();
    assert_eq!(
        told,
        ["call-1 begins", "call-1 ends false", "call-2 begins", "call-2 ends true", "done"]
    );
}
