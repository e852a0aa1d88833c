//! Reads the messages of a response body: server-sent events, or lines of JSON. Every length is bounded.

use std::time::Duration;

use reqwest::Response;

/// The longest message in bytes. An image is one message.
const MAX_MESSAGE: usize = 24 << 20;
/// The longest body in bytes. Most of it is framing: a few letters come in a message of some hundred
/// bytes.
const MAX_BODY: usize = 128 << 20;

/// How messages are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `text/event-stream`.
    Events,
    /// One message per line.
    Lines,
}

/// Why no message could be read.
#[derive(Debug)]
pub(super) enum SseError {
    /// Nothing was received for too long.
    Silent,
    /// A message or the body exceeds its limit.
    TooLong,
    /// The connection failed.
    Broken(reqwest::Error),
}

/// Reads the messages of a response.
pub(super) struct Reader {
    response: Response,
    silence: Duration,
    splitter: Splitter,
    bytes: usize,
    is_over: bool,
}

impl Reader {
    /// `silence` is the longest wait for the next piece of the body.
    pub(super) fn new(response: Response, framing: Framing, silence: Duration) -> Self {
        let splitter = Splitter::new(framing);
        Self { response, silence, splitter, bytes: 0, is_over: false }
    }

    /// Whether lines were received that are not part of an event stream.
    pub(super) fn is_foreign(&self) -> bool {
        self.splitter.is_foreign
    }

    /// Returns the next message, or `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<String>, SseError> {
        loop {
            if let Some(message) = self.splitter.next() {
                return Ok(Some(message));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.splitter.len() > MAX_MESSAGE || self.bytes > MAX_BODY {
                return Err(SseError::TooLong);
            }
            let chunk = tokio::time::timeout(self.silence, self.response.chunk()).await;
            match chunk.map_err(|_| SseError::Silent)?.map_err(SseError::Broken)? {
                Some(chunk) => {
                    self.bytes = self.bytes.saturating_add(chunk.len());
                    self.splitter.push(&chunk);
                }
                None => {
                    self.is_over = true;
                    // Not every server terminates the last message.
                    self.splitter.push(b"\n\n");
                }
            }
        }
    }
}

/// Splits bytes into messages, wherever the chunks are cut.
struct Splitter {
    framing: Framing,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// How far the buffer was searched for the end of the line.
    searched: usize,
    /// The data of the current event.
    data: Option<String>,
    is_foreign: bool,
}

impl Splitter {
    fn new(framing: Framing) -> Self {
        Self { framing, buffer: Vec::new(), start: 0, searched: 0, data: None, is_foreign: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the size of the incomplete message in bytes.
    fn len(&self) -> usize {
        self.buffer.len() - self.start + self.data.as_ref().map_or(0, String::len)
    }

    fn next(&mut self) -> Option<String> {
        while let Some(line) = self.line() {
            if self.framing == Framing::Lines {
                if !line.trim().is_empty() {
                    return Some(line);
                }
                continue;
            }
            if line.is_empty() {
                if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
                    return Some(data);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            match (field, &mut self.data) {
                ("data", Some(data)) => {
                    data.push('\n');
                    data.push_str(value.strip_prefix(' ').unwrap_or(value));
                }
                ("data", data) => {
                    *data = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
                }
                // Comments, and fields that are not needed: providers repeat the event's type in its data.
                ("" | "event" | "id" | "retry", _) => {}
                _ => self.is_foreign = true,
            }
        }
        None
    }

    /// Returns the next complete line. It ends with LF, CR or CRLF (WHATWG HTML, 9.2.6).
    fn line(&mut self) -> Option<String> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let Some(found) = self.buffer.get(self.searched..)?.iter().position(is_end) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + found;
        let width = match self.buffer.get(end..)? {
            [b'\r', b'\n', ..] => 2,
            // An LF may follow in the next chunk.
            [b'\r'] => {
                self.searched = end;
                return None;
            }
            _ => 1,
        };
        let line = String::from_utf8_lossy(self.buffer.get(self.start..end)?).into_owned();
        self.start = end + width;
        self.searched = self.start;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for size in [1, 2, 3, 1_000] {
            let mut splitter = Splitter::new(framing);
            let mut messages = Vec::new();
            for piece in text.as_bytes().chunks(size).chain([&b"\n\n"[..]]) {
                splitter.push(piece);
                messages.extend(std::iter::from_fn(|| splitter.next()));
            }
            all.push(messages);
        }
        assert!(all.iter().all(|messages| *messages == all[0]), "{all:?}");
        all.remove(0)
    }

    #[test]
    fn events_are_split_at_any_line_ending() {
        let text = ": wait\n\nevent: a\ndata: {\ndata:\"ü\"}\n\n\ndata\n\nid: 1\ndata: last";
        for end in ["\n", "\r\n", "\r"] {
            let messages = split(Framing::Events, &text.replace('\n', end));
            assert_eq!(messages, ["{\n\"ü\"}", "last"], "{end:?}");
        }
        assert_eq!(split(Framing::Lines, "{}\r\n\r\n{\"a\":1}"), ["{}", "{\"a\":1}"]);
    }

    #[test]
    fn lines_that_are_not_events_are_detected() {
        for (text, expected) in [("<html>\n\n", true), (": hello\n\nretry: 1\n\n", false)] {
            let mut splitter = Splitter::new(Framing::Events);
            splitter.push(text.as_bytes());
            assert_eq!(splitter.next(), None);
            assert_eq!(splitter.is_foreign, expected, "{text}");
        }
    }
}
