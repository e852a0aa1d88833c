//! Reads a server's output line by line, and brings each to whoever waits for it.

use std::sync::Arc;

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::async_rw::JsonRpcMessageCodec;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;

use super::Closed;
use super::peek::{Line, peek};
use super::queue::{Queue, broken};

/// A longer line is not read.
pub(super) const MAX_LINE: usize = 64 * 1024 * 1024;
/// A buffer that has grown beyond this is given back when it is empty.
const KEPT: usize = 256 * 1024;
/// How much of a line that makes no sense goes to the log.
const SHOWN: usize = 200;

/// A message for `rmcp`.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

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
            Ok(_) => {}
            Err(error) => break broken(&error),
        }
        let mut start = 0;
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]).map(|at| searched + at) {
            let line = &buffer[start..end];
            (start, searched) = (end + 1, end + 1);
            if deliver(line, &queue, &to_rmcp).await.is_err() {
                return queue.close(Closed::ByUs);
            }
        }
        buffer.drain(..start);
        searched = buffer.len();
        if searched > MAX_LINE {
            break Closed::LineTooLong;
        }
        if buffer.is_empty() && buffer.capacity() > KEPT {
            buffer = Vec::with_capacity(16 * 1024);
        }
    };
    queue.close(reason);
}

/// `rmcp` does not listen any more.
struct Gone;

async fn deliver(line: &[u8], queue: &Queue, to_rmcp: &mpsc::Sender<Message>) -> Result<(), Gone> {
    match peek(line) {
        Line::Answer(id, answer) => {
            let waiter = queue.state().calls.close(id);
            // Nobody may wait any more: the call timed out, or the server answers twice.
            if let Some(waiter) = waiter {
                let _ = waiter.send(answer.map(ToOwned::to_owned).map_err(ToOwned::to_owned));
            }
            Ok(())
        }
        Line::Progress(id) => {
            queue.state().calls.progressed(id);
            Ok(())
        }
        Line::Other => hand_over(line, to_rmcp).await,
        Line::Batch(messages) => {
            for message in messages {
                // One level deep: a batch within a batch is garbage.
                let line = message.get().as_bytes();
                if matches!(peek(line), Line::Batch(_) | Line::Garbage) {
                    skip(line);
                } else {
                    Box::pin(deliver(line, queue, to_rmcp)).await?;
                }
            }
            Ok(())
        }
        Line::Garbage => {
            skip(line);
            Ok(())
        }
    }
}

async fn hand_over(line: &[u8], to_rmcp: &mpsc::Sender<Message>) -> Result<(), Gone> {
    let mut bytes = BytesMut::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line);
    bytes.extend_from_slice(b"\n");
    match JsonRpcMessageCodec::<Message>::default().decode(&mut bytes) {
        Ok(Some(message)) => to_rmcp.send(message).await.map_err(|_| Gone),
        // A notification that MCP does not know.
        Ok(None) => Ok(()),
        Err(_) => {
            skip(line);
            Ok(())
        }
    }
}

/// A line that makes no sense is worth a word, and no more.
fn skip(line: &[u8]) {
    if !line.iter().all(u8::is_ascii_whitespace) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
        tracing::debug!(bytes = line.len(), line = %shown.escape_debug(), "skipped what is not a message");
    }
}
