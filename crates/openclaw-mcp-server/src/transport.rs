//! JSON-RPC messages as lines, with bounds on what a client can make this process hold.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ClientNotification, ClientRequest, GetMeta as _, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Maximum length of a line: attachments of 20 MB in base64, a message, and some room.
const MAX_LINE: usize = 32 * 1024 * 1024;
/// Bytes at the end of an overlong line that are searched for its id. SDKs write it there.
const TAIL: usize = 256;
/// Nothing is read while this many messages, or bytes of them, wait for the client to read.
const MAX_UNREAD: usize = 64;
const MAX_UNREAD_BYTES: usize = 8 * 1024 * 1024;
/// Nothing is read while this many requests are in progress. Long ones are far fewer, so that some
/// of them end soon.
const MAX_OPEN: usize = 256;
/// How long running requests may go on after the client has closed its end.
const FINISH: Duration = Duration::from_secs(1);

/// A client at the other end of two streams.
pub(crate) struct LineTransport<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The last bytes of an overlong line, while its rest is skipped.
    tail: Option<Vec<u8>>,
    /// Whether the client has begun. Before that, `rmcp` takes only requests.
    has_begun: bool,
    output: Arc<Output<W>>,
    /// Cancelled some time after the client has closed its end.
    gone: CancellationToken,
    /// Answers to what is rejected here, and the end of `gone`.
    tasks: JoinSet<()>,
}

struct Output<W> {
    /// `None` once it is closed.
    writer: tokio::sync::Mutex<Option<W>>,
    state: Mutex<State>,
    /// Notified when the client has read something.
    read: Notify,
}

#[derive(Default)]
struct State {
    unread: usize,
    unread_bytes: usize,
    /// The ids of requests that are not answered yet.
    open: HashSet<RequestId>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> LineTransport<R, W> {
    pub(crate) fn new(input: R, output: W, gone: CancellationToken) -> Self {
        let output = Output {
            writer: tokio::sync::Mutex::new(Some(output)),
            state: Mutex::default(),
            read: Notify::new(),
        };
        let input = BufReader::with_capacity(64 * 1024, input);
        Self {
            input,
            line: Vec::new(),
            tail: None,
            has_begun: false,
            output: Arc::new(output),
            gone,
            tasks: JoinSet::new(),
        }
    }

    /// Reads a line into `self.line`. Cancel-safe: what was read is kept there.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = &available[..end.unwrap_or(available.len())];
            if let Some(tail) = &mut self.tail {
                tail.extend_from_slice(&taken[taken.len().saturating_sub(TAIL)..]);
                tail.drain(..tail.len().saturating_sub(TAIL));
            } else if self.line.len() + taken.len() > MAX_LINE {
                self.line = Vec::new();
                self.tail = Some(taken[taken.len().saturating_sub(TAIL)..].to_vec());
            } else {
                self.line.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(match self.tail.take() {
                    Some(tail) => Line::TooLong(id_at_end(&tail)),
                    None => Line::Whole,
                });
            }
        }
    }

    /// Converts a line to a message; `None` if it was answered here, or is to be ignored.
    fn message(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = self.line.trim_ascii();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let message = match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) {
            Ok(message) => message,
            Err(error) => {
                // Not quoted: it may contain secrets. What is not JSON at all is ignored, as by
                // other servers: an answer without an id helps no client.
                tracing::warn!(%error, bytes = line.len(), "not a JSON-RPC message");
                if let Some(id) = serde_json::from_slice::<Identified>(line).ok()?.id {
                    let error = ErrorData::invalid_request("not a valid MCP request", None);
                    self.reject(Some(id), error);
                }
                return None;
            }
        };
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if !is_request && !self.has_begun {
            tracing::warn!("ignored a message before the handshake");
            return None;
        }
        match &message {
            JsonRpcMessage::Request(request) => {
                self.has_begun |= begins(&request.request);
                let is_new = self.output.lock().open.insert(request.id.clone());
                if !is_new {
                    tracing::warn!(id = %request.id, "request id is in use");
                    // Without the id, which belongs to the request in progress.
                    let words = format!("request id {} is already in use", request.id);
                    self.reject(None, ErrorData::invalid_request(words, None));
                    return None;
                }
            }
            JsonRpcMessage::Notification(it) => {
                // Its response is not sent any more.
                if let ClientNotification::CancelledNotification(it) = &it.notification
                    && let Some(id) = &it.params.request_id
                {
                    self.output.lock().open.remove(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Answers with an error, in a task of its own: `receive` may be cancelled at any time.
    fn reject(&mut self, id: Option<RequestId>, error: ErrorData) {
        let sending = self.send(JsonRpcMessage::error(error, id));
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async {
            // If the client is gone, the next read finds that out.
            let _ = sending.await;
        });
    }
}

/// Whether a request is the beginning of a connection, in any protocol version.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}

enum Line {
    Whole,
    TooLong(Option<RequestId>),
    End,
}

#[derive(Deserialize)]
struct Identified {
    #[serde(default)]
    id: Option<RequestId>,
}

/// Returns the id of a request whose end this is, if `id` is its last member.
fn id_at_end(tail: &[u8]) -> Option<RequestId> {
    let tail = std::str::from_utf8(tail).ok()?.trim_end().strip_suffix('}')?;
    let (_, value) = tail.rsplit_once("\"id\":")?;
    serde_json::from_str(value.trim()).ok()
}

impl<W> Output<W> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the client has read enough of what was sent, and few requests are in progress.
    async fn until_read(&self) {
        loop {
            let read = self.read.notified();
            let is_full = {
                let state = self.lock();
                state.unread >= MAX_UNREAD
                    || state.unread_bytes >= MAX_UNREAD_BYTES
                    || state.open.len() >= MAX_OPEN
            };
            if !is_full {
                return;
            }
            read.await;
        }
    }
}

/// Counts a message as unread until it is written.
struct Unread<W> {
    output: Arc<Output<W>>,
    bytes: usize,
}

impl<W> Unread<W> {
    fn new(output: &Arc<Output<W>>, bytes: usize) -> Self {
        let mut state = output.lock();
        state.unread += 1;
        state.unread_bytes += bytes;
        drop(state);
        Self { output: Arc::clone(output), bytes }
    }
}

impl<W> Drop for Unread<W> {
    fn drop(&mut self) {
        let mut state = self.output.lock();
        state.unread -= 1;
        state.unread_bytes -= self.bytes;
        drop(state);
        self.output.read.notify_one();
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    /// Serializes a message now, and writes it when its turn comes. Not cancel-safe: a message that
    /// is half written breaks the stream.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.output.lock().open.remove(id);
        }
        let line = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            let unread = Unread::new(&self.output, line.len());
            (line, unread)
        });
        async move {
            let (line, unread) = line?;
            let mut writer = unread.output.writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.output.until_read().await;
            match self.read_line().await {
                Ok(Line::Whole) => {
                    let message = self.message();
                    self.line.clear();
                    self.line.shrink_to(64 * 1024);
                    if message.is_some() {
                        return message;
                    }
                }
                Ok(Line::TooLong(id)) => {
                    let most = MAX_LINE / 1024 / 1024;
                    tracing::warn!("message is longer than {most} MB");
                    let words = format!("the message is longer than {most} MB");
                    self.reject(id, ErrorData::invalid_request(words, None));
                }
                Ok(Line::End) => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot read from the client");
                    break;
                }
            }
        }
        let gone = self.gone.clone();
        self.tasks.spawn(async move {
            sleep(FINISH).await;
            gone.cancel();
        });
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        // A client that does not read must not keep it open: then it closes with the process.
        if let Ok(mut writer) = self.output.writer.try_lock() {
            drop(writer.take());
        }
        Ok(())
    }
}
