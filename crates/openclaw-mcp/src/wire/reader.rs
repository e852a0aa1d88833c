//! Reads a server's output line by line, and brings each to whoever waits for it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::deliver::{Message, deliver};
use super::queue::{Queue, broken};
use super::{Closed, MAX_MESSAGE};

/// A buffer that has grown beyond this is given back when it is empty.
const KEPT: usize = 256 * 1024;

/// So many lines are looked at without a pause.
const LINES_AT_ONCE: usize = 128;

/// Reads until the output ends or `rmcp` is gone.
pub(super) async fn read(
    mut output: impl AsyncRead + Unpin,
    queue: Arc<Queue>,
    to_rmcp: mpsc::Sender<Message>,
) {
    let mut buffer = Vec::with_capacity(16 * 1024);
    // How far the buffer is known to hold no line break.
    let mut searched = 0;
    let reason = loop {
        match output.read_buf(&mut buffer).await {
            Ok(0) => break Closed::ByServer,
            Ok(_) => queue.heard.note(),
            Err(error) => break broken(&error),
        }
        let (mut start, mut lines) = (0, 0);
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]).map(|at| searched + at) {
            let line = &buffer[start..end];
            (start, searched) = (end + 1, end + 1);
            if deliver(line, None, &*queue, &to_rmcp).await.is_err() {
                return queue.close(Closed::ByUs);
            }
            lines += 1;
            // Others have their turn, however much a server writes.
            if lines % LINES_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        buffer.drain(..start);
        searched = buffer.len();
        if searched > MAX_MESSAGE {
            break Closed::LineTooLong;
        }
        if buffer.is_empty() && buffer.capacity() > KEPT {
            buffer = Vec::with_capacity(16 * 1024);
        }
    };
    queue.close(reason);
}
