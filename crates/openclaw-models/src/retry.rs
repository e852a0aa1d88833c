//! Retries requests that failed with a transient error.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, Stream};
use openclaw_backoff::Jitter;
use openclaw_tools::schema::SchemaDialect;
use tracing::info;

use crate::error::ModelError;
use crate::model::{Chunk, Model, ModelRequest};

/// The maximum number of attempts.
const MAX_TRIES: u32 = 4;
/// If the provider requests a longer wait, the request fails; the error contains the wait.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The first delay if the provider requests none. Each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A model that retries transient errors: a rate limit, a server error, a failed connection. Once a
/// chunk of the answer other than thinking was passed on, errors are not retried.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Model>,
    /// Creates the jitter of a request.
    jitter: fn() -> Jitter,
}

impl Retrying {
    /// Adds retries to a model.
    pub fn new(inner: Arc<dyn Model>) -> Self {
        Self { inner, jitter: Jitter::random }
    }

    /// Sets the jitter of each request.
    pub fn with_jitter(mut self, jitter: fn() -> Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Streams the answer. Thinking is passed on immediately: if it starts over after a retry,
    /// nothing of the answer is lost.
    fn answer(
        &self,
        request: ModelRequest,
    ) -> impl Stream<Item = Result<Chunk, ModelError>> + Send {
        let begun = self.inner.stream(request.clone());
        let state = RetryableRequest {
            request,
            answer: begun,
            tries: 1,
            wait: None,
            is_answering: false,
            jitter: (self.jitter)(),
        };
        stream::unfold(state, move |mut state| async move {
            if let Some(wait) = state.wait.take() {
                tokio::time::sleep(wait).await;
                state.tries += 1;
                state.answer = self.inner.stream(state.request.clone());
            }
            let next = state.answer.next().await?;
            if let Err(error) = &next
                && !state.is_answering
                && let Some(wait) = wait_for(error, state.tries, &mut state.jitter)
            {
                info!(model = self.inner.name(), %error, ?wait, "retrying");
                state.wait = Some(wait);
                // Reported before the wait, which may be long.
                return Some((Ok(Chunk::Again { error: error.clone(), wait }), state));
            }
            state.is_answering |= !matches!(next, Ok(Chunk::Reasoning(_)));
            Some((next, state))
        })
    }
}

/// A request that may be retried.
struct RetryableRequest<'a> {
    request: ModelRequest,
    answer: BoxStream<'a, Result<Chunk, ModelError>>,
    tries: u32,
    /// The delay before the next attempt, if there is one.
    wait: Option<Duration>,
    /// Whether any part of the answer was passed on.
    is_answering: bool,
    jitter: Jitter,
}

/// Returns the delay before the next attempt; none if the error is final. The wait that the provider
/// requests is a minimum.
fn wait_for(error: &ModelError, tries: u32, jitter: &mut Jitter) -> Option<Duration> {
    if tries >= MAX_TRIES || !error.is_passing() {
        return None;
    }
    match error.retry_after() {
        Some(wait) => (wait <= MAX_WAIT).then(|| jitter.after(wait)),
        None => Some(jitter.around(FIRST_WAIT * 2_u32.pow(tries - 1))),
    }
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn takes_tools(&self) -> bool {
        self.inner.takes_tools()
    }

    fn dialect(&self) -> SchemaDialect {
        self.inner.dialect()
    }

    fn context_tokens(&self) -> u64 {
        self.inner.context_tokens()
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        self.answer(request).boxed()
    }
}
