//! Images that a provider rejects, or that are too large together.

use std::sync::Arc;

use openclaw_agent::TurnError;
use openclaw_models::scripted::{Scripted, ScriptedTurn as Says};
use openclaw_models::{Message, Model, ModelError, Part};
use openclaw_tools::{Content, ToolOutcome};

use crate::support::{Bench, TestTool, assert_acceptable, text};

fn refusal() -> ModelError {
    ModelError::Rejected { provider: "p".to_owned(), message: "Could not process image".to_owned() }
}

fn picture() -> Part {
    Part::Image { mime_type: "image/png".to_owned(), data: "iVBO".to_owned() }
}

/// A tool that returns an image of this many bytes.
fn showing(name: &str, bytes: usize) -> TestTool {
    TestTool::new(name, move |_, _| {
        let (mime_type, data) = ("image/png".to_owned(), "A".repeat(bytes));
        let content = vec![Content::Image { mime_type, data }];
        let outcome = ToolOutcome { content, is_error: false, details: Box::default() };
        Box::pin(std::future::ready(outcome))
    })
}

/// The number of images in each request to a model.
fn shown(model: &Scripted) -> Vec<usize> {
    let in_parts =
        |parts: &[Part]| parts.iter().filter(|it| matches!(it, Part::Image { .. })).count();
    let in_message = |message: &Message| match message {
        Message::User { parts } | Message::Assistant { parts, .. } => in_parts(parts),
        Message::Tool { results } => results.iter().map(|it| in_parts(&it.parts)).sum(),
    };
    let requests = model.requests();
    requests.iter().map(|it| it.messages.iter().map(|it| in_message(it)).sum()).collect()
}

#[tokio::test]
async fn a_picture_that_the_provider_refuses_is_hidden_and_the_session_goes_on() {
    let says = [Says::fails(refusal()), Says::says("I see nothing"), Says::says("hello")];
    let bench = Bench::new(says).await;
    let mut turn = bench.turn("look");
    turn.message.push(picture());
    assert_eq!(bench.agent.answer(&turn).await.unwrap().text, "I see nothing");
    let notices = bench.notices();
    assert!(
        notices[0].contains("Could not process image") && notices[0].contains("without images")
    );
    assert_eq!(bench.say("again").await.text, "hello");
    assert_eq!(shown(&bench.model), [1, 0, 0]);
    let Message::User { parts } = &bench.kept().await[0].message else { panic!() };
    assert_eq!(parts[1], picture(), "it is still stored");
}

#[tokio::test]
async fn pictures_that_were_taken_before_are_still_shown() {
    let says = [
        Says::says("a sea"),
        Says::calls(&[("look", "{}")]),
        Says::fails(refusal()),
        Says::says("I see no more"),
        Says::says("hello"),
    ];
    let bench = Bench::new(says).await.tool(showing("look", 4));
    let mut turn = bench.turn("look");
    turn.message.push(picture());
    bench.agent.answer(&turn).await.unwrap();
    assert_eq!(bench.say("look yourself").await.text, "I see no more");
    assert_eq!(bench.say("again").await.text, "hello");
    assert_eq!(shown(&bench.model), [1, 1, 2, 1, 1]);
    assert_acceptable(&bench.asked_last());
}

#[tokio::test]
async fn where_hiding_does_not_help_nothing_stays_hidden() {
    let says = [Says::fails(refusal()), Says::fails(refusal()), Says::says("hello")];
    let bench = Bench::new(says).await;
    let mut turn = bench.turn("look");
    turn.message.push(picture());
    let error = bench.agent.answer(&turn).await.unwrap_err();
    assert!(matches!(error, TurnError::Model(ModelError::Rejected { .. })), "{error}");
    bench.say("again").await;
    assert_eq!(shown(&bench.model), [1, 0, 1]);
}

#[tokio::test]
async fn the_next_model_is_shown_what_the_first_refused_in_any_case() {
    let says = [Says::fails(refusal()), Says::fails(refusal())];
    let mut bench = Bench::new(says).await;
    let second = Arc::new(Scripted::new([Says::says("a sea")]));
    bench.agent.models.push(Arc::clone(&second) as Arc<dyn Model>);
    let mut turn = bench.turn("look");
    turn.message.push(picture());
    assert_eq!(bench.agent.answer(&turn).await.unwrap().text, "a sea");
    assert_eq!((shown(&bench.model), shown(&second)), (vec![1, 0], vec![1]));
}

#[tokio::test]
async fn a_rejection_without_images_is_not_retried() {
    let bench = Bench::new([Says::fails(refusal())]).await;
    bench.agent.answer(&bench.turn("hello")).await.unwrap_err();
    assert_eq!(bench.model.requests().len(), 1);
}

#[tokio::test]
async fn images_that_are_too_large_together_do_not_fail_the_turn() {
    let calls: Vec<(&str, String)> =
        (0..6).map(|nth| ("look", format!(r#"{{"nth":{nth}}}"#))).collect();
    let calls: Vec<(&str, &str)> = calls.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let bench = Bench::new([Says::calls(&calls), Says::says("I see two")]).await;
    let bench = bench.tool(showing("look", 6_300_000));
    assert_eq!(bench.say("look at all").await.text, "I see two");
    assert_eq!(shown(&bench.model), [0, 2]);
    let results = bench.results();
    assert!(
        text(&results[0]).is_empty() && text(&results[5]).contains("by itself"),
        "{:?}",
        text(&results[5])
    );
}
