//! Reads a server's output and routes each line to its receiver.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::deliver::{answered, route};
use super::inbox::ToRmcp;
use super::peek::{LineKind, peek};
use super::queue::{WriteQueue, broken};
use super::{Closed, ENDS, MAX_MESSAGE};

/// Initial capacity of the buffer.
const SMALL: usize = 16 * 1024;
/// A buffer with more capacity than this is freed once it is empty.
const KEPT: usize = 256 * 1024;

/// A large read into an address just after a page boundary, where allocators place large buffers,
/// is four times slower on some processors (measured with 64 KB: 28 instead of 7 µs). Reads
/// therefore start at a multiple of this.
const ALIGNMENT: usize = 64;

/// Number of lines that are processed before the task yields.
const LINES_AT_ONCE: usize = 128;

/// How much unread output of an exited process is read: no user's pipe holds more.
const LEFT: usize = 1024 * 1024;
/// After this time without data, the rest of the output is considered read.
const QUIET: Duration = Duration::from_millis(20);
/// Time limit for reading the rest.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Reads until the output is closed, the process exits, or `rmcp` is gone.
pub(super) async fn read(
    mut output: impl AsyncRead + Unpin,
    queue: Arc<WriteQueue>,
    to_rmcp: ToRmcp,
    mut ended: oneshot::Receiver<ExitStatus>,
) {
    let mut lines = Lines::new(Arc::clone(&queue), to_rmcp);
    let reason = loop {
        lines.make_room();
        let read = tokio::select! {
            // The exit takes precedence, because a descendant may keep writing. Polling it is
            // cheap.
            biased;
            Ok(status) = &mut ended => {
                // Output from before the exit is still delivered.
                let rest = timeout(LAST_ANSWERS, lines.read_rest(&mut output)).await;
                break rest.unwrap_or(Ok(())).err().unwrap_or(Closed::Ended(status));
            }
            read = output.read_buf(&mut lines.buffer) => read,
        };
        match read {
            // Usually the process has exited, and its status is about to arrive.
            Ok(0) => match timeout(ENDS, &mut ended).await {
                Ok(Ok(status)) => break Closed::Ended(status),
                _ => break Closed::ByServer,
            },
            read => {
                if let Err(reason) = lines.take(read).await {
                    break reason;
                }
            }
        }
    };
    queue.close(reason);
}

/// Output that was read but not delivered yet.
struct Lines {
    queue: Arc<WriteQueue>,
    to_rmcp: ToRmcp,
    buffer: Vec<u8>,
    /// Offset of the first undelivered byte.
    start: usize,
    /// Up to here, the buffer contains no line break.
    searched: usize,
}

impl Lines {
    fn new(queue: Arc<WriteQueue>, to_rmcp: ToRmcp) -> Self {
        let mut lines = Self { queue, to_rmcp, buffer: Vec::new(), start: 0, searched: 0 };
        lines.begin_anew();
        lines
    }

    /// Clears the buffer, and frees it if it is large.
    fn begin_anew(&mut self) {
        self.buffer.clear();
        if !(SMALL..=KEPT).contains(&self.buffer.capacity()) {
            self.buffer = Vec::with_capacity(SMALL);
        }
        self.start = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        self.buffer.resize(self.start, 0);
        self.searched = self.start;
    }

    /// Grows a full, large buffer by a quarter: doubled, it could take twice as much as the message.
    fn make_room(&mut self) {
        let length = self.buffer.len();
        if length == self.buffer.capacity() && length >= KEPT {
            self.buffer.reserve_exact(length / 4);
        }
    }

    /// Reads what an exited process left in the pipe. A descendant may hold the pipe open.
    async fn read_rest(&mut self, output: &mut (impl AsyncRead + Unpin)) -> Result<(), Closed> {
        let mut left = LEFT;
        while left > 0 {
            match timeout(QUIET, output.read_buf(&mut self.buffer)).await {
                Ok(Ok(read)) if read > 0 => {
                    left = left.saturating_sub(read);
                    self.take(Ok(read)).await?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Delivers the complete lines.
    async fn take(&mut self, read: io::Result<usize>) -> Result<(), Closed> {
        // One time for all lines that were read together: reading the clock is a considerable part of
        // a call.
        let now = Instant::now();
        match read {
            Ok(bytes) => {
                self.queue.heard.note(now);
                self.queue.traffic.received(bytes);
            }
            Err(error) => return Err(broken(&error)),
        }
        let delivered = self.start;
        let mut lines = 0;
        let line_break = |buffer: &[u8], from: usize| memchr::memchr(b'\n', &buffer[from..]);
        while let Some(at) = line_break(&self.buffer, self.searched) {
            let end = self.searched + at;
            let line = &self.buffer[self.start..end];
            (self.start, self.searched) = (end + 1, end + 1);
            match peek(line) {
                // Most lines, without a future.
                LineKind::Answer(id, answer) => answered(id, answer, &*self.queue, now),
                other => {
                    let routed = route(other, line, None, &*self.queue, &self.to_rmcp).await;
                    routed.map_err(|_| Closed::ByUs)?;
                }
            }
            lines += 1;
            // Other tasks get their turn, however much a server writes.
            if lines % LINES_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        let left = self.buffer.len() - self.start;
        if left > MAX_MESSAGE {
            return Err(Closed::LineTooLong);
        }
        if left == 0 {
            self.begin_anew();
        } else {
            self.buffer.drain(delivered..self.start);
            (self.start, self.searched) = (delivered, self.buffer.len());
        }
        Ok(())
    }
}
