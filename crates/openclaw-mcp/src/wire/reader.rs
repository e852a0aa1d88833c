//! Reads a server's output line by line, and brings each to whoever waits for it.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::deliver::{Message, deliver};
use super::queue::{Queue, broken};
use super::{Closed, ENDS, MAX_MESSAGE};

/// How large a buffer is at first.
const SMALL: usize = 16 * 1024;
/// A buffer that has grown beyond this is given back when it is empty.
const KEPT: usize = 256 * 1024;

/// A large read into a place just behind the beginning of a page, where an allocator puts a large buffer,
/// takes some processors four times as long (measured with 64 KB: 28 and not 7 µs). So reading begins at
/// a place that is divisible by this.
const ALIGNMENT: usize = 64;

/// So many lines are looked at without a pause.
const LINES_AT_ONCE: usize = 128;

/// How much a process may have left in its output when it ended: no pipe of a user holds more.
const LEFT: usize = 1024 * 1024;
/// Once nothing has come for this long, there is nothing left.
const QUIET: Duration = Duration::from_millis(20);
/// How long reading what is left may take.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Reads until the output ends, the process has ended, or `rmcp` is gone.
pub(super) async fn read(
    mut output: impl AsyncRead + Unpin,
    queue: Arc<Queue>,
    to_rmcp: mpsc::Sender<Message>,
    mut ended: oneshot::Receiver<ExitStatus>,
) {
    let mut lines = Lines::new(Arc::clone(&queue), to_rmcp);
    let reason = loop {
        let read = tokio::select! {
            // The end comes first: a descendant may write on and on. To look for it is cheap.
            biased;
            Ok(status) = &mut ended => {
                // What the server has said before it ended counts.
                let rest = timeout(LAST_ANSWERS, lines.read_rest(&mut output)).await;
                break rest.unwrap_or(Ok(())).err().unwrap_or(Closed::Ended(status));
            }
            read = output.read_buf(&mut lines.buffer) => read,
        };
        match read {
            // Mostly it has ended, which is about to be known.
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

/// What was read and not delivered yet.
struct Lines {
    queue: Arc<Queue>,
    to_rmcp: mpsc::Sender<Message>,
    buffer: Vec<u8>,
    /// Where it begins in the buffer.
    start: usize,
    /// How far the buffer is known to hold no line break.
    searched: usize,
}

impl Lines {
    fn new(queue: Arc<Queue>, to_rmcp: mpsc::Sender<Message>) -> Self {
        let mut lines = Self { queue, to_rmcp, buffer: Vec::new(), start: 0, searched: 0 };
        lines.begin_anew();
        lines
    }

    /// Makes the buffer empty, and gives it back if it is large.
    fn begin_anew(&mut self) {
        self.buffer.clear();
        if !(SMALL..=KEPT).contains(&self.buffer.capacity()) {
            self.buffer = Vec::with_capacity(SMALL);
        }
        self.start = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        self.buffer.resize(self.start, 0);
        self.searched = self.start;
    }

    /// Takes what a process that has ended left behind. A descendant may hold its output open.
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

    /// Brings the lines that are complete to whoever waits for them.
    async fn take(&mut self, read: io::Result<usize>) -> Result<(), Closed> {
        match read {
            Ok(_) => self.queue.heard.note(),
            Err(error) => return Err(broken(&error)),
        }
        let (delivered, mut lines) = (self.start, 0);
        let line_break = |buffer: &[u8], from: usize| memchr::memchr(b'\n', &buffer[from..]);
        while let Some(at) = line_break(&self.buffer, self.searched) {
            let end = self.searched + at;
            let line = &self.buffer[self.start..end];
            (self.start, self.searched) = (end + 1, end + 1);
            if deliver(line, None, &*self.queue, &self.to_rmcp).await.is_err() {
                return Err(Closed::ByUs);
            }
            lines += 1;
            // Others have their turn, however much a server writes.
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
