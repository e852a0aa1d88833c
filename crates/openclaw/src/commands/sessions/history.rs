//! The messages of a conversation, read page by page.

use openclaw_protocol::chat::{HistoryParams, HistoryResult};
use openclaw_protocol::{RequestError, rpc};
use serde_json::value::RawValue;

use crate::commands::link::GatewayLink;

/// The page size, which is also the gateway's maximum.
const PAGE: u64 = 1_000;
/// The maximum number of messages to read.
const MAX_MESSAGES: u64 = 1_000_000;

/// Returns the messages of a conversation, oldest first: all, or the last `last`.
pub(super) async fn read(
    link: &GatewayLink,
    key: &str,
    last: Option<u64>,
    media: Media,
) -> Result<Vec<Box<RawValue>>, RequestError> {
    let wanted = last.unwrap_or(MAX_MESSAGES).min(MAX_MESSAGES);
    // The latest page comes first.
    let mut pages: Vec<Vec<Box<RawValue>>> = Vec::new();
    let mut offset = 0;
    while offset < wanted {
        let limit = PAGE.min(wanted - offset);
        let params = HistoryParams {
            session_key: key.to_owned(),
            limit: u32::try_from(limit).ok(),
            offset: Some(offset),
            include_media: (media == Media::Whole).then_some(true),
            ..HistoryParams::default()
        };
        let page: HistoryResult = link.look::<rpc::ChatHistory>(params).await?;
        pages.push(page.messages);
        match page.next_offset {
            Some(next) if next > offset => offset = next,
            _ => break,
        }
    }
    Ok(pages.into_iter().rev().flatten().collect())
}

/// How much of images and audio is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    /// Only a description.
    Described,
    /// The data.
    Whole,
}
