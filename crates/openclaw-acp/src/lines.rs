//! Lines of JSON over stdin and stdout.
//!
//! The ACP crate answers a line that is not JSON with an error that quotes the line. Such lines are
//! replaced here, because they may contain secrets; overlong ones are skipped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::sink::{self, Sink};
use futures_util::stream::{self, Stream};
use serde::de::IgnoredAny;
use tokio::io::BufReader;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _};

/// Maximum length of a line. A message with the largest attachments is far smaller.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// Stands for a line that is not JSON.
const NOT_JSON: &str = "(not JSON)";
/// Stands for a line that is too long.
const TOO_LONG: &str = "(longer than 128 MiB)";

/// Returns the lines of a client, without blank ones. Ends at the end of the input.
pub(crate) fn incoming(
    input: impl AsyncRead + Unpin + Send + 'static,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let input = BufReader::with_capacity(64 * 1024, input);
    stream::try_unfold(input, |mut input| async move {
        loop {
            let Some(line) = read_line(&mut input).await? else { return Ok(None) };
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let text = match str::from_utf8(line) {
                Ok(text) if text == TOO_LONG => text,
                Ok(text) if serde_json::from_str::<IgnoredAny>(text).is_ok() => text,
                _ => NOT_JSON,
            };
            return Ok(Some((text.to_owned(), input)));
        }
    })
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

/// Returns a sink that writes lines. `is_gone` is set if the client has closed its end.
pub(crate) fn outgoing(
    output: impl AsyncWrite + Unpin + Send + 'static,
    is_gone: Arc<AtomicBool>,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold((output, is_gone), |(mut output, is_gone), mut line: String| async move {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            is_gone.store(error.kind() == io::ErrorKind::BrokenPipe, Ordering::Relaxed);
            return Err(error);
        }
        Ok((output, is_gone))
    })
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_not_json_is_not_quoted() {
        let input: &[u8] = b"{\"a\":1}\n\n secret=hunter2\n\xff\n[1]";
        let lines: Vec<String> = Box::pin(incoming(input)).try_collect().await.unwrap();
        assert_eq!(lines, ["{\"a\":1}", NOT_JSON, NOT_JSON, "[1]"]);
    }
}
