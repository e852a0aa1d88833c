//! The stream that stays open for what a server says by itself (T4).

use std::sync::Arc;
use std::time::Duration;

use openclaw_backoff::Jitter;
use tokio::time::{sleep, timeout};

use super::HttpWire;
use super::exchange::pause;
use super::route::{Protocol, Route};
use super::stream::{End, Events};
use crate::wire::Closed;
use crate::wire::call_error::CallError;

/// So many times in a row a server may be out of reach before it counts as lost.
const OUT_OF_REACH: u32 = 3;
/// How long a server may take to open a stream of its own before calls are made without it.
const SETTLING: Duration = Duration::from_secs(1);

impl HttpWire {
    /// Listens to what the server says by itself, if it offers that. Every session has its own stream.
    pub(super) fn start_listening(self: &Arc<Self>) {
        let wire = Arc::clone(self);
        self.tasks.spawn(async move {
            let mut routes = wire.route.subscribe();
            loop {
                let route = Arc::clone(&routes.borrow_and_update());
                let listened = async {
                    wire.listen(&route).await;
                    // There is no stream in this session.
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

    /// Waits until the server has said whether it offers such a stream. What it asks before that, while
    /// it answers a call, would be lost. Some say nothing until they have something to say.
    pub(crate) async fn until_listening(&self) {
        if matches!(self.route().protocol, Protocol::Streamable) {
            let mut settled = self.has_stream_settled.subscribe();
            let _ = timeout(SETTLING, settled.wait_for(|has| *has)).await;
        }
    }

    /// Returns if the server offers no such stream.
    async fn listen(&self, route: &Route) {
        if !matches!(route.protocol, Protocol::Streamable) {
            return;
        }
        let mut events: Option<Events> = None;
        let (mut fruitless, mut out_of_reach) = (0, 0);
        let mut jitter = Jitter::random();
        loop {
            let last_id = events.as_ref().and_then(Events::last_id).map(str::to_owned);
            let got = self.get(route, last_id.as_deref()).await;
            self.has_stream_settled.send_replace(true);
            match got {
                Ok(response) => {
                    out_of_reach = 0;
                    match &mut events {
                        Some(events) => events.go_on(response),
                        None => events = Some(Events::new(response)),
                    }
                    if let Some(events) = &mut events {
                        let heard = self.hear_out(events).await;
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
            let retry = events.as_ref().and_then(Events::retry);
            sleep(jitter.after(pause(retry, fruitless.saturating_sub(1)))).await;
        }
    }

    /// Reads a stream to its end; says how many messages there were.
    pub(super) async fn hear_out(&self, events: &mut Events) -> Result<usize, Closed> {
        let mut heard = 0;
        loop {
            match events.next().await {
                Ok(event) if event.name == "message" => {
                    heard += 1;
                    self.deliver(&event.data, None).await?;
                }
                Ok(_) => {}
                Err(End::Over(_)) => return Ok(heard),
                Err(End::TooLong) => return Err(Closed::LineTooLong),
            }
        }
    }
}
