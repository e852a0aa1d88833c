//! Response bodies: complete ones, event streams, and endless streams.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::{Bytes, Frame};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Sleep;

use super::{Server, never};
use crate::engine::{Outbox, Session, lock};
use crate::script::{DropStream, HttpScript};

/// Any body.
pub(crate) type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

/// A response with a complete body.
pub(crate) fn text(code: u16, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = status(code);
    *response.body_mut() = Full::new(body.into()).map_err(never).boxed_unsync();
    set_header(&mut response, "content-type", kind);
    response
}

/// A response without a body.
pub(crate) fn status(code: u16) -> Response<Body> {
    let mut response = Response::new(Full::default().map_err(never).boxed_unsync());
    *response.status_mut() = code.try_into().unwrap_or_default();
    response
}

/// Sets a header; an invalid one is ignored.
pub(crate) fn set_header(response: &mut Response<Body>, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) =
        (hyper::header::HeaderName::from_bytes(name.as_bytes()), value.parse())
    {
        response.headers_mut().append(name, value);
    }
}

/// An event stream.
pub(super) fn events<B>(body: B) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes, Error = std::io::Error> + Send + 'static,
{
    let mut response = Response::new(body.boxed_unsync());
    set_header(&mut response, "content-type", "text/event-stream");
    set_header(&mut response, "cache-control", "no-cache");
    response
}

/// Sends messages into a response.
///
/// The channel is unbounded: the engine must not block, and sends no more than its script says.
pub(super) struct Channel(UnboundedSender<Vec<u8>>);

/// Both ends of a channel.
pub(super) fn channel() -> (Arc<dyn Outbox>, UnboundedReceiver<Vec<u8>>) {
    let (sender, receiver) = unbounded_channel();
    (Arc::new(Channel(sender)), receiver)
}

impl Outbox for Channel {
    fn send(&self, message: Vec<u8>) {
        let _ = self.0.send(message);
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn flush(&self) -> bool {
        false
    }
}

/// Messages as server-sent events.
pub(super) struct EventBody {
    messages: UnboundedReceiver<Vec<u8>>,
    /// Sent before the messages.
    first: VecDeque<Bytes>,
    /// Events carry ids, `STREAM:NUMBER`.
    pub(super) stream: Option<String>,
    number: usize,
    cut: Option<Cut>,
    /// The client that is flooded with requests, once it is initialized.
    flood: Option<Arc<Session>>,
    /// When to break the connection; hyper needs some time to write the data before.
    breaks: Option<Pin<Box<Sleep>>>,
}

/// Ends a stream too early.
pub(super) struct Cut {
    pub(super) server: Arc<Server>,
    pub(super) how: DropStream,
}

impl EventBody {
    pub(super) fn new(messages: UnboundedReceiver<Vec<u8>>) -> Self {
        Self {
            messages,
            first: VecDeque::new(),
            stream: None,
            number: 0,
            cut: None,
            flood: None,
            breaks: None,
        }
    }

    /// Sends this raw event first.
    pub(super) fn first(mut self, event: impl Into<Bytes>) -> Self {
        self.first.push_back(event.into());
        self
    }

    /// Numbers the events, and begins with one that has no data, so that there is an id to resume
    /// from whatever happens.
    pub(super) fn numbered(mut self, stream: String, retry_ms: Option<u64>) -> Self {
        let retry = retry_ms.map(|ms| format!("retry: {ms}\n")).unwrap_or_default();
        let event = format!("{retry}id: {stream}:0\ndata: \n\n");
        self.stream = Some(stream);
        self.first(event)
    }

    pub(super) fn cut(mut self, cut: Option<Cut>) -> Self {
        self.cut = cut;
        self
    }

    /// Floods the client with requests, if the script says so.
    pub(super) fn flood(mut self, http: &HttpScript, session: &Arc<Session>) -> Self {
        self.flood = http.request_flood.map(|_| Arc::clone(session));
        self
    }

    /// Puts a message that was already received before all others.
    pub(super) fn put_back(&mut self, message: &[u8]) {
        let event = self.event(message);
        self.first.push_back(event);
    }

    fn event(&mut self, message: &[u8]) -> Bytes {
        self.number += 1;
        let mut event = Vec::with_capacity(message.len() + 64);
        event.extend_from_slice(b"event: message\n");
        if let Some(stream) = &self.stream {
            event.extend_from_slice(format!("id: {stream}:{}\n", self.number).as_bytes());
        }
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(message);
        event.extend_from_slice(b"\n\n");
        event.into()
    }

    /// Ends the stream; unsent messages are kept for a client that resumes it.
    fn end_early(&mut self, cut: &Cut) {
        if cut.how.resumable
            && let Some(stream) = self.stream.clone()
        {
            let (_, nothing) = unbounded_channel();
            let rest = EventBody {
                messages: std::mem::replace(&mut self.messages, nothing),
                first: VecDeque::new(),
                stream: self.stream.clone(),
                number: self.number,
                cut: None,
                flood: None,
                breaks: None,
            };
            lock(&cut.server.parked).insert(stream, rest);
        }
        self.messages.close();
    }
}

impl hyper::body::Body for EventBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(event) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(event))));
        }
        let number = self.number;
        if let Some(cut) = self.cut.take_if(|cut| number >= cut.how.after_events) {
            self.end_early(&cut);
            if !cut.how.abrupt {
                return Poll::Ready(None);
            }
            self.breaks = Some(Box::pin(tokio::time::sleep(Duration::from_millis(20))));
        }
        if let Some(breaks) = &mut self.breaks {
            ready!(breaks.as_mut().poll(context));
            return Poll::Ready(Some(Err(std::io::Error::other("dropped, as asked"))));
        }
        let message = self.messages.poll_recv(context);
        let floods = self.flood.as_ref().is_some_and(|session| session.is_initialized());
        if message.is_pending() && floods {
            let number = self.number;
            let ping = format!(r#"{{"jsonrpc":"2.0","id":"f{number}","method":"ping"}}"#);
            return Poll::Ready(Some(Ok(Frame::data(self.event(ping.as_bytes())))));
        }
        let message = ready!(message);
        Poll::Ready(message.map(|message| Ok(Frame::data(self.event(&message)))))
    }
}

/// A body whose chunks are generated one by one; it ends at `None`.
pub(super) struct Pieces<F>(pub(super) F);

impl<F: FnMut() -> Option<Bytes> + Unpin> hyper::body::Body for Pieces<F> {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready((self.0)().map(|piece| Ok(Frame::data(piece))))
    }
}
