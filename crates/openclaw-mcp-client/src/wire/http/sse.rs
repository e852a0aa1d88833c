//! An incremental, size-limited parser of server-sent events.

use std::time::Duration;

/// Maximum `retry`; longer values are capped.
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// A longer id is ignored: it would have to fit into a header.
const LONGEST_ID: usize = 4 * 1024;

/// A longer event name is truncated.
const LONGEST_NAME: usize = 64;

/// An event with data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// `message` unless the server sets another.
    pub(super) name: String,
    pub(super) data: Vec<u8>,
}

/// An event exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Parses events from chunks of bytes.
#[derive(Debug, Default)]
pub(super) struct Parser {
    bound: usize,
    /// Received bytes; those from `start` on are not parsed yet.
    rest: Vec<u8>,
    start: usize,
    /// Up to here, `rest` contains no line break.
    searched: usize,
    /// The last line ended with a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    is_begun: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
    /// The id of the last complete event.
    pub(super) last_id: Option<String>,
    /// The delay before reconnecting, as set by the server.
    pub(super) retry: Option<Duration>,
}

impl Parser {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, ..Self::default() }
    }

    /// Returns the number of bytes of the current event, which is not complete yet.
    pub(super) fn unfinished(&self) -> usize {
        self.rest.len() - self.start + self.data.len()
    }

    /// Adds received bytes. Their events are returned by [`Self::next`].
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.rest.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.rest.len() + self.data.len() + bytes.len() > self.bound {
            return Err(TooLong);
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next complete event with data.
    pub(super) fn next(&mut self) -> Option<SseEvent> {
        loop {
            if self.after_return
                && let Some(byte) = self.rest.get(self.start)
            {
                self.start += usize::from(*byte == b'\n');
                self.after_return = false;
            }
            let from = self.searched.max(self.start);
            let Some(end) = memchr::memchr2(b'\n', b'\r', &self.rest[from..]) else {
                self.searched = self.rest.len();
                return None;
            };
            let end = from + end;
            self.after_return = self.rest[end] == b'\r';
            let rest = std::mem::take(&mut self.rest);
            let event = self.line(&rest[self.start..end]);
            self.rest = rest;
            (self.start, self.searched) = (end + 1, end + 1);
            if event.is_some() {
                return event;
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                // The known names are short; the rest of a longer one does not matter.
                let value = &value[..value.len().min(LONGEST_NAME)];
                self.name = String::from_utf8_lossy(value).into_owned();
            }
            b"id" if value.len() <= LONGEST_ID && !value.contains(&0) => {
                self.id = String::from_utf8(value.to_vec()).ok();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let ms = std::str::from_utf8(value).ok().and_then(|ms| ms.parse().ok());
                self.retry =
                    Some(ms.map_or(LONGEST_RETRY, Duration::from_millis).min(LONGEST_RETRY));
            }
            // A comment or an unknown field.
            _ => {}
        }
        None
    }

    /// Completes an event. One without data is not returned, but its id is still where to resume
    /// from.
    fn dispatch(&mut self) -> Option<SseEvent> {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        self.has_data = false;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        (!data.is_empty()).then_some(SseEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(parser: &mut Parser, bytes: &[u8]) -> Vec<(String, String)> {
        parser.feed(bytes).unwrap();
        let events = std::iter::from_fn(|| parser.next());
        events.map(|event| (event.name, String::from_utf8(event.data).unwrap())).collect()
    }

    const STREAM: &str = "\u{feff}: hello\nretry: 500\nid: 1\ndata: \n\nevent: endpoint\ndata: /x?a=b\n\n\
                          id: 2\r\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata\n\nretry: soon\nid: 3\rdata: y\r\rdata: cut";

    fn expected() -> Vec<(String, String)> {
        [("endpoint", "/x?a=b"), ("message", "{\"a\":\n1}"), ("message", "y")]
            .map(|(name, data)| (name.to_owned(), data.to_owned()))
            .to_vec()
    }

    #[test]
    fn events_are_parsed_with_their_ids_and_the_retry_delay() {
        let mut parser = Parser::new(1000);
        assert_eq!(all(&mut parser, STREAM.as_bytes()), expected());
        assert_eq!(parser.last_id.as_deref(), Some("3"));
        assert_eq!(parser.retry, Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_huge_retry_delay_is_capped() {
        let mut parser = Parser::new(1000);
        all(&mut parser, b"retry: 99999999999999999999999\n\n");
        assert_eq!(parser.retry, Some(LONGEST_RETRY));
    }

    #[test]
    fn an_event_that_is_too_long_is_rejected() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.feed(b"data: 0123456789"), Err(TooLong));
        let mut parser = Parser::new(20);
        assert_eq!(all(&mut parser, b"data: 0123456\n"), []);
        assert_eq!(parser.feed(b"data: 0123456789"), Err(TooLong), "also across several lines");
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let mut parser = Parser::new(1000);
            let pieces = cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]);
            let events: Vec<_> = pieces.flat_map(|piece| all(&mut parser, piece)).collect();
            prop_assert_eq!(events, expected());
            prop_assert_eq!(parser.last_id.as_deref(), Some("3"));
        }

        #[test]
        fn arbitrary_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut parser = Parser::new(1000);
            parser.feed(&bytes).unwrap();
            while parser.next().is_some() {}
        }
    }
}
