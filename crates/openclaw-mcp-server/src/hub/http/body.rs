//! The bodies of requests and responses. A message that is in memory as a whole is not boxed or copied.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, LengthLimitError, Limited, StreamBody};

/// The body of a response.
#[derive(Debug)]
pub struct HubBody(Content);

#[derive(Debug)]
enum Content {
    Message(Full<Bytes>),
    Stream(UnsyncBoxBody<Bytes, Infallible>),
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
            Content::Stream(body) => {
                Self::stream(StreamBody::new(BodyStream::new(body).take_until(Box::pin(ended))))
            }
        }
    }

    pub(super) fn stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Self(Content::Stream(body.boxed_unsync()))
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
            Content::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Message(body) => body.is_end_stream(),
            Content::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Message(body) => body.size_hint(),
            Content::Stream(body) => body.size_hint(),
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
}

/// Reads the body of a request.
pub(super) async fn read<B>(body: B, limit: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    // Also before it arrives, which may take long.
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut body = pin!(Limited::new(body, limit));
    let first = match body.as_mut().frame().await {
        Some(frame) => frame.map_err(|error| reason(&*error))?.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    // Most messages arrive in one piece.
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut all = Vec::from(first);
    while let Some(frame) = body.as_mut().frame().await {
        all.extend_from_slice(
            &frame.map_err(|error| reason(&*error))?.into_data().unwrap_or_default(),
        );
    }
    Ok(all.into())
}

fn reason(error: &(dyn std::error::Error + Send + Sync + 'static)) -> BodyError {
    if error.is::<LengthLimitError>() { BodyError::TooLarge } else { BodyError::Incomplete }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    /// Reads a body that arrives in these pieces.
    async fn read_pieces(pieces: &[&'static str], limit: usize) -> Result<Bytes, BodyError> {
        let frames: Vec<_> = pieces
            .iter()
            .map(|it| Ok::<_, Infallible>(Frame::data(Bytes::from_static(it.as_bytes()))))
            .collect();
        read(StreamBody::new(stream::iter(frames)), limit).await
    }

    #[tokio::test]
    async fn a_body_is_read_in_one_piece_or_several_up_to_the_limit() {
        assert_eq!(read_pieces(&[], 3).await.unwrap(), "");
        assert_eq!(read_pieces(&["abc"], 3).await.unwrap(), "abc");
        assert_eq!(read_pieces(&["a", "", "bc"], 3).await.unwrap(), "abc");
        assert_eq!(read_pieces(&["abcd"], 3).await, Err(BodyError::TooLarge));
        assert_eq!(read_pieces(&["ab", "cd"], 3).await, Err(BodyError::TooLarge));
        let [whole, long] = [&b"abc"[..], b"abcd"].map(|it| Full::new(Bytes::from_static(it)));
        assert_eq!(read(long, 3).await, Err(BodyError::TooLarge));
        assert_eq!(read(whole, 3).await.unwrap(), "abc");
    }
}
