//! Lines from stdin, read beside everything else.

use std::io::{self, BufRead as _, Read as _};

use tokio::sync::mpsc;

/// The longest line.
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// How many lines may be read ahead.
const AHEAD: usize = 1;

/// Lines as they are typed, or come in by a pipe.
pub(crate) struct Lines(mpsc::Receiver<io::Result<String>>);

impl Lines {
    /// Begins to read. The thread ends with the input, or when nobody is interested any more; a read that
    /// hangs is ended with the program.
    pub(crate) fn of_stdin() -> Self {
        let (lines, receiver) = mpsc::channel(AHEAD);
        tokio::task::spawn_blocking(move || {
            while let Some(line) = read().transpose() {
                let is_last = line.is_err();
                if lines.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next line; none when the input has ended. Safe to cancel.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        self.0.recv().await.transpose()
    }

    /// Forgets what was typed before a question: it is no answer to it.
    pub(crate) fn forget(&mut self) {
        while self.0.try_recv().is_ok() {}
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

/// All of stdin, as one text.
pub(crate) fn whole_stdin() -> io::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_LINE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_LINE {
        let message = format!("stdin holds more than {} MiB", MAX_LINE / 1024 / 1024);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
