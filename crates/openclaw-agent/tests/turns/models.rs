//! Models that reject a request, fail, or break off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_agent::{EndReason, TurnError};
use openclaw_models::scripted::{Scripted, ScriptedTurn as Says};
use openclaw_models::{Chunk, Message, Model, ModelError, StopReason, ToolUse};

use crate::support::{Bench, TestTool, assert_acceptable};

fn rejected(tool: &str) -> Says {
    let message = "bad schema".to_owned();
    Says::fails(ModelError::ToolRejected { tool: tool.to_owned(), message })
}

#[tokio::test]
async fn a_tool_that_the_provider_refuses_is_left_out_and_named_and_the_turn_goes_on() {
    let says = [rejected("look"), rejected("smell"), Says::says("hello"), Says::says("again")];
    let mut bench = Bench::new(says).await;
    for name in ["look", "smell", "touch"] {
        bench = bench.tool(TestTool::saying(name, ""));
    }
    assert_eq!(bench.say("hello").await.text, "hello");
    let offered: Vec<Vec<String>> = bench
        .model
        .requests()
        .iter()
        .map(|request| request.tools.iter().map(|tool| tool.name.clone()).collect())
        .collect();
    assert_eq!(offered, [vec!["look", "smell", "touch"], vec!["smell", "touch"], vec!["touch"]]);
    let notices = bench.notices();
    assert!(notices[0].contains("`look`") && notices[1].contains("`smell`"), "{notices:?}");
}

#[tokio::test]
async fn a_model_without_tool_support_answers_without_tools_and_that_is_reported_once() {
    let none = || {
        let (model, message) = ("scripted".to_owned(), "does not support tools".to_owned());
        Says::fails(ModelError::NoTools { model, message })
    };
    let bench = Bench::new([none(), Says::says("hello"), none(), none()]).await;
    let bench = bench.tool(TestTool::saying("look", ""));
    assert_eq!(bench.say("hello").await.text, "hello");
    let offered: Vec<usize> = bench.model.requests().iter().map(|it| it.tools.len()).collect();
    assert_eq!(offered, [1, 0]);
    assert_eq!(bench.notices(), ["`scripted` does not support tools; continuing without them"]);
    // A model that reports this when it is offered no tools is not retried forever.
    let error = bench.agent.answer(&bench.turn("hello")).await.unwrap_err();
    assert!(matches!(error, TurnError::Model(ModelError::NoTools { .. })), "{error}");
    assert_eq!(bench.model.requests().len(), 4);
}

#[tokio::test]
async fn a_provider_that_refuses_the_same_tool_for_ever_is_not_asked_for_ever() {
    let bench = Bench::new((0..100).map(|_| rejected("look"))).await;
    let error = bench.agent.answer(&bench.turn("hello")).await.unwrap_err();
    assert!(matches!(error, TurnError::Model(ModelError::ToolRejected { .. })), "{error}");
    assert_eq!(bench.model.requests().len(), 2);
}

#[tokio::test]
async fn another_model_takes_the_place_of_one_that_cannot_answer_also_in_a_later_round() {
    let trouble =
        || ModelError::Rejected { provider: "p".to_owned(), message: "not today".to_owned() };
    // The first model requests a call, and then fails.
    let says = [Says::calls(&[("look", "{}")]), Says::fails(trouble())];
    let mut bench = Bench::new(says).await.tool(TestTool::saying("look", "a sea"));
    let second = Arc::new(Scripted::new([Says::says("it is blue")]));
    bench.agent.models.push(Arc::clone(&second) as Arc<dyn Model>);
    assert_eq!(bench.say("look").await.text, "it is blue");
    let asked = second.requests();
    assert_eq!(asked[0].messages.len(), 3, "it gets the earlier messages");
    assert!(bench.notices()[0].contains("not today"), "{:?}", bench.notices());
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_what_was_said_and_no_call_that_was_never_made() {
    let call = ToolUse { id: "1".into(), name: "look".into(), arguments: "{}".into() };
    let chunks = vec![Chunk::Text("Let me ".to_owned()), Chunk::ToolUse(call)];
    let bench = Bench::new([Says::from(chunks), Says::says("hello")]).await;
    let bench = bench.tool(TestTool::saying("look", "a sea"));
    let error = bench.agent.answer(&bench.turn("look")).await.unwrap_err();
    assert!(matches!(error, TurnError::Model(ModelError::Interrupted)), "{error}");
    assert_eq!(bench.say("again").await.text, "hello");
    let asked = bench.asked_last();
    assert_acceptable(&asked);
    assert!(matches!(&asked[1], Message::Assistant { text, tool_uses, .. }
        if text == "Let me " && tool_uses.is_empty()));
}

#[tokio::test]
async fn a_stream_that_fails_before_any_output_falls_back_to_the_next_model() {
    let call = ToolUse { id: "1".into(), name: "look".into(), arguments: "{}".into() };
    let made = Arc::new(AtomicUsize::new(0));
    let tool = {
        let made = Arc::clone(&made);
        TestTool::new("look", move |_, _| {
            made.fetch_add(1, Ordering::SeqCst);
            Box::pin(std::future::pending())
        })
    };
    let mut bench = Bench::new([Says::from(vec![Chunk::ToolUse(call)])]).await.tool(tool);
    bench.agent.models.push(Arc::new(Scripted::new([Says::says("hello")])));
    assert_eq!(bench.say("look").await.text, "hello");
    assert_eq!(made.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_error_after_all_models_is_the_turns_error_and_the_next_turn_works() {
    let bench = Bench::new([Says::fails(ModelError::Interrupted), Says::says("hello")]).await;
    let error = bench.agent.answer(&bench.turn("one")).await.unwrap_err();
    assert!(matches!(error, TurnError::Model(ModelError::Interrupted)), "{error}");
    assert_eq!(bench.say("two").await.text, "hello");
}

#[tokio::test]
async fn an_agent_without_a_model_says_so() {
    let mut bench = Bench::new([]).await;
    bench.agent.models.clear();
    let error = bench.agent.answer(&bench.turn("one")).await.unwrap_err();
    assert!(matches!(error, TurnError::NoModel));
}

#[tokio::test]
async fn an_unusual_stop_reason_is_reported_as_the_provider_names_it() {
    let ends = |reason| Says::from(vec![Chunk::End(reason)]);
    let says = [
        ends(StopReason::Other("MALFORMED_FUNCTION_CALL".to_owned())),
        ends(StopReason::Refused("SAFETY".to_owned())),
        ends(StopReason::Done),
    ];
    let bench = Bench::new(says).await;
    assert_eq!(bench.say("one").await.ended, EndReason::Done);
    assert_eq!(bench.say("two").await.ended, EndReason::Refused);
    assert_eq!(bench.say("three").await.ended, EndReason::Done);
    let told = ["`MALFORMED_FUNCTION_CALL`", "`SAFETY`"]
        .map(|reason| format!("the model provider ended the answer: {reason}"));
    assert_eq!(bench.notices(), told);
}
