//! The HTTP+SSE transport of 2024-11-05: responses are sent on the stream that GET has opened.

use std::sync::Arc;

use hyper::Response;

use super::bodies::{Body, EventBody, channel, events, status, text};
use super::{Exchange, Server};
use crate::engine::{Incoming, Listener, Outbox, lock};

/// A client of the old transport, and the stream to it.
pub(super) type Legacy = (Arc<crate::engine::Session>, Arc<dyn Outbox>);

impl Server {
    pub(super) fn open_legacy(&self) -> Response<Body> {
        let id = self.new_id("sse");
        let session = self.engine.new_session();
        let (out, messages) = channel();
        session.listen(Listener { out: Arc::clone(&out), subscription: None });
        let stream = EventBody::new(messages).flood(&self.engine.script.http, &session);
        lock(&self.legacy).retain(|_, (_, out)| !out.is_closed());
        lock(&self.legacy).insert(id.clone(), (session, out));
        let right = format!("/messages?sessionId={id}");
        let endpoint = self.engine.script.http.endpoint.as_ref().unwrap_or(&right);
        events(stream.first(format!("event: endpoint\ndata: {endpoint}\n\n")))
    }

    pub(super) async fn legacy_message(&self, exchange: &Exchange) -> Response<Body> {
        if let Ok(message) = serde_json::from_slice::<Incoming<'_>>(&exchange.body) {
            self.stall(&message).await;
        }
        let id = exchange.query.strip_prefix("sessionId=").unwrap_or_default();
        let Some((session, out)) = lock(&self.legacy).get(id).cloned() else {
            return status(404);
        };
        self.engine.handle(&session, &exchange.body, &out);
        text(202, "text/plain", "Accepted")
    }
}
