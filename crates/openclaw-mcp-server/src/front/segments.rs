//! Bytes that wait to be written. Small messages are gathered into one write; large ones are not
//! copied.

use std::collections::VecDeque;

/// Messages of at least this size are written from their own buffer; smaller ones are gathered up to
/// this size, which a pipe usually takes in one write.
const LARGE: usize = 64 * 1024;
/// A buffer with more capacity than this is freed once it is empty.
const KEPT: usize = 256 * 1024;

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    queue: VecDeque<Vec<u8>>,
    /// How much of the first segment is written.
    written: usize,
    bytes: usize,
    /// An empty buffer for the next message.
    spare: Vec<u8>,
}

impl Segments {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.push_all(&[bytes]);
    }

    /// Appends parts, one after the other.
    pub(crate) fn push_all(&mut self, parts: &[&[u8]]) {
        let has_room = self.queue.back().is_some_and(|last| last.len() < LARGE);
        if !has_room {
            self.queue.push_back(std::mem::take(&mut self.spare));
        }
        let Some(last) = self.queue.back_mut() else { return };
        let before = last.len();
        parts.iter().for_each(|part| last.extend_from_slice(part));
        self.bytes += last.len() - before;
    }

    /// Appends a buffer, which is not copied if it is large.
    pub(crate) fn push_owned(&mut self, bytes: Vec<u8>) {
        if bytes.len() < LARGE {
            return self.push(&bytes);
        }
        self.bytes += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Moves the bytes of another one to the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        let written = std::mem::take(&mut other.written);
        for (nth, segment) in other.queue.drain(..).enumerate() {
            match nth {
                0 if written > 0 => self.push(segment.get(written..).unwrap_or_default()),
                _ => self.push_owned(segment),
            }
        }
        other.bytes = 0;
    }

    /// The bytes to write next.
    pub(crate) fn front(&self) -> &[u8] {
        let first = self.queue.front().map(Vec::as_slice).unwrap_or_default();
        first.get(self.written..).unwrap_or_default()
    }

    /// Removes bytes that were written from the front.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        self.bytes = self.bytes.saturating_sub(count);
        while let Some(first) = self.queue.front_mut() {
            if self.written < first.len() {
                break;
            }
            self.written -= first.len();
            let mut done = self.queue.pop_front().unwrap_or_default();
            if done.capacity() <= KEPT {
                done.clear();
                self.spare = done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_messages_are_gathered_and_large_ones_keep_their_buffer() {
        let mut segments = Segments::default();
        segments.push(b"a");
        segments.push(b"b");
        let large = vec![b'x'; LARGE];
        let place = large.as_ptr();
        segments.push_owned(large);
        segments.push(b"c");
        assert_eq!((segments.front(), segments.len()), (&b"ab"[..], LARGE + 3));
        segments.advance(2);
        assert_eq!(segments.front().as_ptr(), place);
        segments.advance(10);
        assert_eq!(segments.front().len(), LARGE - 10);
        segments.advance(LARGE - 10);
        assert_eq!(segments.front(), b"c");
        segments.advance(1);
        assert!(segments.is_empty() && segments.front().is_empty());
    }
}
