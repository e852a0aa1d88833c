//! Lines of JSON over stdin and stdout.
//!
//! The ACP crate answers a line that is not JSON with an error that quotes the line. Such lines are
//! replaced here, because they may contain secrets; overlong ones are skipped. What waits to be
//! written is counted in the [`WriteBacklog`].

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use futures_util::sink::{Sink, SinkExt as _};
use futures_util::stream::{self, Stream};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use tokio::io::BufReader;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSender};

use crate::outbox::{FrameKind, WriteBacklog};

/// Maximum length of a line. A message with the largest attachments is far smaller.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// Stands for a line that is not JSON.
const NOT_JSON: &str = "(not JSON)";
/// Stands for a line that is too long.
const TOO_LONG: &str = "(longer than 128 MiB)";
/// Lines that may wait for the writer, which writes them at once.
const QUEUED: usize = 64;

/// The members of a frame that tell its kind.
#[derive(Deserialize)]
struct Head<'f> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    method: Option<Cow<'f, str>>,
    #[serde(default, deserialize_with = "is_present")]
    id: bool,
    #[serde(default, deserialize_with = "is_present")]
    result: bool,
    #[serde(default, deserialize_with = "is_present")]
    error: bool,
}

/// `null` is present, too.
fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

impl<'f> Head<'f> {
    fn read(line: &'f str) -> Option<Self> {
        // A list would be read as the members in order.
        line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
    }
}

/// Returns the lines of a client, without blank ones. Ends at the end of the input, and cancels
/// `ended` then.
pub(crate) fn incoming(
    input: impl AsyncRead + Unpin + Send + 'static,
    outbox: Arc<WriteBacklog>,
    ended: CancellationToken,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let input = BufReader::with_capacity(64 * 1024, input);
    stream::try_unfold((input, outbox, ended), |(mut input, outbox, ended)| async move {
        loop {
            outbox.may_owe().await;
            let Some(line) = read_line(&mut input).await? else {
                ended.cancel();
                return Ok(None);
            };
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let text = match str::from_utf8(line) {
                Ok(text) if text == TOO_LONG || is_json(text) => text,
                _ => NOT_JSON,
            };
            if is_answered(text) {
                outbox.owes();
            }
            return Ok(Some((text.to_owned(), (input, outbox, ended))));
        }
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether the crate sends a response to a line: to requests, and to what is not a message.
fn is_answered(line: &str) -> bool {
    let Some(head) = Head::read(line) else { return true };
    let is_response = head.result || head.error;
    match head.method {
        None => !is_response,
        Some(_) => head.id || is_response || head.jsonrpc.is_none_or(|it| it != "2.0"),
    }
}

/// Reads a line; `None` at the end of the input. The rest of an overlong line is skipped.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            let has_ended = line.is_empty() && !is_too_long;
            return Ok((!has_ended).then(|| finished(line, is_too_long)));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > MAX_LINE {
            is_too_long = true;
            line = Vec::new();
        }
        if !is_too_long {
            line.extend_from_slice(&available[..taken]);
        }
        input.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Some(finished(line, is_too_long)));
        }
    }
}

fn finished(line: Vec<u8>, is_too_long: bool) -> Vec<u8> {
    if is_too_long { TOO_LONG.into() } else { line }
}

/// Returns a sink for lines, and their receiver for [`write`].
pub(crate) fn outgoing()
-> (impl Sink<String, Error = io::Error> + Send + 'static, mpsc::Receiver<String>) {
    let (sender, lines) = mpsc::channel(QUEUED);
    let sink = PollSender::new(sender).sink_map_err(|_| io::ErrorKind::BrokenPipe.into());
    (sink, lines)
}

/// Writes the lines until their sink is dropped, those that wait together.
///
/// # Errors
/// If writing fails.
pub(crate) async fn write(
    mut lines: mpsc::Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
    outbox: &WriteBacklog,
) -> io::Result<()> {
    let mut ready = Vec::new();
    let mut frames = Vec::new();
    let mut bytes = Vec::new();
    while lines.recv_many(&mut ready, QUEUED).await > 0 {
        for line in ready.drain(..) {
            frames.push(frame_of(&line));
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        output.write_all(&bytes).await?;
        output.flush().await?;
        frames.drain(..).for_each(|frame| outbox.wrote(frame));
        bytes.clear();
        bytes.shrink_to(MAX_KEPT);
    }
    Ok(())
}

/// The buffer that is kept between writes.
const MAX_KEPT: usize = 256 * 1024;

fn frame_of(line: &str) -> FrameKind {
    match Head::read(line).and_then(|head| head.method) {
        Some(method) if method == "session/update" => FrameKind::Update,
        Some(_) => FrameKind::Other,
        None => FrameKind::Response,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_not_json_is_not_quoted() {
        let input: &[u8] = b"{\"a\":1}\n\n secret=hunter2\n\xff\n[1]";
        let lines = incoming(input, Arc::default(), CancellationToken::new());
        let lines: Vec<String> = Box::pin(lines).try_collect().await.unwrap();
        assert_eq!(lines, ["{\"a\":1}", NOT_JSON, NOT_JSON, "[1]"]);
    }

    #[test]
    fn requests_and_garbage_are_answered_and_notifications_and_responses_are_not() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"method":"a"}"#,
            r#"{"x":1}"#,
            NOT_JSON,
            TOO_LONG,
            "[1]",
            "7",
        ] {
            assert!(is_answered(line), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","method":"a","params":{"id":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        ] {
            assert!(!is_answered(line), "{line}");
        }
    }

    #[tokio::test]
    async fn lines_are_written_in_order_and_counted() {
        let outbox = WriteBacklog::default();
        outbox.hands_over(7);
        let (sink, lines) = outgoing();
        let mut sink = Box::pin(sink);
        let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"method":"x"}}"#;
        for line in [update, r#"{"id":1,"result":{}}"#] {
            sink.send(line.to_owned()).await.unwrap();
        }
        drop(sink);
        let mut output = Vec::new();
        write(lines, &mut output, &outbox).await.unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            format!("{update}\n{{\"id\":1,\"result\":{{}}}}\n")
        );
        assert_eq!(frame_of(update), FrameKind::Update);
    }
}
