//! Output of a command: the beginning and the end are kept, whatever its size.

use std::collections::VecDeque;
use std::fmt::Write as _;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes kept of the beginning, and of the end.
const KEPT: usize = 512 * 1024;

/// Output of one stream.
#[derive(Debug, Default)]
pub(super) struct StreamOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl StreamOutput {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..surplus);
        self.left_out += surplus as u64;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Returns the number of characters kept.
    pub(super) fn chars(&self) -> usize {
        let (head, tail) = self.texts();
        head.chars().count() + tail.chars().count()
    }

    /// Returns the beginning and the end; together they are everything, unless something was
    /// omitted in between.
    fn texts(&self) -> (String, String) {
        let mut head = self.head.clone();
        let mut tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.left_out == 0 {
            head.append(&mut tail);
        }
        (String::from_utf8_lossy(&head).into_owned(), String::from_utf8_lossy(&tail).into_owned())
    }

    /// Appends the kept output, limited to `max_chars`; returns whether something is missing.
    pub(super) fn push_to(&self, text: &mut String, name: &str, max_chars: usize) -> bool {
        if self.is_empty() {
            return false;
        }
        let (head, tail) = self.texts();
        let (head_chars, tail_chars) = (head.chars().count(), tail.chars().count());
        let chars = head_chars + tail_chars;
        let _ = writeln!(text, "[{name}]");
        if self.left_out == 0 && chars <= max_chars {
            text.push_str(&head);
        } else {
            let whole = head + &tail;
            let end = max_chars.min(chars) / 2;
            let begin = if self.left_out == 0 { end } else { end.min(head_chars) };
            text.extend(whole.chars().take(begin));
            text.push_str("\n[… omitted …]\n");
            text.extend(whole.chars().skip(chars - end));
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.left_out > 0 || chars > max_chars
    }
}

/// Reads a stream to its end. It must always be read: a full pipe would block the command.
pub(super) async fn drain(mut stream: impl AsyncRead + Unpin, output: &mut StreamOutput) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        output.push(buffer.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], max_chars: usize) -> (String, bool) {
        let mut output = StreamOutput::default();
        bytes.chunks(1_000).for_each(|chunk| output.push(chunk));
        let mut text = String::new();
        let is_cut = output.push_to(&mut text, "stdout", max_chars);
        (text, is_cut)
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(shown(b"", 10), (String::new(), false));
        assert_eq!(shown(b"abc\n", 10), ("[stdout]\nabc\n".to_owned(), false));
        let nearly = "é".repeat(KEPT);
        assert_eq!(shown(nearly.as_bytes(), KEPT), (format!("[stdout]\n{nearly}\n"), false));
    }

    #[test]
    fn of_what_does_not_fit_the_beginning_and_the_end_are_shown() {
        let (text, is_cut) = shown(b"0123456789", 4);
        assert_eq!(text, "[stdout]\n01\n[\u{2026} omitted \u{2026}]\n89\n");
        assert!(is_cut);
        let mut flood = b"begin".to_vec();
        flood.resize(5_000_000, b'.');
        flood.extend(b"end");
        let (text, is_cut) = shown(&flood, 10);
        assert!(text.starts_with("[stdout]\nbegin\n") && text.ends_with("\n..end\n"), "{text}");
        assert!(is_cut);
    }
}
