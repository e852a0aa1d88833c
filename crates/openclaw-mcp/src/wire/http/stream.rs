//! The event stream of a response.

use http::Response;

use super::client::{Body, HttpError};
use super::sse::{Event, Parser};
use crate::wire::MAX_MESSAGE;
use crate::wire::call_error::{CallError, UnusableResponse};

/// An open stream of events.
#[derive(Debug)]
pub(super) struct Events {
    body: Body,
    parser: Parser,
}

/// Why there is no further event.
#[derive(Debug)]
pub(super) enum End {
    /// The stream ended, or the connection broke.
    Over(Option<HttpError>),
    /// An event is too long.
    TooLong,
}

impl Events {
    pub(super) fn new(response: Response<Body>) -> Self {
        // Besides the data, an event has a few other lines.
        Self { body: response.into_body(), parser: Parser::new(MAX_MESSAGE + 64 * 1024) }
    }

    /// Returns the next event. Safe to cancel: received bytes are kept.
    pub(super) async fn next(&mut self) -> Result<Event, End> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(event);
            }
            match self.body.chunk().await {
                Ok(Some(piece)) => self.parser.feed(&piece).map_err(|_| End::TooLong)?,
                Ok(None) => return Err(End::Over(None)),
                Err(error) => return Err(End::Over(Some(error))),
            }
        }
    }

    /// Continues with another response where this one ended.
    pub(super) fn go_on(&mut self, response: Response<Body>) {
        let (last_id, retry) = (self.parser.last_id.take(), self.parser.retry);
        *self = Self::new(response);
        (self.parser.last_id, self.parser.retry) = (last_id, retry);
    }

    pub(super) fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    pub(super) fn retry(&self) -> Option<std::time::Duration> {
        self.parser.retry
    }

    /// Returns whether the stream has ended, without waiting.
    pub(super) fn is_over(&mut self) -> bool {
        use futures_util::FutureExt as _;
        !matches!(self.body.chunk().now_or_never(), None | Some(Ok(Some(_))))
    }

    /// Reads up to `bound` bytes to the end, so that the connection can be reused.
    pub(super) async fn drain(mut self, bound: usize) {
        let mut read = 0;
        while let Ok(Some(piece)) = self.body.chunk().await {
            read += piece.len();
            if read > bound {
                return;
            }
        }
    }
}

impl From<End> for CallError {
    fn from(end: End) -> Self {
        let protocol = |how: &str| Self::Protocol(how.to_owned());
        match end {
            End::Over(None) => protocol("the server closed the stream before it responded"),
            End::Over(Some(_)) => {
                protocol("the stream was interrupted before the server responded")
            }
            End::TooLong => {
                UnusableResponse::EventTooLarge { mib: MAX_MESSAGE / 1024 / 1024 }.into()
            }
        }
    }
}
