//! Trying again what may well succeed a little later.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tracing::debug;

use crate::error::ModelError;
use crate::model::{Chunk, Dialect, Model, Request};

/// How often a request is sent at most.
const MAX_TRIES: u32 = 4;
/// Who asks for a longer wait is not waited for: the error says how long it would be.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The first wait, if nobody says how long. Each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A model that tries again, as long as nothing of the answer has been seen: where the provider wants
/// fewer requests, has trouble, or cannot be reached.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Model>,
}

impl Retrying {
    /// Makes a model try again.
    pub fn new(inner: Arc<dyn Model>) -> Self {
        Self { inner }
    }

    /// The answer, once its first piece is there, or there is nothing more to be tried.
    async fn begin(&self, request: Request) -> BoxStream<'_, Result<Chunk, ModelError>> {
        let mut tries = 1;
        loop {
            let mut answer = self.inner.stream(request.clone());
            let first = answer.next().await;
            if let Some(Err(error)) = &first
                && let Some(wait) = wait_for(error, tries)
            {
                debug!(model = self.inner.name(), %error, ?wait, "trying again");
                tokio::time::sleep(wait).await;
                tries += 1;
                continue;
            }
            return stream::iter(first).chain(answer).boxed();
        }
    }
}

/// How long to wait before the next try, if there is to be one.
fn wait_for(error: &ModelError, tries: u32) -> Option<Duration> {
    if tries >= MAX_TRIES || !error.is_passing() {
        return None;
    }
    let wait = error.retry_after().unwrap_or_else(|| FIRST_WAIT * 2_u32.pow(tries - 1));
    (wait <= MAX_WAIT).then_some(wait)
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn context_tokens(&self) -> u64 {
        self.inner.context_tokens()
    }

    fn stream<'a>(&'a self, request: Request) -> BoxStream<'a, Result<Chunk, ModelError>> {
        stream::once(self.begin(request)).flatten().boxed()
    }
}
