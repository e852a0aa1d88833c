//! The transport of 2024-11-05: messages are posted, and everything the server says comes on one stream (T5).

use std::sync::Arc;

use super::HttpWire;
use super::client::Target;
use super::route::{Protocol, Route};
use super::stream::Events;
use crate::wire::Closed;
use crate::wire::call_error::CallError;

impl HttpWire {
    /// Opens the one stream of the transport of 2024-11-05, and learns from it where to post to. From now
    /// on that is how the server is spoken to. If the stream ends, so does the connection.
    pub(crate) async fn open_sse(self: &Arc<Self>) -> Result<(), CallError> {
        let before = Route::before_handshake(Protocol::Streamable);
        let mut events = Events::new(self.get(&before, None).await?);
        let endpoint = loop {
            let event = events.next().await.map_err(|_| {
                CallError::Protocol(
                    "the server closed the stream before it sent its endpoint".into(),
                )
            })?;
            if event.name == "endpoint" {
                break self.endpoint(&event.data)?;
            }
        };
        let route = Route::before_handshake(Protocol::Sse { endpoint: Box::new(endpoint) });
        self.route.send_replace(Arc::new(route));
        let wire = Arc::clone(self);
        self.tasks.spawn(async move {
            let reason = match wire.hear_out(&mut events).await {
                Ok(_) => Closed::ByServer,
                Err(closed) => closed,
            };
            wire.close(reason);
        });
        Ok(())
    }

    /// Credentials go there: it must be where they were meant for.
    fn endpoint(&self, data: &[u8]) -> Result<Target, CallError> {
        let named =
            std::str::from_utf8(data).ok().and_then(|text| self.target.url.join(text.trim()).ok());
        let endpoint = named.ok_or_else(|| {
            CallError::Protocol("the server sent an invalid endpoint URL".to_owned())
        })?;
        if endpoint.origin() != self.target.url.origin() {
            return Err(CallError::Protocol(format!(
                "the server sent an endpoint at another origin: {}",
                endpoint.origin().ascii_serialization()
            )));
        }
        self.client.target(endpoint).ok_or_else(|| {
            CallError::Protocol("the server sent an invalid endpoint URL".to_owned())
        })
    }
}
