//! The bodies of requests and responses. A message that is in memory as a whole is not boxed or copied.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, LengthLimitError, Limited, StreamBody};
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};
use tokio::time::{Instant, timeout_at};

use crate::front::memory::counted;

/// How long a client may pause within a body.
const PAUSE: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const SENDING: Duration = Duration::from_secs(5 * 60);

/// The body of a response.
#[derive(Debug)]
pub struct HubBody(Content);

#[derive(Debug)]
enum Content {
    Message(Full<Bytes>),
    Stream {
        body: UnsyncBoxBody<Bytes, Infallible>,
        /// Counts what the client does not read.
        budget: Option<Arc<ByteBudget>>,
        /// The memory of the request.
        request: Option<BytePermit>,
    },
}

impl From<Bytes> for HubBody {
    fn from(message: Bytes) -> Self {
        Self(Content::Message(Full::new(message)))
    }
}

impl HubBody {
    /// Ends a stream when the future does. A message is complete as it is.
    pub(super) fn until(self, ended: impl Future<Output = ()> + Send + 'static) -> Self {
        match self.0 {
            Content::Message(_) => self,
            Content::Stream { body, budget, request } => {
                let body = StreamBody::new(BodyStream::new(body).take_until(Box::pin(ended)));
                Self(Content::Stream { body: body.boxed_unsync(), budget, request })
            }
        }
    }

    pub(super) fn stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Self(Content::Stream { body: body.boxed_unsync(), budget: None, request: None })
    }

    /// A stream whose parts count while the client does not read them, as well as its request.
    pub(super) fn counted_stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
        budget: &Arc<ByteBudget>,
        request: BytePermit,
    ) -> Self {
        let budget = Some(Arc::clone(budget));
        Self(Content::Stream { body: body.boxed_unsync(), budget, request: Some(request) })
    }
}

impl Body for HubBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Message(body) => Pin::new(body).poll_frame(cx),
            Content::Stream { body, budget, .. } => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(match (frame, budget) {
                    (Some(Ok(frame)), Some(budget)) => counted_frame(frame, budget).map(Ok),
                    (frame, _) => frame,
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Message(body) => body.is_end_stream(),
            Content::Stream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Message(body) => body.size_hint(),
            Content::Stream { body, .. } => body.size_hint(),
        }
    }
}

/// Counts a part of a response until it was sent. Without memory for it, the response ends.
fn counted_frame(frame: Frame<Bytes>, budget: &Arc<ByteBudget>) -> Option<Frame<Bytes>> {
    let data = match frame.into_data() {
        Ok(data) if data.len() > FREE => data,
        Ok(data) => return Some(Frame::data(data)),
        Err(frame) => return Some(frame),
    };
    match counted(budget, data.into()) {
        Ok(data) => Some(Frame::data(data)),
        Err(spent) => {
            tracing::warn!(%spent, "ended a response to a client of the hub");
            None
        }
    }
}

/// Why a request has no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is longer than the limit.
    TooLarge,
    /// The client did not send all of it.
    Incomplete,
    /// The client takes too long.
    Slow,
    /// There is no memory for it.
    Memory(BudgetSpent),
}

/// Reads the body of a request, with the memory that it takes.
pub(super) async fn read<B>(
    body: B,
    limit: usize,
    budget: &Arc<ByteBudget>,
) -> Result<(Bytes, BytePermit), BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    // Also before it arrives, which may take long.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut body = pin!(Limited::new(body, limit));
    // Most messages arrive in one piece, with the head.
    let first = poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await;
    let first = match first {
        Poll::Ready(None) => return Ok((Bytes::new(), budget.permit())),
        Poll::Ready(Some(frame)) => data(frame)?,
        Poll::Pending => Bytes::new(),
    };
    if body.is_end_stream() {
        let memory = budget.hold(first.len()).map_err(BodyError::Memory)?;
        return Ok((first, memory));
    }
    // Boxed: the future would enlarge that of a call.
    Box::pin(read_rest(body, first, budget)).await
}

/// Reads the rest of a body as it arrives.
async fn read_rest<B>(
    mut body: Pin<&mut Limited<B>>,
    first: Bytes,
    budget: &Arc<ByteBudget>,
) -> Result<(Bytes, BytePermit), BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let deadline = Instant::now() + SENDING;
    let mut memory = budget.hold(first.len()).map_err(BodyError::Memory)?;
    let mut all = Vec::from(first);
    let mut spent = None;
    loop {
        let until = deadline.min(Instant::now() + PAUSE);
        let frame = timeout_at(until, body.as_mut().frame()).await;
        let Some(frame) = frame.map_err(|_| spent.unwrap_or(BodyError::Slow))? else { break };
        let data = data(frame)?;
        if spent.is_some() {
            continue;
        }
        match memory.resize(all.len() + data.len()) {
            Ok(()) => all.extend_from_slice(&data),
            // The rest is dropped as it arrives: a client that is still sending would not see the
            // response.
            Err(error) => {
                spent = Some(BodyError::Memory(error));
                (all, memory) = (Vec::new(), budget.permit());
            }
        }
    }
    match spent {
        Some(error) => Err(error),
        None => Ok((all.into(), memory)),
    }
}

/// Returns the bytes of a frame.
fn data(
    frame: Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>>,
) -> Result<Bytes, BodyError> {
    let frame = frame.map_err(|error| reason(&*error))?;
    Ok(frame.into_data().unwrap_or_default())
}

fn reason(error: &(dyn std::error::Error + Send + Sync + 'static)) -> BodyError {
    if error.is::<LengthLimitError>() { BodyError::TooLarge } else { BodyError::Incomplete }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use http_body_util::StreamBody;

    use super::*;

    /// Reads a body that arrives in these pieces.
    async fn read_pieces(pieces: &[&'static str], limit: usize) -> Result<Bytes, BodyError> {
        let frames: Vec<_> = pieces
            .iter()
            .map(|it| Ok::<_, Infallible>(Frame::data(Bytes::from_static(it.as_bytes()))))
            .collect();
        let budget = ByteBudget::new(usize::MAX);
        let read = read(StreamBody::new(stream::iter(frames)), limit, &budget).await;
        read.map(|(body, _)| body)
    }

    #[tokio::test]
    async fn a_body_is_read_in_one_piece_or_several_up_to_the_limit() {
        assert_eq!(read_pieces(&[], 3).await.unwrap(), "");
        assert_eq!(read_pieces(&["abc"], 3).await.unwrap(), "abc");
        assert_eq!(read_pieces(&["a", "", "bc"], 3).await.unwrap(), "abc");
        assert_eq!(read_pieces(&["abcd"], 3).await, Err(BodyError::TooLarge));
        assert_eq!(read_pieces(&["ab", "cd"], 3).await, Err(BodyError::TooLarge));
        let [whole, long] = [&b"abc"[..], b"abcd"].map(|it| Full::new(Bytes::from_static(it)));
        let budget = ByteBudget::new(usize::MAX);
        assert_eq!(read(long, 3, &budget).await.unwrap_err(), BodyError::TooLarge);
        assert_eq!(read(whole, 3, &budget).await.unwrap().0, "abc");
    }

    /// A body that ends with a pause.
    fn unfinished(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        let part = Frame::data(Bytes::from(vec![b'x'; bytes]));
        StreamBody::new(stream::iter([Ok(part)]).chain(stream::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_makes_no_progress_or_takes_too_long_is_given_up() {
        let budget = ByteBudget::new(usize::MAX);
        let start = Instant::now();
        assert_eq!(read(unfinished(1), 9, &budget).await.unwrap_err(), BodyError::Slow);
        assert_eq!(start.elapsed(), PAUSE);
        let slowly = stream::unfold((), |()| async {
            tokio::time::sleep(PAUSE / 2).await;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x"))), ()))
        });
        let start = Instant::now();
        let read = read(StreamBody::new(slowly), 9_999, &budget).await;
        assert_eq!(read.unwrap_err(), BodyError::Slow);
        assert_eq!(start.elapsed(), SENDING);
    }

    #[tokio::test(start_paused = true)]
    async fn unfinished_bodies_share_the_memory_of_their_client() {
        let budget = ByteBudget::new(10 * FREE);
        let mut first = Box::pin(read(unfinished(6 * FREE), 20 * FREE, &budget));
        assert!((&mut first).now_or_never().is_none(), "it waits for the rest");
        assert_eq!(budget.used(), 6 * FREE);
        let second = read(unfinished(6 * FREE), 20 * FREE, &budget).await;
        assert_eq!(second.unwrap_err(), BodyError::Memory(BudgetSpent::Own(10 * FREE)));
        let pieces = (0..6).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![1; FREE]))));
        let third = read(StreamBody::new(stream::iter(pieces)), 20 * FREE, &budget).await;
        assert_eq!(third.unwrap_err(), BodyError::Memory(BudgetSpent::Own(10 * FREE)));
        assert_eq!(budget.used(), 6 * FREE);
        drop(first);
        assert_eq!(budget.used(), 0);
    }
}
