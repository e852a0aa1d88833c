//! What is tried again, how often, and after how long. Time is paused: nothing waits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_backoff::Jitter;
use openclaw_models::scripted::{Scripted, Turn};
use openclaw_models::{Chunk, Model as _, ModelError, Request, Retrying, StopReason};
use tokio::time::Instant;

fn limited(seconds: Option<u64>) -> ModelError {
    let retry_after = seconds.map(Duration::from_secs);
    ModelError::RateLimited { provider: "x".into(), retry_after }
}

fn unreachable() -> ModelError {
    ModelError::Unreachable { provider: "x".into(), reason: "refused".into() }
}

/// What came of it, how often it was asked, and how many seconds passed.
async fn run(turns: Vec<Turn>) -> (Vec<Result<Chunk, ModelError>>, usize, u64) {
    let script = Arc::new(Scripted::new(turns));
    let model = Retrying::new(script.clone()).with_jitter(Jitter::none);
    let begun = Instant::now();
    let chunks: Vec<_> = model.stream(Request::default()).collect().await;
    let is_answer = |chunk: &Result<Chunk, _>| !matches!(chunk, Ok(Chunk::Again { .. }));
    let chunks = chunks.into_iter().filter(is_answer).collect();
    (chunks, script.requests().len(), begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_provider_asks_for_is_kept() {
    let turns = vec![Turn::fails(limited(Some(17))), Turn::says("hi")];
    let (chunks, asked, seconds) = run(turns).await;
    assert_eq!(chunks, [Ok(Chunk::Text("hi".into())), Ok(Chunk::End(StopReason::Done))]);
    assert_eq!((asked, seconds), (2, 17));
}

#[tokio::test(start_paused = true)]
async fn without_one_waits_double_and_the_fourth_failure_is_the_last() {
    let overloaded =
        ModelError::Overloaded { provider: "x".into(), message: String::new(), retry_after: None };
    let errors = [limited(None), unreachable(), ModelError::Interrupted, overloaded.clone()];
    let turns = errors.map(Turn::fails).into_iter().chain([Turn::says("never")]).collect();
    let (chunks, asked, seconds) = run(turns).await;
    assert_eq!(chunks, [Err(overloaded)]);
    assert_eq!((asked, seconds), (4, 1 + 2 + 4));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_longer_than_a_minute() {
    let (chunks, asked, seconds) = run(vec![Turn::fails(limited(Some(61)))]).await;
    assert_eq!(chunks, [Err(limited(Some(61)))]);
    assert_eq!((asked, seconds), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_get_better_is_not_tried_again() {
    for error in [
        ModelError::ContextTooLong,
        ModelError::Silent(Duration::from_secs(120)),
        ModelError::Auth { provider: "x".into(), message: String::new() },
        ModelError::Rejected { message: "no".into() },
    ] {
        let (chunks, asked, _) = run(vec![Turn::fails(error.clone()), Turn::says("never")]).await;
        assert_eq!((chunks, asked), (vec![Err(error)], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn once_a_piece_was_seen_nothing_is_tried_again() {
    let broken = Turn {
        chunks: vec![Ok(Chunk::Text("a".into())), Err(ModelError::Interrupted)],
        hangs: false,
    };
    let (chunks, asked, _) = run(vec![broken, Turn::says("never")]).await;
    assert_eq!(chunks, [Ok(Chunk::Text("a".into())), Err(ModelError::Interrupted)]);
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn thoughts_are_nothing_of_the_answer_yet() {
    let thought = || Ok(Chunk::Reasoning("hmm".into()));
    let overloaded =
        ModelError::Overloaded { provider: "x".into(), message: String::new(), retry_after: None };
    let broken = Turn { chunks: vec![thought(), Err(overloaded)], hangs: false };
    let (chunks, asked, _) = run(vec![broken, Turn::says("hi")]).await;
    let expected = [thought(), Ok(Chunk::Text("hi".into())), Ok(Chunk::End(StopReason::Done))];
    assert_eq!(chunks, expected);
    assert_eq!(asked, 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_told_of_and_who_drops_the_answer_ends_the_tries() {
    let script = Arc::new(Scripted::new([Turn::fails(limited(Some(30))), Turn::says("never")]));
    let model = Retrying::new(script.clone()).with_jitter(Jitter::none);
    let mut answer = model.stream(Request::default());
    let (error, wait) = (limited(Some(30)), Duration::from_secs(30));
    let told = answer.next().await;
    assert_eq!(told, Some(Ok(Chunk::Again { error, wait })), "told before it is waited for");
    let within = tokio::time::timeout(Duration::from_secs(10), answer.next()).await;
    assert!(within.is_err(), "it is still waiting");
    drop(answer);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(script.requests().len(), 1);
}
