//! The event stream of a response.

use std::sync::Arc;

use http::Response;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit};
use tokio::task::coop::consume_budget;

use super::body::too_many;
use super::http_client::{HttpError, PooledBody};
use super::sse::{Parser, SseEvent};
use crate::wire::MAX_MESSAGE;
use crate::wire::call_error::{CallError, ReachProblem, Unreachable, UnusableResponse};

/// An open stream of events.
#[derive(Debug)]
pub(super) struct EventStream {
    body: PooledBody,
    parser: Parser,
    /// Bytes received so far, over all responses.
    received: usize,
    /// Maximum number of bytes besides the current event.
    most_beside: usize,
    /// The memory of the current event.
    memory: BytePermit,
    budget: Arc<ByteBudget>,
    /// Whether the end of the body is marked: otherwise it looks like a lost connection.
    is_delimited: bool,
}

/// Why there is no further event.
#[derive(Debug)]
pub(super) enum EventsEnd {
    /// The server ended the stream.
    Over,
    /// The connection broke, or was closed without an end mark.
    Broken(Option<HttpError>),
    /// An event is too long.
    TooLong,
    /// The limit of bytes besides the current event is exceeded.
    Endless,
    /// There is no memory for the event.
    Memory(BudgetSpent),
}

impl EventStream {
    /// Opens the stream. What it receives counts in `budget`.
    pub(super) fn new(response: Response<PooledBody>, budget: &Arc<ByteBudget>) -> Self {
        let headers = response.headers();
        let is_delimited =
            headers.contains_key(TRANSFER_ENCODING) || headers.contains_key(CONTENT_LENGTH);
        // Besides the data, an event has a few other lines.
        let parser = Parser::new(MAX_MESSAGE + 64 * 1024);
        let most_beside = usize::MAX;
        let body = response.into_body();
        let received = 0;
        let memory = budget.permit();
        let budget = Arc::clone(budget);
        Self { body, parser, received, most_beside, memory, budget, is_delimited }
    }

    /// Limits the number of bytes besides the current event, comments included. Without a limit,
    /// the stream may be endless.
    pub(super) fn at_most(mut self, bytes: usize) -> Self {
        self.most_beside = bytes;
        self
    }

    /// Returns the next event. Safe to cancel: received bytes are kept.
    pub(super) async fn next(&mut self) -> Result<SseEvent, EventsEnd> {
        // A chunk may contain thousands of events.
        consume_budget().await;
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(event);
            }
            if self.received.saturating_sub(self.parser.unfinished()) > self.most_beside {
                return Err(EventsEnd::Endless);
            }
            match self.body.chunk().await {
                Ok(Some(piece)) => {
                    self.received = self.received.saturating_add(piece.len());
                    self.parser.feed(&piece).map_err(|_| EventsEnd::TooLong)?;
                    self.memory.resize(self.parser.unfinished()).map_err(EventsEnd::Memory)?;
                }
                Ok(None) if self.is_delimited => return Err(EventsEnd::Over),
                Ok(None) => return Err(EventsEnd::Broken(None)),
                Err(error) => return Err(EventsEnd::Broken(Some(error))),
            }
        }
    }

    /// Continues with another response where this one ended.
    pub(super) fn go_on(&mut self, response: Response<PooledBody>) {
        let last_id = self.parser.last_id.take();
        let retry = self.parser.retry;
        let received = self.received;
        let most_beside = self.most_beside;
        *self = Self::new(response, &self.budget).at_most(most_beside);
        (self.parser.last_id, self.parser.retry) = (last_id, retry);
        self.received = received;
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

impl EventsEnd {
    /// Converts the end of a stream before the response, given how an error of the connection is
    /// described.
    pub(super) fn before_response(self, broken: impl Fn(&HttpError) -> CallError) -> CallError {
        match self {
            Self::Over => {
                CallError::Protocol("the server closed the stream before it responded".to_owned())
            }
            Self::Broken(Some(error)) => broken(&error),
            Self::Broken(None) => Unreachable {
                problem: ReachProblem::Broken,
                address: None,
                cause: "the server closed it before it responded".to_owned(),
            }
            .into(),
            Self::Endless => UnusableResponse::Endless.into(),
            Self::Memory(spent) => too_many(spent).into(),
            Self::TooLong => {
                UnusableResponse::EventTooLarge { mib: MAX_MESSAGE / 1024 / 1024 }.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use http::{HeaderMap, Method};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use url::Url;

    use super::*;
    use crate::wire::http::{HttpClient, ServerRoute, Stream};

    /// Returns the events of a server that responds with these headers and this body, and closes
    /// the connection.
    async fn events(headers: &str, body: &str) -> EventStream {
        let (ours, mut theirs) = duplex(1024 * 1024);
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
        tokio::spawn(async move {
            let mut request = [0; 1024];
            let _ = theirs.read(&mut request).await;
            let _ = theirs.write_all(answer.as_bytes()).await;
        });
        let ours: Mutex<Option<DuplexStream>> = Mutex::new(Some(ours));
        let connect = move || {
            let stream = ours.lock().unwrap().take().unwrap();
            async { Ok(Box::new(TokioIo::new(stream)) as Box<dyn Stream>) }.boxed()
        };
        let client = HttpClient::new(ServerRoute {
            connect: Box::new(connect),
            connect_timeout: Duration::from_secs(60),
            is_proxied: false,
            forwarded: None,
            headers: HeaderMap::new(),
            traffic: crate::wire::Traffic::default(),
        });
        let target = client.target(Url::parse("http://localhost/").unwrap()).unwrap();
        let sent = client.send(Method::GET, &target, HeaderMap::new(), Bytes::new());
        EventStream::new(sent.await.unwrap(), &ByteBudget::new(usize::MAX))
    }

    #[tokio::test]
    async fn reading_yields_although_there_are_more_events() {
        let mut events = events("", &"data:x\n\n".repeat(10_000)).await;
        events.next().await.unwrap();
        // Starts with a fresh budget.
        tokio::task::yield_now().await;
        let mut read = 0;
        let reading = async {
            while events.next().await.is_ok() {
                read += 1;
            }
        };
        assert!(reading.now_or_never().is_none());
        assert!((1..200).contains(&read), "{read} events in one poll");
    }

    #[tokio::test]
    async fn an_end_is_distinguished_from_a_lost_connection() {
        let event = "data: x\n\n";
        let length = format!("content-length: {}\r\n", event.len());
        let mut whole = events(&length, event).await;
        whole.next().await.unwrap();
        assert!(matches!(whole.next().await, Err(EventsEnd::Over)));
        for headers in ["", "content-length: 1000\r\n"] {
            let mut cut = events(headers, event).await;
            cut.next().await.unwrap();
            assert!(matches!(cut.next().await, Err(EventsEnd::Broken(_))), "{headers}");
        }
    }

    #[tokio::test]
    async fn comments_count_as_part_of_the_stream() {
        let mut events = events("", &": x\n\n".repeat(1_000)).await.at_most(1_000);
        assert!(matches!(events.next().await, Err(EventsEnd::Endless)));
    }
}
