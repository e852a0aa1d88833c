//! A client that is reached by lines: stdio, or a connection of another process of this program.
//!
//! One task reads the client and writes the replies; all replies that are ready leave in one write. An
//! ordinary call is started when its line is read, and its reply is put into the outbox by the task
//! that reads its server: there is no future, task or channel for it. Calls that have to wait for
//! something before are futures, which this task runs.
//!
//! Bounds: the length of a line, the number of requests in progress, and the bytes that wait for a
//! client that does not read. Such a client is not read either, and results that arrive nevertheless
//! are dropped beyond a limit.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, Join, Ready};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, FREE};
use openclaw_tools::{CallLane, StartedCall};
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::connection::ClientConnection;
use super::incoming::{CallRequest, PlainCall};
use super::memory::LOCAL;
use super::outbox::{BEHIND, FULL, Outbox, Taken};
use super::overlong::OverlongLine;
use super::reply::{BUSY, HubReply};
use super::rmcp_transport::{FrontTransport, ServerRoleMessage};
use crate::era::EraServer;

/// Maximum number of requests in progress of a client that is behind with reading; further ones are not
/// read until it has caught up.
const MAX_WHILE_BEHIND: usize = 64;
/// Messages that wait for `rmcp`.
const MAX_WAITING: usize = 64;
/// Initial capacity of the read buffer.
const SMALL: usize = 16 * 1024;
/// A read buffer with more capacity than this is freed once it is empty.
const KEPT: usize = 256 * 1024;

/// How long a client that has closed its end can wait for replies; then its requests are cancelled. Most
/// clients close it to end this process, and send a signal after 2 s.
const LAST_REPLIES: Duration = Duration::from_secs(1);
/// How long a client may take to send a long line.
const SENDING: Duration = Duration::from_secs(5 * 60);

/// Why a client was served no longer, besides its own end.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It took too long to send a line.
    #[error("the client took more than {} s to send a line", SENDING.as_secs())]
    TooSlow,
    /// There is no memory for its lines.
    #[error(transparent)]
    Memory(#[from] BudgetSpent),
    /// Its pipe broke.
    #[error("connection to the client lost")]
    Io(#[from] io::Error),
}

/// What answers the tool calls of a client past `rmcp`.
pub(crate) trait LineCalls: Send + Sync {
    /// Starts an ordinary call, if nothing has to be waited for but its result, which the function gets
    /// that `done` returns. The call is buffered until its lane is flushed.
    fn begin<D: FnOnce(HubReply) + Send + 'static>(
        &mut self,
        _call: &PlainCall<'_>,
        _done: impl FnOnce() -> D,
    ) -> Option<StartedCall> {
        None
    }

    /// Called after all lines of a read.
    fn end_read(&mut self) {}

    /// Makes a call. Dropping the future cancels it.
    fn call(&self, request: CallRequest) -> BoxFuture<'static, HubReply>;
}

/// Of a server whose calls all pass through `rmcp`.
impl LineCalls for Infallible {
    fn call(&self, _: CallRequest) -> BoxFuture<'static, HubReply> {
        match *self {}
    }
}

/// Bounds on what is read from a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineLimits {
    /// Maximum length of a line. The rest of a longer one is skipped.
    pub(crate) line: usize,
    /// With this many requests in progress, nothing is read.
    pub(crate) requests: usize,
}

/// A client at the other end of the lines.
pub(crate) struct LineClient {
    pub(crate) connection: Arc<ClientConnection>,
    pub(crate) outbox: Arc<Outbox>,
    /// The memory of its principal.
    pub(crate) budget: Arc<ByteBudget>,
}

impl LineClient {
    /// A client in the user's own process.
    pub(crate) fn local() -> Self {
        let budget = ByteBudget::new(LOCAL);
        let outbox = Arc::new(Outbox::new(&budget));
        let connection = ClientConnection::default();
        connection.writes_to(&outbox);
        Self { connection: Arc::new(connection), outbox, budget }
    }
}

/// Serves a client until it closes its end. `calls` answers its tool calls, or else `handler` does, which
/// answers everything else.
///
/// # Errors
/// If the client sends a line too slowly or without memory for it, or the connection breaks.
pub(crate) async fn serve<C: LineCalls>(
    client: LineClient,
    limits: LineLimits,
    calls: Option<C>,
    handler: impl ServerHandler,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), LineError> {
    let LineClient { connection, outbox, budget } = client;
    let (to_rmcp, messages) = mpsc::channel(MAX_WAITING);
    let is_open = Arc::new(AtomicBool::new(false));
    let transport = FrontTransport {
        messages,
        outbox: Arc::clone(&outbox),
        budget: Arc::clone(&budget),
        is_open: Arc::clone(&is_open),
    };
    let rmcp = tokio::spawn(async move {
        match EraServer(handler).serve(transport).await {
            Ok(running) => drop(running.waiting().await),
            Err(error) => tracing::debug!(%error, "the handshake failed"),
        }
    });
    // It ends with this future, also if it is dropped.
    let _rmcp = AbortOnDropHandle::new(rmcp);
    let front = Front {
        answering: FuturesUnordered::new(),
        requests: HashMap::new(),
        buffer: Vec::with_capacity(SMALL),
        memory: budget.permit(),
        overlong: None,
        unfinished_since: None,
        searched: 0,
        out: Taken::default(),
        unflushed: Vec::new(),
        held: None,
        has_begun: false,
        connection,
        outbox,
        budget,
        limits,
        calls,
        to_rmcp,
        is_open,
    };
    front.run(input, output).await
}

/// A call with the id of its request. Without a reply, it was cancelled.
type Answering = Join<Ready<Arc<str>>, Abortable<BoxFuture<'static, HubReply>>>;

/// A request in progress.
pub(super) enum InProgress {
    /// A call whose reply the outbox gets.
    Started(StartedCall),
    /// A call that this task runs.
    Call(AbortHandle),
    /// A request that `rmcp` answers, with its memory.
    Slow { _memory: BytePermit },
}

/// The state of the task that serves a client.
pub(super) struct Front<C> {
    pub(super) connection: Arc<ClientConnection>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) budget: Arc<ByteBudget>,
    pub(super) limits: LineLimits,
    pub(super) calls: Option<C>,
    pub(super) to_rmcp: mpsc::Sender<ServerRoleMessage>,
    /// Whether the handshake is answered.
    pub(super) is_open: Arc<AtomicBool>,
    pub(super) answering: FuturesUnordered<Answering>,
    /// By id, as JSON.
    pub(super) requests: HashMap<Arc<str>, InProgress>,
    buffer: Vec<u8>,
    /// The memory of the buffer.
    memory: BytePermit,
    /// The line that is being skipped.
    overlong: Option<OverlongLine>,
    /// When a long line began that has not arrived as a whole.
    unfinished_since: Option<Instant>,
    /// Up to here, the buffer contains no line break.
    searched: usize,
    /// What is written next.
    pub(super) out: Taken,
    /// The servers that calls were started on since the last flush.
    pub(super) unflushed: Vec<Arc<dyn CallLane>>,
    /// A message for which `rmcp` has no room. Nothing is read meanwhile.
    pub(super) held: Option<ServerRoleMessage>,
    /// Whether `rmcp` knows the client. Before that, it takes only requests: anything else would be
    /// its end.
    pub(super) has_begun: bool,
}

impl<C: LineCalls> Front<C> {
    async fn run(
        mut self,
        mut input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
    ) -> Result<(), LineError> {
        let outbox = Arc::clone(&self.outbox);
        let to_rmcp = self.to_rmcp.clone();
        let mut has_ended = false;
        let mut last_replies = std::pin::pin!(sleep(Duration::MAX));
        loop {
            // Before lines are read: an id may be used again as soon as its request is answered.
            self.take_outbox();
            self.process();
            self.take_outbox();
            if has_ended && self.requests.is_empty() && self.out.lines.is_empty() {
                return Ok(());
            }
            let has_room = self.has_room();
            let late = self.unfinished_since.map(|since| since + SENDING);
            tokio::select! {
                biased;
                written = output.write(self.out.lines.front()), if !self.out.lines.is_empty() => {
                    let written = written?;
                    if written == 0 {
                        return Err(io::Error::from(io::ErrorKind::WriteZero).into());
                    }
                    self.out.lines.advance(written);
                    if self.out.lines.is_empty() {
                        output.flush().await?;
                    }
                }
                // Also without room: the outbox limits what it keeps, a call does not.
                Some((id, reply)) = self.answering.next(), if !self.answering.is_empty() => {
                    self.finish(id, reply);
                    // Those that are ready, too, leave in the same write.
                    while let Some(Some((id, reply))) = self.answering.next().now_or_never() {
                        self.finish(id, reply);
                    }
                }
                () = &mut last_replies, if has_ended => return Ok(()),
                () = late_line(late), if late.is_some() => return Err(LineError::TooSlow),
                () = outbox.filled(), if has_room => {}
                permit = to_rmcp.reserve(), if self.held.is_some() => {
                    if let (Ok(permit), Some(message)) = (permit, self.held.take()) {
                        permit.send(message);
                    }
                }
                read = input.read_buf(&mut self.buffer),
                    if self.may_read() && !has_ended =>
                {
                    // A client that closes its end still gets the replies to what it has sent.
                    has_ended = read? == 0;
                    if let Err(spent) = self.memory.resize(self.buffer.len()) {
                        self.refuse(None, BUSY, &spent.to_string());
                        let last = output.write_all(self.out.lines.front());
                        let _ = timeout(LAST_REPLIES, last).await;
                        return Err(spent.into());
                    }
                    if has_ended {
                        self.buffer.push(b'\n');
                        last_replies.as_mut().reset(Instant::now() + LAST_REPLIES);
                    }
                }
            }
        }
    }

    /// Whether there is room for further replies.
    pub(super) fn has_room(&self) -> bool {
        self.out.lines.len() < FULL
    }

    /// Whether further lines are handled.
    fn may_read(&self) -> bool {
        let is_behind = self.out.lines.len() >= BEHIND;
        let most = if is_behind { MAX_WHILE_BEHIND } else { self.limits.requests };
        self.has_room() && self.held.is_none() && self.requests.len() < most
    }

    /// Takes what waits in the outbox, if there is room: it limits what it keeps.
    pub(super) fn take_outbox(&mut self) {
        if !self.has_room() {
            return;
        }
        self.outbox.take(&mut self.out);
        for id in self.out.answered.drain(..) {
            self.requests.remove(&id);
        }
    }

    /// Handles the complete lines of the buffer, as long as there is room for their replies.
    fn process(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while self.may_read()
            && let Some(at) = memchr::memchr(b'\n', &buffer[self.searched..])
        {
            let end = self.searched + at;
            self.line(&buffer[start..end]);
            start = end + 1;
            self.searched = start;
        }
        if let Some(calls) = &mut self.calls {
            calls.end_read();
        }
        // The calls of all lines leave in one write.
        self.unflushed.drain(..).for_each(|lane| lane.flush());
        let is_searched = self.may_read();
        // What waits behind a full queue is longer than a line only if a line was.
        if is_searched && (self.overlong.is_some() || buffer.len() - start > self.limits.line) {
            self.skip(&buffer[start..]);
            start = buffer.len();
        }
        if start == buffer.len() {
            buffer.clear();
            if buffer.capacity() > KEPT {
                buffer = Vec::with_capacity(SMALL);
            }
        } else {
            buffer.drain(..start);
        }
        self.searched = if is_searched { buffer.len() } else { self.searched - start };
        self.buffer = buffer;
        // Not more than before.
        let _ = self.memory.resize(self.buffer.len());
        if self.overlong.is_some() {
            self.unfinished_since.get_or_insert_with(Instant::now);
        } else if self.buffer.len() <= FREE || !is_searched || start > 0 {
            self.unfinished_since = None;
        } else {
            self.unfinished_since.get_or_insert_with(Instant::now);
        }
    }

    /// Skips a part of an overlong line.
    fn skip(&mut self, part: &[u8]) {
        match &mut self.overlong {
            Some(line) => line.add(part),
            None => self.overlong = Some(OverlongLine::new(part)),
        }
    }

    /// Handles a line, or the end of one that is skipped.
    fn line(&mut self, line: &[u8]) {
        if self.overlong.is_some() || line.len() > self.limits.line {
            self.skip(line);
        }
        match self.overlong.take() {
            Some(overlong) => self.refuse_overlong(overlong.id().as_deref()),
            None => self.message(line.trim_ascii()),
        }
    }
}

impl<C> Drop for Front<C> {
    /// Nothing waits for the calls of a client that is gone.
    fn drop(&mut self) {
        for request in self.requests.values() {
            if let InProgress::Started(call) = request {
                call.cancel();
            }
        }
    }
}

/// Waits until a line is late.
async fn late_line(late: Option<Instant>) {
    match late {
        Some(late) => sleep_until(late).await,
        None => std::future::pending().await,
    }
}
