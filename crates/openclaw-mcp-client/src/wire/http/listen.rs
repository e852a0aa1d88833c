//! The stream for messages that the server initiates (T4).

use std::sync::Arc;
use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::time::{sleep, timeout};

use super::HttpWire;
use super::exchange::pause;
use super::route::{Protocol, Route};
use super::stream::{EventStream, EventsEnd};
use crate::wire::Closed;
use crate::wire::call_error::CallError;

/// After this many consecutive failures, the server is considered lost.
const OUT_OF_REACH: u32 = 3;
/// How long a server may take to open its stream before calls proceed without it.
const SETTLING: Duration = Duration::from_secs(1);

impl HttpWire {
    /// Listens for messages that the server initiates, if it offers a stream for them. Each session
    /// has its own.
    pub(super) fn start_listening(self: &Arc<Self>) {
        let wire = Arc::clone(self);
        self.tasks.spawn(async move {
            let mut routes = wire.route.subscribe();
            loop {
                let route = Arc::clone(&routes.borrow_and_update());
                let listened = async {
                    wire.listen(&route).await;
                    // This session has no stream.
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = listened => {}
                    changed = routes.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }

    /// Waits until it is known whether the server offers such a stream: requests that it sends
    /// earlier, while it processes a call, would be lost. The wait is bounded, because some servers
    /// respond only once they have something to send.
    pub(crate) async fn until_listening(&self) {
        if matches!(self.route().protocol, Protocol::Streamable) {
            let mut settled = self.has_stream_settled.subscribe();
            let _ = timeout(SETTLING, settled.wait_for(|has| *has)).await;
        }
    }

    /// Reads and resumes the stream. Returns if the server offers none.
    async fn listen(&self, route: &Route) {
        if !matches!(route.protocol, Protocol::Streamable) {
            return;
        }
        let mut events: Option<EventStream> = None;
        let mut fruitless = 0;
        let mut out_of_reach = 0;
        let mut jitter = Jitter::random();
        loop {
            let last_id = events.as_ref().and_then(EventStream::last_id).map(str::to_owned);
            let got = self.get(route, last_id.as_deref()).await;
            self.has_stream_settled.send_replace(true);
            match got {
                Ok(response) => {
                    out_of_reach = 0;
                    match &mut events {
                        Some(events) => {
                            // Without an id, the server cannot repeat what it sent meanwhile.
                            if last_id.is_none() {
                                self.interrupted();
                            }
                            events.go_on(response);
                        }
                        None => events = Some(EventStream::new(response, &self.responses)),
                    }
                    if let Some(events) = &mut events {
                        let heard = self.read_events(events).await;
                        let Ok(heard) = heard else { return };
                        let is_new = heard > 0 || events.last_id() != last_id.as_deref();
                        fruitless = if is_new { 0 } else { fruitless + 1 };
                    }
                }
                Err(CallError::Unreachable(cause)) => {
                    out_of_reach += 1;
                    fruitless += 1;
                    if out_of_reach == OUT_OF_REACH {
                        return self.close(Closed::Lost(cause.to_string()));
                    }
                }
                Err(error @ (CallError::RateLimited { .. } | CallError::OutOfService { .. })) => {
                    let retry_after = error.retry_after();
                    sleep(jitter.after(pause(retry_after, fruitless))).await;
                    fruitless += 1;
                    continue;
                }
                Err(CallError::Http { status: 500.., .. }) => fruitless += 1,
                Err(error) => {
                    tracing::debug!(%error, "the server offers no stream of its own");
                    return;
                }
            }
            let retry = events.as_ref().and_then(EventStream::retry);
            sleep(jitter.after(pause(retry, fruitless.saturating_sub(1)))).await;
        }
    }

    /// Reads a stream to its end and returns the number of messages.
    pub(super) async fn read_events(&self, events: &mut EventStream) -> Result<usize, Closed> {
        let mut heard = 0;
        loop {
            match events.next().await {
                Ok(event) if event.name == "message" => {
                    heard += 1;
                    self.deliver(&event.data, None).await?;
                }
                Ok(_) => {}
                Err(EventsEnd::Over | EventsEnd::Broken(_)) => return Ok(heard),
                Err(EventsEnd::TooLong | EventsEnd::Endless | EventsEnd::Memory(_)) => {
                    return Err(Closed::LineTooLong);
                }
            }
        }
    }
}
