//! [`Socket`]: a WebSocket over TCP or TLS with a single owner. It reads and writes concurrently, with a
//! bounded send queue.

mod backlog;
mod broken;
mod tcp;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use openclaw_budget::{ByteBudget, BytePermit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tungstenite::error::Error;
use tungstenite::handshake::HandshakeError;
use tungstenite::handshake::client::{ClientHandshake, Request};
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Message, Utf8Bytes, WebSocket};

pub use self::backlog::Backlog;
pub use self::broken::SocketError;
pub(crate) use self::tcp::Tcp;

/// Fragment size of long messages: after each partial write, tungstenite copies the bytes that are
/// still unwritten.
const PIECE: usize = 128 * 1024;
/// Initial read buffer size, until [`allow`](Socket::allow) raises it.
const FIRST_READ: usize = 4 * 1024;
/// Read buffer size after [`allow`](Socket::allow).
const READ: usize = 64 * 1024;
/// Size of the head of a ping or pong of a client.
const CONTROL_HEAD: usize = 6;
/// Maximum number of bytes drained after closing, so that the peer receives the close reason.
const MAX_DRAINED: usize = 64 * 1024 * 1024;

/// Limits of the send queue.
#[derive(Debug, Clone, Copy)]
pub struct SendLimits {
    /// Maximum number of queued bytes; beyond it the peer is considered too slow.
    pub bytes: usize,
    /// Maximum number of queued messages.
    pub frames: usize,
    /// From this many queued bytes on, the socket reports itself as full, and the owner should
    /// pause.
    pub pause: usize,
    /// How long the peer may accept no data while something is queued.
    pub stall: Duration,
}

/// A WebSocket over TCP.
#[derive(Debug)]
pub struct Socket {
    socket: WebSocket<Tcp>,
    limits: SendLimits,
    /// Queued messages with their times; the first may have been sent in part.
    queue: VecDeque<(Bytes, Instant)>,
    sent_of_first: usize,
    queued_bytes: usize,
    /// Whether tungstenite holds data that the kernel has not accepted yet.
    is_unflushed: bool,
    /// When the oldest message in that data was queued.
    unflushed_since: Option<Instant>,
    backlog: Arc<Backlog>,
    stall: Option<Stall>,
    /// Counts what waits to be sent, and what was received of a message.
    memory: Option<BytePermit>,
    /// Bytes received up to the end of the last message.
    received: u64,
    /// When the first bytes of the next message were received.
    unfinished_since: Option<Instant>,
}

/// Tracks how long nothing was written.
#[derive(Debug)]
struct Stall {
    written: u64,
    until: Pin<Box<Sleep>>,
}

impl Socket {
    /// Creates the server side after the HTTP upgrade; `read` are the bytes received along with it.
    #[must_use]
    pub fn accepted(stream: TcpStream, read: Vec<u8>, max: usize, limits: SendLimits) -> Self {
        let stream = Tcp::new(stream);
        let config = Some(config(max));
        Self::new(WebSocket::from_partially_read(stream, read, Role::Server, config), limits)
    }

    /// Creates the client side: performs the WebSocket handshake.
    ///
    /// # Errors
    /// If the peer does not speak WebSocket.
    pub(crate) async fn dialled(
        stream: Tcp,
        request: Request,
        max: usize,
        limits: SendLimits,
    ) -> Result<Self, Error> {
        stream.stream.writable().await?;
        let mut round = ClientHandshake::start(stream, request, Some(config(max)))?;
        loop {
            round = match round.handshake() {
                Ok((socket, _)) => {
                    let mut socket = Self::new(socket, limits);
                    socket.allow(max);
                    return Ok(socket);
                }
                // The request is small and was written immediately: only the response is missing.
                Err(HandshakeError::Interrupted(round)) => {
                    round.get_ref().get_ref().stream.readable().await?;
                    round
                }
                Err(HandshakeError::Failure(error)) => return Err(error),
            };
        }
    }

    fn new(socket: WebSocket<Tcp>, limits: SendLimits) -> Self {
        Self {
            socket,
            limits,
            queue: VecDeque::new(),
            sent_of_first: 0,
            queued_bytes: 0,
            is_unflushed: false,
            unflushed_since: None,
            backlog: Arc::new(Backlog::new()),
            stall: None,
            memory: None,
            received: 0,
            unfinished_since: None,
        }
    }

    /// Counts the bytes that wait to be sent, and those of an unfinished message, in this budget.
    pub fn count_in(&mut self, budget: &Arc<ByteBudget>) {
        self.memory = Some(budget.permit());
    }

    /// Returns for how long the peer has been sending one message.
    #[must_use]
    pub fn receiving(&self) -> Duration {
        self.unfinished_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Updates the bytes in use.
    fn note_memory(&mut self, queued: usize) -> Result<(), SocketError> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let unfinished = match self.unfinished_since {
            Some(_) => self.socket.get_ref().read.saturating_sub(self.received),
            None => 0,
        };
        let unfinished = usize::try_from(unfinished).unwrap_or(usize::MAX);
        memory.resize(queued.saturating_add(unfinished)).map_err(SocketError::Memory)
    }

    /// Sets the maximum size of received messages.
    pub fn allow(&mut self, max: usize) {
        self.socket.set_config(|it| *it = config(max).read_buffer_size(READ));
    }

    /// Queues a message. [`next`](Self::next) sends it.
    ///
    /// # Errors
    /// If the queue is full: the peer does not read. With [`SocketError::Memory`], the message was not
    /// queued, and the connection is as before.
    pub fn queue(&mut self, text: String) -> Result<(), SocketError> {
        let waiting = self.queued_bytes + text.len();
        if waiting > self.limits.bytes || self.queue.len() >= self.limits.frames {
            return Err(SocketError::Slow);
        }
        self.note_memory(waiting)?;
        self.queued_bytes = waiting;
        self.queue.push_back((Bytes::from(text), Instant::now()));
        self.note_backlog();
        Ok(())
    }

    /// Returns how far the peer is behind, now and later.
    #[must_use]
    pub fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    fn note_backlog(&self) {
        let oldest = self.unflushed_since.or_else(|| self.queue.front().map(|(_, at)| *at));
        self.backlog.set(oldest, self.queue.len());
    }

    /// Sends a ping. Any bytes received in return prove that the peer is alive.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn ping(&mut self) -> Result<(), SocketError> {
        self.is_unflushed = true;
        accepted(self.socket.write(Message::Ping(Bytes::new())))
    }

    /// Returns whether the owner should wait until the peer has read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queued_bytes >= self.limits.pause
    }

    /// Returns the total number of bytes received.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.socket.get_ref().read
    }

    /// Sends queued messages and waits for the next message. With `reading` false, it only sends.
    /// Returns `None` when the socket was full and no longer is. Cancel-safe.
    ///
    /// # Errors
    /// If the connection is closed or broken.
    pub async fn next(&mut self, reading: bool) -> Result<Option<Utf8Bytes>, SocketError> {
        let was_full = self.is_full();
        poll_fn(|cx| match self.poll_write(cx) {
            Poll::Ready(Err(broken)) => Poll::Ready(Err(broken)),
            _ if was_full && !self.is_full() => Poll::Ready(Ok(None)),
            _ if reading => self.poll_read(cx).map_ok(Some),
            _ => Poll::Pending,
        })
        .await
    }

    /// Sends queued messages and waits for the next message. Cancel-safe.
    ///
    /// # Errors
    /// If the connection is closed or broken.
    pub async fn message(&mut self) -> Result<Utf8Bytes, SocketError> {
        loop {
            if let Some(text) = self.next(true).await? {
                return Ok(text);
            }
        }
    }

    /// Sends all queued messages. Cancel-safe.
    ///
    /// # Errors
    /// If the connection is lost or the peer does not read.
    pub async fn flush(&mut self) -> Result<(), SocketError> {
        poll_fn(|cx| self.poll_write(cx)).await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Utf8Bytes, SocketError>> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    self.received = self.socket.get_ref().read;
                    self.unfinished_since = None;
                    self.note_memory(self.queued_bytes)?;
                    return Poll::Ready(Ok(text));
                }
                // These may stand between the parts of a message.
                Ok(Message::Ping(data) | Message::Pong(data)) => {
                    self.received += (CONTROL_HEAD + data.len()) as u64;
                }
                Ok(Message::Frame(_)) => {}
                Ok(Message::Binary(_)) => return Poll::Ready(Err(SocketError::Binary)),
                Ok(Message::Close(frame)) => {
                    // tungstenite has queued the close response.
                    self.is_unflushed = true;
                    let (code, reason) = frame
                        .map(|frame| (frame.code.into(), frame.reason.to_string()))
                        .unwrap_or((1005, String::new()));
                    return Poll::Ready(Err(SocketError::Closed { code, reason }));
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.note_unfinished()?;
                    ready!(self.socket.get_ref().poll_readable(cx)).map_err(SocketError::Lost)?;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Counts what was received of a message.
    fn note_unfinished(&mut self) -> Result<(), SocketError> {
        if self.socket.get_ref().read <= self.received {
            self.unfinished_since = None;
            return Ok(());
        }
        self.unfinished_since.get_or_insert_with(Instant::now);
        self.note_memory(self.queued_bytes)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        loop {
            if self.is_unflushed {
                match self.socket.flush() {
                    Ok(()) => {
                        (self.is_unflushed, self.unflushed_since) = (false, None);
                        self.note_backlog();
                    }
                    Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                        let written = self.socket.get_ref().stream.poll_write_ready(cx);
                        if written.map_err(SocketError::Lost)?.is_pending() {
                            return self.poll_stall(cx);
                        }
                        continue;
                    }
                    Err(error) => return Poll::Ready(Err(error.into())),
                }
            }
            if self.queue.is_empty() {
                self.stall = None;
                return Poll::Ready(Ok(()));
            }
            self.hand_over()?;
        }
    }

    /// Passes as much to tungstenite as one write can take.
    fn hand_over(&mut self) -> Result<(), SocketError> {
        let mut room = PIECE;
        while let Some((text, queued)) = self.queue.front() {
            let rest = text.len() - self.sent_of_first;
            let piece = text.slice(self.sent_of_first..self.sent_of_first + rest.min(PIECE));
            if piece.len() > room {
                break;
            }
            room -= piece.len();
            self.unflushed_since.get_or_insert(*queued);
            let kind = if self.sent_of_first == 0 { Data::Text } else { Data::Continue };
            let is_last = piece.len() == rest;
            self.queued_bytes -= piece.len();
            if is_last {
                self.queue.pop_front();
                self.sent_of_first = 0;
            } else {
                self.sent_of_first += piece.len();
            }
            let frame = Frame::message(piece, OpCode::Data(kind), is_last);
            self.is_unflushed = true;
            accepted(self.socket.write(Message::Frame(frame)))?;
        }
        self.note_memory(self.queued_bytes)
    }

    /// Called while nothing can be written: fails once that lasts too long.
    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        let written = self.socket.get_ref().written;
        let limit = self.limits.stall;
        let stall =
            self.stall.get_or_insert_with(|| Stall { written, until: Box::pin(sleep(limit)) });
        if stall.written != written {
            stall.written = written;
            stall.until.as_mut().reset(Instant::now() + limit);
        }
        ready!(stall.until.as_mut().poll(cx));
        Poll::Ready(Err(SocketError::Slow))
    }

    /// Sends queued messages and a close frame, waiting at most `grace`, and closes the connection.
    pub async fn close(mut self, code: u16, reason: &str, grace: Duration) {
        let _ = timeout(grace, self.say_goodbye(code, reason)).await;
    }

    async fn say_goodbye(&mut self, code: u16, reason: &str) -> Result<(), SocketError> {
        self.flush().await?;
        let reason = Utf8Bytes::from(cut(reason, MAX_REASON));
        let frame = CloseFrame { code: CloseCode::from(code), reason };
        self.is_unflushed = true;
        accepted(self.socket.close(Some(frame)))?;
        self.flush().await?;
        let stream = &mut self.socket.get_mut().stream;
        stream.shutdown().await.map_err(SocketError::Lost)?;
        // With unread data left, closing resets the TCP connection, and the peer would lose the
        // close frame.
        let mut buffer = vec![0; FIRST_READ];
        let mut left = MAX_DRAINED;
        while left > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
        Ok(())
    }
}

/// Maximum length of the reason in a close frame.
const MAX_REASON: usize = 123;

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn config(max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(FIRST_READ)
        .max_message_size(Some(max))
        .max_frame_size(Some(max))
}

/// On `WouldBlock`, tungstenite has accepted the message and sends it with the next flush.
fn accepted(written: Result<(), Error>) -> Result<(), SocketError> {
    match written {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        // Both sides have sent their close frames.
        Err(Error::ConnectionClosed) => Ok(()),
        other => Ok(other?),
    }
}
