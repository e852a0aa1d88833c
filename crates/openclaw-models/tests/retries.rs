//! Which errors are retried, how often, and after which delay. Time is paused: nothing waits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_backoff::Jitter;
use openclaw_models::scripted::{Scripted, ScriptedTurn};
use openclaw_models::{Chunk, Model as _, ModelError, ModelRequest, Retrying, StopReason};
use tokio::time::Instant;

fn limited(seconds: Option<u64>) -> ModelError {
    let retry_after = seconds.map(Duration::from_secs);
    ModelError::RateLimited { provider: "x".into(), message: String::new(), retry_after }
}

fn unreachable() -> ModelError {
    ModelError::Unreachable { provider: "x".into(), reason: "refused".into() }
}

/// Returns the chunks, the number of requests, and the elapsed seconds.
async fn run(turns: Vec<ScriptedTurn>) -> (Vec<Result<Chunk, ModelError>>, usize, u64) {
    let script = Arc::new(Scripted::new(turns));
    let model = Retrying::new(script.clone()).with_jitter(Jitter::none);
    let begun = Instant::now();
    let chunks: Vec<_> = model.stream(ModelRequest::default()).collect().await;
    let is_answer = |chunk: &Result<Chunk, _>| !matches!(chunk, Ok(Chunk::Again { .. }));
    let chunks = chunks.into_iter().filter(is_answer).collect();
    (chunks, script.requests().len(), begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_the_provider_requests_is_kept() {
    let turns = vec![ScriptedTurn::fails(limited(Some(17))), ScriptedTurn::says("hi")];
    let (chunks, asked, seconds) = run(turns).await;
    assert_eq!(chunks, [Ok(Chunk::Text("hi".into())), Ok(Chunk::End(StopReason::Done))]);
    assert_eq!((asked, seconds), (2, 17));
}

#[tokio::test(start_paused = true)]
async fn delays_double_and_the_fourth_failure_is_final() {
    let overloaded =
        ModelError::Overloaded { provider: "x".into(), message: String::new(), retry_after: None };
    let errors = [limited(None), unreachable(), ModelError::Interrupted, overloaded.clone()];
    let turns =
        errors.map(ScriptedTurn::fails).into_iter().chain([ScriptedTurn::says("never")]).collect();
    let (chunks, asked, seconds) = run(turns).await;
    assert_eq!(chunks, [Err(overloaded)]);
    assert_eq!((asked, seconds), (4, 1 + 2 + 4));
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_more_than_a_minute_fails() {
    let (chunks, asked, seconds) = run(vec![ScriptedTurn::fails(limited(Some(61)))]).await;
    assert_eq!(chunks, [Err(limited(Some(61)))]);
    assert_eq!((asked, seconds), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    for error in [
        ModelError::ContextTooLong,
        ModelError::Silent(Duration::from_secs(120)),
        ModelError::Auth { provider: "x".into(), message: String::new() },
        ModelError::Rejected { provider: "x".into(), message: "no".into() },
    ] {
        let (chunks, asked, _) =
            run(vec![ScriptedTurn::fails(error.clone()), ScriptedTurn::says("never")]).await;
        assert_eq!((chunks, asked), (vec![Err(error)], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_begun_is_not_retried() {
    let broken = ScriptedTurn {
        chunks: vec![Ok(Chunk::Text("a".into())), Err(ModelError::Interrupted)],
        hangs: false,
    };
    let (chunks, asked, _) = run(vec![broken, ScriptedTurn::says("never")]).await;
    assert_eq!(chunks, [Ok(Chunk::Text("a".into())), Err(ModelError::Interrupted)]);
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_after_thinking_is_retried() {
    let thought = || Ok(Chunk::Reasoning("hmm".into()));
    let overloaded =
        ModelError::Overloaded { provider: "x".into(), message: String::new(), retry_after: None };
    let broken = ScriptedTurn { chunks: vec![thought(), Err(overloaded)], hangs: false };
    let (chunks, asked, _) = run(vec![broken, ScriptedTurn::says("hi")]).await;
    let expected = [thought(), Ok(Chunk::Text("hi".into())), Ok(Chunk::End(StopReason::Done))];
    assert_eq!(chunks, expected);
    assert_eq!(asked, 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_reported_and_dropping_the_answer_ends_the_retries() {
    let script = Arc::new(Scripted::new([
        ScriptedTurn::fails(limited(Some(30))),
        ScriptedTurn::says("never"),
    ]));
    let model = Retrying::new(script.clone()).with_jitter(Jitter::none);
    let mut answer = model.stream(ModelRequest::default());
    let (error, wait) = (limited(Some(30)), Duration::from_secs(30));
    let told = answer.next().await;
    assert_eq!(told, Some(Ok(Chunk::Again { error, wait })), "reported before the wait");
    let within = tokio::time::timeout(Duration::from_secs(10), answer.next()).await;
    assert!(within.is_err(), "it is still waiting");
    drop(answer);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(script.requests().len(), 1);
}
