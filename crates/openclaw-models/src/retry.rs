//! Trying again what may well succeed a little later.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, Stream};
use openclaw_backoff::Jitter;
use tracing::info;

use crate::error::ModelError;
use crate::model::{Chunk, Dialect, Model, Request};

/// How often a request is sent at most.
const MAX_TRIES: u32 = 4;
/// Who asks for a longer wait is not waited for: the error says how long it would be.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The first wait, if nobody says how long. Each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A model that tries again, as long as nothing of the answer has been seen but thoughts: where the provider
/// wants fewer requests, has trouble, or cannot be reached.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Model>,
    /// For each request another.
    jitter: fn() -> Jitter,
}

impl Retrying {
    /// Makes a model try again.
    pub fn new(inner: Arc<dyn Model>) -> Self {
        Self { inner, jitter: Jitter::random }
    }

    /// Takes the jitter of each request from here.
    pub fn with_jitter(mut self, jitter: fn() -> Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The answer. Thoughts are passed on at once: whoever sees them begin anew misses nothing of it.
    fn answer(&self, request: Request) -> impl Stream<Item = Result<Chunk, ModelError>> + Send {
        let begun = self.inner.stream(request.clone());
        let state = Trying {
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
                info!(model = self.inner.name(), %error, ?wait, "trying again");
                state.wait = Some(wait);
                // Told first: the wait may be long.
                return Some((Ok(Chunk::Again { error: error.clone(), wait }), state));
            }
            state.is_answering |= !matches!(next, Ok(Chunk::Reasoning(_)));
            Some((next, state))
        })
    }
}

/// An answer that may have to be asked for again.
struct Trying<'a> {
    request: Request,
    answer: BoxStream<'a, Result<Chunk, ModelError>>,
    tries: u32,
    /// It is asked for again, after so long.
    wait: Option<Duration>,
    /// Whether anything of the answer was passed on.
    is_answering: bool,
    jitter: Jitter,
}

/// How long to wait before the next try, if there is to be one. What the provider asks for is a minimum.
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

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn context_tokens(&self) -> u64 {
        self.inner.context_tokens()
    }

    fn stream<'a>(&'a self, request: Request) -> BoxStream<'a, Result<Chunk, ModelError>> {
        self.answer(request).boxed()
    }
}
