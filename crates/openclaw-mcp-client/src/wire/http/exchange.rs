//! A request and its response, as JSON or on a stream (T3, T4).

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use openclaw_backoff::Jitter;
use openclaw_content::{Untrusted, clean_line};
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use super::HttpWire;
use super::body::{self, BodyType, shown, whole};
use super::http_client::PooledBody;
use super::post::{Outgoing, PostRefusal};
use super::route::{Protocol, Route};
use super::stream::{EventStream, EventsEnd};
use crate::wire::call_error::{CallError, ReachProblem, Unreachable, UnusableResponse};
use crate::wire::calls::{CallReply, Fault};
use crate::wire::deliver::Wanted;
use crate::wire::{Closed, MAX_MESSAGE};

/// Maximum number of bytes on a stream before the response, comments included.
const MAX_BESIDE: usize = 64 * 1024 * 1024;
/// Maximum number of consecutive resumptions without a new event.
const FRUITLESS: u32 = 5;
/// Delay before a resumption, if the server does not set one.
const RETRY: Duration = Duration::from_secs(1);
/// Minimum delay, whatever the server sets.
const SHORTEST_RETRY: Duration = Duration::from_millis(20);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Limits (bytes, time) for reading what follows a response, so that the connection can be reused.
const TAIL: (usize, Duration) = (64 * 1024, Duration::from_secs(1));

/// Returns the delay before a stream is requested again, without jitter. Never shorter than
/// `retry`.
pub(super) fn pause(retry: Option<Duration>, fruitless: u32) -> Duration {
    let retry = retry.unwrap_or(RETRY).max(SHORTEST_RETRY);
    retry.saturating_mul(1 << fruitless.min(10)).min(LONGEST_RETRY.max(retry))
}

impl HttpWire {
    /// Posts a message. If the session is lost, renews it and retries once.
    pub(super) async fn post_in_session(
        self: &Arc<Self>,
        message: &Outgoing<'_>,
    ) -> Result<(Arc<Route>, Response<PooledBody>), CallError> {
        let route = self.route();
        let refusal = match self.post(&route, message).await {
            Ok(response) => return Ok((route, response)),
            Err(refusal) => refusal,
        };
        match refusal {
            PostRefusal::SessionLost => Box::pin(self.renew(&route)).await?,
            PostRefusal::Failed(error) => {
                self.notice(&error);
                return Err(error);
            }
        }
        let route = self.route();
        match Box::pin(self.post(&route, message)).await {
            Ok(response) => Ok((route, response)),
            Err(PostRefusal::Failed(error)) => Err(error),
            Err(PostRefusal::SessionLost) => {
                Err(CallError::Protocol("the server drops new sessions immediately".to_owned()))
            }
        }
    }

    /// Closes the connection if the server is unreachable, so that the supervisor notices. A broken
    /// connection or stream does not count.
    pub(super) fn notice(&self, error: &CallError) {
        if let CallError::Unreachable(unreachable) = error
            && unreachable.problem != ReachProblem::Broken
        {
            self.close(Closed::Lost(unreachable.to_string()));
        }
    }

    /// Sends a request and reads its response. `None` means that the response will arrive on the
    /// open stream.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        wanted: Wanted,
        message: &Outgoing<'_>,
    ) -> Result<Option<CallReply>, CallError> {
        let (route, response) = self.post_in_session(message).await?;
        self.answer(wanted, &route, response).await
    }

    /// Reads the response to an accepted request.
    pub(super) async fn answer(
        self: &Arc<Self>,
        wanted: Wanted,
        route: &Route,
        response: Response<PooledBody>,
    ) -> Result<Option<CallReply>, CallError> {
        if matches!(route.protocol, Protocol::Sse { .. })
            || response.status() == StatusCode::ACCEPTED
        {
            body::beginning(response, body::MAX_FAILURE).await;
            return Ok(None);
        }
        match body::form(&response) {
            BodyType::Events => {
                let events = EventStream::new(response, &self.responses).at_most(MAX_BESIDE);
                self.streamed(wanted, route, events).await.map(Some)
            }
            BodyType::Json => {
                let reading = whole(response, MAX_MESSAGE, &self.responses, self.broken());
                let (body, _memory) = reading.await?;
                match self.deliver(&body, Some(wanted)).await? {
                    Some(Err(Fault::Unreadable)) | None => Err(self.no_answer(&body)),
                    answer => Ok(answer),
                }
            }
            BodyType::Other(kind) => {
                let kind =
                    if kind.is_empty() { "data without a content type" } else { kind.as_str() };
                Err(CallError::Protocol(format!(
                    "the server responded with {kind} instead of JSON"
                )))
            }
        }
    }

    /// Returns the error for a body without a response.
    fn no_answer(&self, body: &[u8]) -> CallError {
        if body.iter().all(u8::is_ascii_whitespace) {
            return UnusableResponse::Empty.into();
        }
        let shown = shown(body, self.redactor());
        match serde_json::from_slice::<&RawValue>(body) {
            Ok(_) => CallError::Protocol(format!("the server did not answer the request: {shown}")),
            Err(_) => CallError::Unreadable { body: shown },
        }
    }

    /// Reads a stream until the response, resuming it as necessary.
    async fn streamed(
        self: &Arc<Self>,
        wanted: Wanted,
        route: &Route,
        mut events: EventStream,
    ) -> Result<CallReply, CallError> {
        let mut fruitless = 0;
        loop {
            let last_id = events.last_id().map(str::to_owned);
            match events.next().await {
                Ok(event) => {
                    fruitless = 0;
                    if event.name == "message"
                        && let Some(answer) = self.deliver(&event.data, Some(wanted)).await?
                    {
                        self.let_go(events);
                        return Ok(answer);
                    }
                }
                Err(end @ (EventsEnd::Over | EventsEnd::Broken(_)))
                    if !route.is_modern() && events.last_id().is_some() =>
                {
                    if events.last_id() != last_id.as_deref() {
                        fruitless = 0;
                    }
                    if fruitless == FRUITLESS {
                        return Err(lost("it cannot be resumed"));
                    }
                    let retry = pause(events.retry(), fruitless);
                    if matches!(end, EventsEnd::Over) {
                        self.calls().paused(wanted.id, retry);
                    }
                    sleep(Jitter::random().after(retry)).await;
                    fruitless += 1;
                    Box::pin(self.resume(route, &mut events)).await?;
                }
                Err(end) => return Err(end.before_response(self.broken())),
            }
        }
    }

    /// Requests the rest of a stream. A server that is unreachable right now is retried.
    async fn resume(&self, route: &Route, events: &mut EventStream) -> Result<(), CallError> {
        match self.get(route, events.last_id()).await {
            Ok(response) => {
                events.go_on(response);
                Ok(())
            }
            Err(CallError::Unreachable(_)) => Ok(()),
            Err(error) => Err(lost(&format!("it cannot be resumed: {error}"))),
        }
    }

    /// Drains a stream after its response. Most streams end here; read to its end, the connection
    /// can be reused.
    fn let_go(self: &Arc<Self>, mut events: EventStream) {
        if !events.is_over() {
            let (bound, patience) = TAIL;
            self.tasks.spawn(async move {
                let _ = timeout(patience, events.drain(bound)).await;
            });
        }
    }
}

/// The error for a stream that ended before the response, and cannot be resumed.
fn lost(why: &str) -> CallError {
    let cause = format!("the stream was interrupted before the response, and {why}");
    let cause = clean_line(Untrusted::new(&cause), 300);
    Unreachable { problem: ReachProblem::Broken, address: None, cause }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_from_the_servers_value_up_to_a_limit() {
        let ms = Duration::from_millis;
        assert_eq!(pause(Some(ms(500)), 0), ms(500));
        assert_eq!(pause(Some(ms(500)), 2), ms(2000));
        assert_eq!(pause(None, 0), RETRY);
        assert_eq!(pause(None, 31), LONGEST_RETRY);
        assert_eq!(pause(Some(Duration::ZERO), 0), SHORTEST_RETRY);
        assert_eq!(pause(Some(ms(120_000)), 3), ms(120_000), "the server may set a longer delay");
    }
}
