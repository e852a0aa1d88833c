//! Reads the stderr of a server: logs its lines within limits, and keeps the last ones for error
//! reports. Known secrets are redacted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Level;

use super::level::level_of;
use crate::log::ServerLog;

/// A longer line is truncated.
const LONGEST_LINE: usize = 2_000;
/// How much more of a line is searched for secrets: a truncated one would not be recognized. Longer
/// secrets are files, whose lines are redacted individually.
const MARGIN: usize = 64 * 1024;
/// How many lines are kept.
const KEPT_LINES: usize = 50;
/// How many lines of one read are kept and logged: processing more would delay other tasks.
const LINES_AT_ONCE: usize = 200;
/// How many lines are logged; further ones are only counted. A server may write 100 MB.
const LOGGED_LINES: usize = 1_000;
/// How long to wait for the last lines of a server that has exited, in total and without new ones:
/// a descendant may hold its stderr open, and even write to it.
const LAST_WORDS: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_millis(100);

/// The last lines that a server wrote. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// The lines, oldest first. Untrusted: not for a model.
    pub fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The task that reads a server's stderr. Dropping it aborts the task.
#[derive(Debug)]
pub struct Stderr {
    task: JoinHandle<()>,
    last: LastLines,
    /// Signals that something was read. Closed when the task ends.
    news: watch::Receiver<()>,
}

impl Stderr {
    /// Starts reading.
    pub fn read(
        server: String,
        stderr: impl AsyncRead + Unpin + Send + 'static,
        log: ServerLog,
    ) -> Self {
        let last = LastLines::default();
        let (tell, news) = watch::channel(());
        let task = tokio::spawn(drain(server, stderr, last.clone(), log, tell));
        Self { task, last, news }
    }

    /// Returns the last lines that the server wrote.
    pub fn last_lines(&self) -> Vec<String> {
        self.last.get()
    }

    /// Waits until everything is read that a server wrote before it exited. Cancel-safe.
    pub async fn settled(&self) {
        let mut news = self.news.clone();
        let settled = async { while let Ok(Ok(())) = timeout(QUIET, news.changed()).await {} };
        let _ = timeout(LAST_WORDS, settled).await;
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads until the server closes its stderr. Everything is read: a full pipe would block the
/// server.
async fn drain(
    server: String,
    mut stderr: impl AsyncRead + Unpin,
    last: LastLines,
    log: ServerLog,
    tell: watch::Sender<()>,
) {
    let mut buffer = vec![0; 8 * 1024];
    let mut line = Vec::new();
    let mut lines = 0usize;
    loop {
        let read = match stderr.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let breaks = memchr::memchr_iter(b'\n', &buffer[..read]).count();
        let left_out = breaks.saturating_sub(LINES_AT_ONCE);
        if left_out > 0 {
            log.line(&format!("[openclaw] {left_out} lines omitted"));
        }
        for (at, piece) in buffer[..read].split_inclusive(|byte| *byte == b'\n').enumerate() {
            if at < left_out {
                lines += 1;
                line.clear();
                continue;
            }
            let room = (LONGEST_LINE + MARGIN).saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                lines += 1;
                note(&server, &line, lines, &last, &log);
                line.clear();
            }
        }
        tell.send_replace(());
        // There is more: yield to other tasks first, however much a server writes.
        if read == buffer.len() {
            tokio::task::yield_now().await;
        }
    }
    if !line.is_empty() {
        lines += 1;
        note(&server, &line, lines, &last, &log);
    }
    if lines > LOGGED_LINES {
        tracing::warn!(%server, lines, "the server wrote more to stderr than was logged");
    }
}

fn note(server: &str, line: &[u8], number: usize, last: &LastLines, log: &ServerLog) {
    let text = String::from_utf8_lossy(line);
    let text = log.redact(text.trim_end());
    // Control characters would affect the terminal that shows the log.
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = plain.take(LONGEST_LINE).collect();
    if text.trim().is_empty() {
        return;
    }
    if number <= LOGGED_LINES {
        match level_of(&text) {
            Level::ERROR => tracing::error!(%server, "{text}"),
            Level::WARN => tracing::warn!(%server, "{text}"),
            Level::INFO => tracing::info!(%server, "{text}"),
            _ => tracing::debug!(%server, "{text}"),
        }
    }
    log.line(&text);
    last.push(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(text: &[u8]) -> Vec<String> {
        kept_by(ServerLog::none(), text).await
    }

    async fn kept_by(log: ServerLog, text: &[u8]) -> Vec<String> {
        let last = LastLines::default();
        drain("test".to_owned(), text, last.clone(), log, watch::channel(()).0).await;
        last.get()
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_without_controls_and_blanks() {
        assert_eq!(kept(b"one\n\n\x1b[31mtwo\r\nthree").await, ["one", " [31mtwo", "three"]);
        assert_eq!(kept(b"\xff\xfe\n").await, ["\u{fffd}\u{fffd}"]);
        let many: String = (0..500).map(|number| format!("{number}\n")).collect();
        let lines = kept(many.as_bytes()).await;
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (KEPT_LINES, Some("499")));
    }

    #[tokio::test]
    async fn a_secret_is_left_out_even_where_the_line_is_cut() {
        let redactor = openclaw_secrets::Redactor::new();
        redactor.add(&"hunter22-and-more".to_owned().into());
        let log = ServerLog::none().without_secrets(redactor);
        let before = "x".repeat(LONGEST_LINE - 5);
        let text = format!("key=hunter22-and-more\n{before}hunter22-and-more\n");
        let lines = kept_by(log, text.as_bytes()).await;
        assert_eq!(lines, ["key=[REDACTED]", &format!("{before}[REDA")]);
    }

    #[tokio::test]
    async fn other_tasks_run_while_a_server_floods_its_stderr() {
        let drained = kept(b"y\n".repeat(1_000_000).leak());
        let others = async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = drained => panic!("everything was read before another task could run"),
            () = others => {}
        }
    }

    #[tokio::test]
    async fn an_endless_line_is_truncated() {
        let lines = kept(&vec![b'x'; 10_000_000]).await;
        assert_eq!(lines[0].len(), LONGEST_LINE);
    }
}
