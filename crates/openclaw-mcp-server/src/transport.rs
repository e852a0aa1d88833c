//! JSON-RPC messages as lines, with bounds on what a client can make this process hold.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ClientNotification, ClientRequest, GetMeta as _, JsonRpcError, JsonRpcMessage, RequestId,
    ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::batch::{
    self, BatchError, BatchReplies, BatchStep, NO_HANDSHAKE, OpenBatches, TOO_LARGE,
};
use crate::server::invalid_params;

/// Maximum length of a line: attachments of 20 MB in base64, a message, and some room.
const MAX_LINE: usize = 32 * 1024 * 1024;
/// Bytes at the beginning and at the end of an overlong line that are searched for its id. SDKs write it
/// there.
const ENDS: usize = 256;
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
    /// An overlong line, while its rest is skipped.
    skipped: Option<Skipped>,
    /// The messages of a batch.
    queued: VecDeque<RxJsonRpcMessage<RoleServer>>,
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
    /// Whether the version of the client has batches.
    has_batches: bool,
    batches: OpenBatches<RequestId>,
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
            skipped: None,
            queued: VecDeque::new(),
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
            if let Some(skipped) = &mut self.skipped {
                skipped.add(taken);
            } else if self.line.len() + taken.len() > MAX_LINE {
                let line = std::mem::take(&mut self.line);
                let mut skipped = Skipped { id: id_at_start(&line), tail: Vec::new() };
                skipped.add(taken);
                self.skipped = Some(skipped);
            } else {
                self.line.extend_from_slice(taken);
            }
            let consumed = taken.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(match self.skipped.take() {
                    Some(Skipped { id, tail }) => Line::TooLong(id.or_else(|| id_at_end(&tail))),
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
        if line.starts_with(b"[") && self.output.lock().has_batches {
            let line = line.to_vec();
            if let Err(error) = self.batch(&line) {
                self.reject(None, batch_problem(error));
            }
            return None;
        }
        let message = match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) {
            Ok(message) => message,
            Err(error) => {
                // Not quoted: it may contain secrets.
                tracing::warn!(%error, bytes = line.len(), "not a JSON-RPC message");
                let (id, error) = problem_of(line);
                self.reject(id, error);
                return None;
            }
        };
        self.admitted(message)
    }

    /// Queues the messages of a batch.
    fn batch(&mut self, line: &[u8]) -> Result<(), BatchError> {
        let (mut ids, mut replies, mut valid) =
            (Vec::new(), BatchReplies::default(), VecDeque::new());
        for message in batch::messages(line)? {
            let message = message.get().as_bytes();
            match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(message) {
                Ok(message) => {
                    if let JsonRpcMessage::Request(request) = &message {
                        let id = request.id.clone();
                        if is_handshake(&request.request) {
                            let error = ErrorData::invalid_request(NO_HANDSHAKE, None);
                            replies.add(&error_line(&error, Some(&id)), Vec::new);
                            continue;
                        }
                        if ids.contains(&id) || self.output.lock().open.contains(&id) {
                            return Err(BatchError::IdInUse);
                        }
                        ids.push(id);
                    }
                    valid.push_back(message);
                }
                Err(_) => {
                    let (id, error) = problem_of(message);
                    replies.add(&error_line(&error, id.as_ref()), Vec::new);
                }
            }
        }
        let array = self.output.lock().batches.open(ids, replies);
        self.write_array(array);
        for message in valid {
            let admitted = self.admitted(message);
            self.queued.extend(admitted);
        }
        Ok(())
    }

    /// Checks a message; `None` if it was answered here, or is to be ignored.
    fn admitted(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if !is_request && !self.has_begun {
            tracing::warn!("ignored a message before the handshake");
            return None;
        }
        match &message {
            JsonRpcMessage::Request(request) if is_bad_handshake(&request.request) => {
                self.reject(Some(request.id.clone()), invalid_params("initialize"));
                return None;
            }
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
                    let mut state = self.output.lock();
                    state.open.remove(id);
                    let step = state.batches.withdraw(id);
                    drop(state);
                    if let BatchStep::Over(array) = step {
                        self.write_array(array);
                    }
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

    /// Writes the replies to a batch, in a task of its own.
    fn write_array(&mut self, array: Option<Vec<u8>>) {
        let Some(array) = array else { return };
        let writing = self.output.write(array);
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async {
            // If the client is gone, the next read finds that out.
            let _ = writing.await;
        });
    }
}

/// Whether a request is the beginning of a connection, in any protocol version.
pub(crate) fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}

/// Whether a request is an `initialize`, with whatever parameters.
fn is_handshake(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::InitializeRequest(_)) || is_bad_handshake(request)
}

/// Whether a request is an `initialize` with invalid parameters. `rmcp` takes it for a request without
/// a handshake, and would report that.
pub(crate) fn is_bad_handshake(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CustomRequest(it) if it.method == "initialize")
}

/// An overlong line.
struct Skipped {
    /// Its id, if it is at its beginning.
    id: Option<RequestId>,
    /// Its last bytes.
    tail: Vec<u8>,
}

impl Skipped {
    fn add(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
        self.tail.drain(..self.tail.len().saturating_sub(ENDS));
    }
}

enum Line {
    Whole,
    TooLong(Option<RequestId>),
    End,
}

fn batch_problem(error: BatchError) -> ErrorData {
    match error {
        BatchError::NotJson => ErrorData::parse_error(error.to_string(), None),
        _ => ErrorData::invalid_request(error.to_string(), None),
    }
}

/// Returns the id of a line that is not a message, if it has one, and what is wrong.
fn problem_of(line: &[u8]) -> (Option<RequestId>, ErrorData) {
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(_)) => (None, batch_problem(BatchError::Unsupported)),
        Ok(message) => {
            // One of another type cannot be repeated.
            let id = message.get("id").and_then(|id| RequestId::deserialize(id).ok());
            (id, ErrorData::invalid_request("not a valid MCP request", None))
        }
        Err(error) => {
            let words = format!("not JSON: column {}", error.column());
            (None, ErrorData::parse_error(words, None))
        }
    }
}

/// Returns the id of a request whose beginning this is, if only plain members stand before it.
fn id_at_start(line: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(line.get(..ENDS).unwrap_or(line));
    let (before, value) = head.split_once("\"id\":")?;
    // In a string, the quotes would be escaped; in `params`, it is another id.
    if before.matches(['{', '[']).count() != 1 {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<RequestId>();
    let id = values.next()?.ok()?;
    let rest = value.get(values.byte_offset()..)?.trim_start();
    // Otherwise, it may be longer.
    rest.starts_with([',', '}']).then_some(id)
}

/// Returns the id of a request whose end this is, if `id` is its last member.
fn id_at_end(tail: &[u8]) -> Option<RequestId> {
    let tail = String::from_utf8_lossy(tail);
    let (_, value) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    serde_json::from_str(value.trim()).ok()
}

impl<W> Output<W> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line when its turn comes. Not cancel-safe: one that is half written breaks the stream.
    fn write(
        self: &Arc<Self>,
        mut line: Vec<u8>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static + use<W>
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        line.push(b'\n');
        let unread = Unread::new(self, line.len());
        async move {
            let mut writer = unread.output.writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&line).await?;
            writer.flush().await
        }
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

impl State {
    /// Returns the line to write for a message; `None` if it waits for other replies to its batch.
    fn line_for(
        &mut self,
        message: &TxJsonRpcMessage<RoleServer>,
        line: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let id = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.has_batches = result.protocol_version.as_str() == batch::VERSION;
                }
                &response.id
            }
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => id,
            _ => return Some(line),
        };
        self.open.remove(id);
        let too_large = || error_line(&ErrorData::internal_error(TOO_LARGE, None), Some(id));
        match self.batches.reply(id, &line, too_large) {
            BatchStep::NotInBatch => Some(line),
            BatchStep::Waits => None,
            BatchStep::Over(array) => array,
        }
    }
}

/// An error response.
fn error_line(error: &ErrorData, id: Option<&RequestId>) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
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
        let line = match &message {
            // JSON-RPC requires the member `id`, and `rmcp` omits it.
            JsonRpcMessage::Error(error) => Ok(error_line(&error.error, error.id.as_ref())),
            message => serde_json::to_vec(message),
        };
        // `None` if it is a part of the replies to a batch that are not complete.
        let line = line.map(|line| self.output.lock().line_for(&message, line));
        let writing = line.map(|line| line.map(|line| self.output.write(line)));
        async move {
            match writing? {
                Some(writing) => writing.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(message) = self.queued.pop_front() {
                return Some(message);
            }
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
        // A client that closes its end still gets the answers to what was rejected, if it reads.
        let answered = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(FINISH, answered).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_overlong_line_is_found_at_its_beginning_and_at_its_end() {
        let number = Some(RequestId::Number(901));
        let text = Some(RequestId::String("a,b".into()));
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"#, &number),
            (r#"{"id": 901, "method": "x"#, &number),
            (r#"{"jsonrpc":"2.0","id":"a,b","method":"x"#, &text),
            (r#"{"jsonrpc":"2.0","params":{"id":7,"x":"#, &None),
            (r#"{"jsonrpc":"2.0","id":90"#, &None),
            (r#"[{"id":901,"method":"x"#, &None),
        ] {
            assert_eq!(id_at_start(line.as_bytes()), *id, "{line}");
        }
        assert_eq!(id_at_end(br#"xx"}},"jsonrpc":"2.0","id":901}"#), number);
        // The tail may begin within a character.
        assert_eq!(id_at_end(b"\x82\xac\"},\"id\":901}"), number);
    }

    #[test]
    fn what_is_not_a_message_is_described() {
        for (line, id, code) in [
            ("hello", None, -32700),
            ("[{}]", None, -32600),
            (r#"{"id":1.5,"method":"ping"}"#, None, -32600),
            (r#"{"id":7,"method":8}"#, Some(RequestId::Number(7)), -32600),
        ] {
            let (found, error) = problem_of(line.as_bytes());
            assert_eq!((found, error.code.0), (id, code), "{line}");
        }
        assert_eq!(problem_of(b"\xff\xfe").1.code.0, -32700);
    }
}
