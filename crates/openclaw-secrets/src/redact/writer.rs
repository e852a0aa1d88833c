//! [`RedactingWriter`]: redacts a log as it is written.

use std::{
    fmt,
    io::{self, Write},
};

use super::Redactor;
use crate::REDACTED;

/// Longer lines are passed on in pieces.
const LONG_LINE: usize = 64 * 1024;

/// A writer that redacts its input line by line.
///
/// Text is held back until its line is complete (or the value that begins in it), or until `flush`
/// or drop, so that a value written in pieces is found too. It is cheap to create, one per log
/// event:
///
/// ```
/// use openclaw_secrets::{RedactingWriter, Redactor};
///
/// let redactor = Redactor::new();
/// // `tracing_subscriber` accepts it as a `MakeWriter`.
/// let make_writer = move || RedactingWriter::new(redactor.clone(), std::io::stderr());
/// # let _ = make_writer;
/// ```
pub struct RedactingWriter<W: Write> {
    redactor: Redactor,
    inner: W,
    held: Vec<u8>,
}

impl<W: Write> RedactingWriter<W> {
    /// Creates a writer that passes redacted text on to `inner`.
    pub fn new(redactor: Redactor, inner: W) -> Self {
        Self { redactor, inner, held: Vec::new() }
    }

    /// Redacts the first `length` held bytes and passes them on.
    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let rest = self.held.split_off(length);
        let text = std::mem::replace(&mut self.held, rest);
        let hits = self.redactor.hits(&text);
        if hits.is_empty() {
            return self.inner.write_all(&text);
        }
        let mut clean = Vec::with_capacity(text.len());
        let mut done = 0;
        for hit in hits {
            clean.extend_from_slice(&text[done..hit.start]);
            clean.extend_from_slice(REDACTED.as_bytes());
            done = hit.end;
        }
        clean.extend_from_slice(&text[done..]);
        // One call: lines of different threads must not interleave.
        self.inner.write_all(&clean)
    }

    /// Passes on everything except the last `open` bytes, which may begin a value.
    fn pass_on_all_but(&mut self, open: usize) -> io::Result<()> {
        let length = self.held.len().saturating_sub(open);
        let hits = self.redactor.hits(&self.held);
        let across = hits.iter().find(|hit| hit.start < length && length < hit.end);
        self.pass_on(across.map_or(length, |hit| hit.start))
    }
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let lines = self.held.len() - bytes.len() + end + 1;
            match self.redactor.begun_at_end(&self.held[..lines]) {
                0 => self.pass_on(lines)?,
                begun => self.pass_on_all_but(self.held.len() - lines + begun)?,
            }
        } else if self.held.len() > LONG_LINE {
            self.pass_on_all_but(self.redactor.longest_form())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.held.len())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for RedactingWriter<W> {
    fn drop(&mut self) {
        // A failure to write the log cannot be reported anywhere.
        let _ = self.flush();
    }
}

/// Omits the held text: it is not redacted yet.
impl<W: Write> fmt::Debug for RedactingWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactingWriter")
    }
}
