//! The bodies of responses.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use openclaw_mcp_server::hub::http::HubBody;

use super::connection_info::OpenRequest;

/// The body of a response.
#[derive(Debug)]
pub(super) struct ResponseBody {
    content: Content,
    /// Set before the response is sent.
    request: Option<OpenRequest>,
}

#[derive(Debug)]
enum Content {
    Hub(HubBody),
    Other(Body),
}

impl From<HubBody> for ResponseBody {
    fn from(body: HubBody) -> Self {
        Self { content: Content::Hub(body), request: None }
    }
}

impl From<Body> for ResponseBody {
    fn from(body: Body) -> Self {
        Self { content: Content::Other(body), request: None }
    }
}

impl ResponseBody {
    /// Keeps the request open until the body was sent or the client is gone.
    pub(super) fn keep_open(&mut self, request: OpenRequest) {
        self.request = Some(request);
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.content {
            Content::Hub(body) => {
                let frame = Pin::new(body).poll_frame(cx);
                frame.map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
            Content::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Hub(body) => body.is_end_stream(),
            Content::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Hub(body) => body.size_hint(),
            Content::Other(body) => body.size_hint(),
        }
    }
}
