//! Lines from stdin, read beside everything else.

use std::io::{self, BufRead as _, Read as _};
use std::sync::mpsc as blocking;

use openclaw_protocol::chat::{MAX_MESSAGE, MESSAGE_TOO_LONG};
use tokio::sync::mpsc;

use crate::typed_ahead;

/// The longest line.
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// Lines as they are typed, or come in by a pipe.
pub(crate) struct Lines {
    asks: blocking::SyncSender<()>,
    lines: mpsc::Receiver<io::Result<String>>,
    /// Whether a line is being read.
    is_asked: bool,
}

impl Lines {
    /// A thread that reads a line when one is asked for, and none ahead: what is typed between two questions
    /// stays at the terminal, where it can be forgotten. It ends with the input, or when nobody is interested
    /// any more; a read that hangs is ended with the program.
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

    /// The next line; none when the input has ended. Safe to cancel.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        if !self.is_asked {
            // Where nobody reads any more there is no line either.
            self.is_asked = self.asks.try_send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.is_asked = false;
        line.transpose()
    }

    /// Forgets what was typed before a question: it is no answer to it.
    pub(crate) fn forget(&mut self) {
        typed_ahead::forget();
        // A line that was asked for by a question that needed no answer any more.
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

/// All of stdin, as one message.
pub(crate) fn whole_stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX);
    io::stdin().lock().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, MESSAGE_TOO_LONG));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
