//! The HTTP+SSE transport of 2024-11-05: messages are posted, and everything the server sends
//! arrives on one stream (T5).

use std::sync::Arc;

use super::HttpWire;
use super::http_client::RequestTarget;
use super::route::{Protocol, Route};
use super::stream::EventStream;
use crate::wire::Closed;
use crate::wire::call_error::CallError;

impl HttpWire {
    /// Opens the stream of the 2024-11-05 transport, reads the POST endpoint from it, and switches
    /// to that transport. When the stream ends, the connection closes.
    pub(crate) async fn open_sse(self: &Arc<Self>) -> Result<(), CallError> {
        let before = Route::before_handshake(Protocol::Streamable);
        let mut events = EventStream::new(self.get(&before, None).await?, &self.responses);
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
            let reason = match wire.read_events(&mut events).await {
                Ok(_) => Closed::ByServer,
                Err(closed) => closed,
            };
            wire.close(reason);
        });
        Ok(())
    }

    /// Parses the endpoint. It must have the server's origin, because credentials are sent to it.
    fn endpoint(&self, data: &[u8]) -> Result<RequestTarget, CallError> {
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
