//! Lines from stdin, read without blocking the runtime.

use std::io::{self, BufRead as _, Read as _};
use std::sync::mpsc as blocking;

use openclaw_protocol::chat::{MAX_MESSAGE, MESSAGE_TOO_LONG};
use tokio::sync::mpsc;

use crate::typed_ahead;

/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// The lines of stdin, from a terminal or a pipe.
pub(crate) struct InputLines {
    asks: blocking::SyncSender<()>,
    lines: mpsc::Receiver<io::Result<String>>,
    /// Whether a read was requested and has not finished.
    is_asked: bool,
}

impl InputLines {
    /// Spawns a thread that reads a line only on request: input typed between two prompts stays in
    /// the terminal, where it can be discarded. The thread exits at the end of stdin, or when this
    /// value is dropped; a blocked read lasts until the process exits.
    pub(crate) fn of_stdin() -> Self {
        let (asks, asked) = blocking::sync_channel(1);
        let (lines, receiver) = mpsc::channel(1);
        tokio::task::spawn_blocking(move || {
            while asked.recv().is_ok() {
                let Some(line) = read().transpose() else { return };
                let is_last = line.is_err();
                if lines.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self { asks, lines: receiver, is_asked: false }
    }

    /// Reads the next line; `None` at the end of stdin. Cancel-safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        if !self.is_asked {
            // If the thread has exited, `recv` returns `None`.
            self.is_asked = self.asks.try_send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.is_asked = false;
        line.transpose()
    }

    /// Discards input that was typed before a prompt.
    pub(crate) fn forget(&mut self) {
        typed_ahead::forget();
        // A line that was requested for a withdrawn prompt.
        if self.lines.try_recv().is_ok() {
            self.is_asked = false;
        }
    }
}

fn read() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let length = io::stdin().lock().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if u64::try_from(length).unwrap_or(u64::MAX) >= MAX_LINE && !line.ends_with(b"\n") {
        let message = format!("a line is longer than {} MiB", MAX_LINE / 1024 / 1024);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok((length > 0)
        .then(|| String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()))
}

/// Reads all of stdin as one message.
pub(crate) fn whole_stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX);
    io::stdin().lock().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, MESSAGE_TOO_LONG));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
