//! Batches of JSON-RPC messages, which only 2025-03-26 has: the replies to their requests are one
//! array.

use serde_json::value::RawValue;

/// The version with batches.
pub(crate) const VERSION: &str = "2025-03-26";
/// Maximum number of messages in a batch.
const MAX_MESSAGES: usize = 100;
/// Maximum size of the replies to a batch, in bytes; further ones are replaced by an error.
pub(crate) const MAX_REPLIES: usize = 64 * 1024 * 1024;
/// Why `initialize` is refused in a batch: its client does not have batches before it.
pub(crate) const NO_HANDSHAKE: &str = "`initialize` cannot be in a batch";
/// Why a reply is replaced.
pub(crate) const TOO_LARGE: &str = "the replies to the batch are larger than 64 MiB together";

/// Why a batch is refused as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BatchError {
    /// The protocol version of the client has none.
    #[error("batches are not supported: send each message on its own")]
    Unsupported,
    /// It is not JSON.
    #[error("not JSON")]
    NotJson,
    /// It has no messages.
    #[error("an empty batch")]
    Empty,
    /// It has too many.
    #[error("more than {MAX_MESSAGES} messages in a batch")]
    TooMany,
    /// Two of its requests have the same id, or one has that of another request in progress.
    #[error("an id in the batch is in use by another request")]
    IdInUse,
}

/// Returns the messages of a batch.
///
/// # Errors
/// If it is refused as a whole.
pub(crate) fn messages(batch: &[u8]) -> Result<Vec<&RawValue>, BatchError> {
    let messages: Vec<&RawValue> =
        serde_json::from_slice(batch).map_err(|_| BatchError::NotJson)?;
    match messages.len() {
        0 => Err(BatchError::Empty),
        1..=MAX_MESSAGES => Ok(messages),
        _ => Err(BatchError::TooMany),
    }
}

/// The replies to a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchReplies(Vec<u8>);

impl BatchReplies {
    /// Adds a reply, unless that makes them too large.
    pub(crate) fn add(&mut self, reply: &[u8], too_large: impl FnOnce() -> Vec<u8>) {
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        match self.0.len() + reply.len() > MAX_REPLIES {
            false => self.0.extend_from_slice(reply),
            true => self.0.extend_from_slice(&too_large()),
        }
    }

    /// Returns the array; `None` if there are no replies.
    pub(crate) fn array(mut self) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b']');
        Some(self.0)
    }
}

/// The batches of a client on a pipe whose requests are in progress.
#[derive(Debug)]
pub(crate) struct OpenBatches<Id>(Vec<OpenBatch<Id>>);

impl<Id> Default for OpenBatches<Id> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A batch with the ids of its requests in progress.
#[derive(Debug)]
struct OpenBatch<Id> {
    open: Vec<Id>,
    replies: BatchReplies,
}

/// What a reply to a request of a batch leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchStep {
    /// The request is in no batch.
    NotInBatch,
    /// Other requests of the batch are in progress.
    Waits,
    /// The batch is over: the array of its replies, if there is one.
    Over(Option<Vec<u8>>),
}

impl<Id: PartialEq> OpenBatches<Id> {
    /// Adds a batch with these requests and the replies that it has already. Returns the array of its
    /// replies if there is nothing to wait for.
    pub(crate) fn open(&mut self, open: Vec<Id>, replies: BatchReplies) -> Option<Vec<u8>> {
        if open.is_empty() {
            return replies.array();
        }
        self.0.push(OpenBatch { open, replies });
        None
    }

    /// Whether a request is in a batch.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.0.iter().any(|batch| batch.open.contains(id))
    }

    /// Adds the reply to a request.
    pub(crate) fn reply(
        &mut self,
        id: &Id,
        reply: &[u8],
        too_large: impl FnOnce() -> Vec<u8>,
    ) -> BatchStep {
        self.end(id, |replies| replies.add(reply, too_large))
    }

    /// Removes a request that gets no reply.
    pub(crate) fn withdraw(&mut self, id: &Id) -> BatchStep {
        self.end(id, |_| {})
    }

    fn end(&mut self, id: &Id, add: impl FnOnce(&mut BatchReplies)) -> BatchStep {
        let Some(at) = self.0.iter().position(|batch| batch.open.contains(id)) else {
            return BatchStep::NotInBatch;
        };
        let Some(batch) = self.0.get_mut(at) else { return BatchStep::NotInBatch };
        batch.open.retain(|open| open != id);
        add(&mut batch.replies);
        match batch.open.is_empty() {
            true => BatchStep::Over(self.0.swap_remove(at).replies.array()),
            false => BatchStep::Waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_some_messages_but_not_too_many() {
        let of = |batch: &str| messages(batch.as_bytes()).map(|it| it.len());
        assert_eq!(of("[{\"id\":1}, 7 ]"), Ok(2));
        assert_eq!(of("[]"), Err(BatchError::Empty));
        assert_eq!(of("[1"), Err(BatchError::NotJson));
        let many = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(of(&many(MAX_MESSAGES)), Ok(MAX_MESSAGES));
        assert_eq!(of(&many(MAX_MESSAGES + 1)), Err(BatchError::TooMany));
    }

    #[test]
    fn replies_are_one_array_when_all_requests_are_over() {
        let mut batches = OpenBatches::default();
        let never = || unreachable!();
        assert_eq!(batches.open(vec![1, 2, 3], BatchReplies::default()), None);
        assert_eq!(batches.reply(&9, b"x", never), BatchStep::NotInBatch);
        assert_eq!(batches.reply(&2, b"two", never), BatchStep::Waits);
        assert!(batches.has(&1) && !batches.has(&2));
        assert_eq!(batches.withdraw(&3), BatchStep::Waits);
        assert_eq!(batches.reply(&1, b"one", never), BatchStep::Over(Some(b"[two,one]".to_vec())));
        assert_eq!(batches.open(vec![4], BatchReplies::default()), None);
        assert_eq!(batches.withdraw(&4), BatchStep::Over(None));
        assert_eq!(batches.open(Vec::new(), BatchReplies::default()), None, "notifications");
        let mut replies = BatchReplies::default();
        replies.add(b"wrong", || unreachable!());
        assert_eq!(batches.open(Vec::new(), replies), Some(b"[wrong]".to_vec()));
    }

    #[test]
    fn replies_beyond_the_limit_are_replaced() {
        let mut replies = BatchReplies::default();
        for _ in 0..3 {
            replies.add(&vec![b'x'; MAX_REPLIES / 2], || b"too large".to_vec());
        }
        let array = replies.array().unwrap();
        assert!(array.len() < MAX_REPLIES && array.ends_with(b",too large,too large]"));
    }
}
