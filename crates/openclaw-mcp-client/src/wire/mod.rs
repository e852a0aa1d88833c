//! Framing and routing of messages; the protocol itself is handled by `rmcp`.
//!
//! Over stdio, one reader and one writer own the pipes; over HTTP, each request is sent by its
//! caller. The reader parses only `id` and `method` of each line. A response to a *fast-lane* call
//! goes directly to its caller, as raw JSON; every other message is parsed and passed to `rmcp`
//! through its `Transport`. A tool call thus needs no actor, no typed parsing and no second queue,
//! while `rmcp` handles lifecycle, lists, notifications and requests from the server.

mod call_error;
mod calls;
mod deliver;
mod ending;
mod fast_lane;
mod frame;
mod handshake_response;
pub(crate) mod http;
mod inbox;
pub mod json;
mod last_activity;
mod outlet;
pub mod param_headers;
mod peek;
mod pending_requests;
mod pipe;
mod progress;
mod queue;
mod reader;
pub mod redacted;
mod rmcp_pipe;
mod skipped;
mod traffic;

pub use call_error::{CallError, ReachProblem, Unreachable, UnusableResponse};
pub use calls::OnReply;
pub use fast_lane::{CallFrame, DirectLane, FastLane, TimeLimits, WireCall, WorkId};
pub(crate) use fast_lane::{Thinking, WeakLane};
pub(crate) use handshake_response::HandshakeResponse;
pub(crate) use inbox::{GIVES_AWAY, MAX_PARSED, TOO_LARGE};
pub use progress::{Progress, ProgressWatcher};
pub use rmcp_pipe::RmcpPipe;
pub use traffic::Traffic;

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use openclaw_secrets::Redactor;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use outlet::Outlet;
use queue::WriteQueue;
use skipped::SkippedLines;

/// Maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// How long to wait for a process to exit after it closed a pipe, so that its exit status can be
/// reported.
const ENDS: Duration = Duration::from_secs(1);

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The server closed its output.
    #[error("the server closed the connection")]
    ByServer,
    /// The server's process exited.
    #[error("the server {}", openclaw_process::exit_words(*.0))]
    Ended(ExitStatus),
    /// We closed it.
    #[error("the connection was closed")]
    ByUs,
    /// The server does not read its input, and the write buffer is full.
    #[error("the server does not read its input")]
    Unread,
    /// The server keeps sending requests faster than it accepts the responses.
    #[error("the server sends requests faster than it accepts the responses")]
    Flooded,
    /// The server sent a line that exceeds the message size limit.
    #[error("the server sent a line longer than {} MiB", MAX_MESSAGE / 1024 / 1024)]
    LineTooLong,
    /// The pipe broke.
    #[error("connection lost: {0}")]
    Broken(std::io::ErrorKind),
    /// A remote server is unreachable, or the session could not be renewed.
    #[error("connection lost: {0}")]
    Lost(String),
}

/// Opens a connection over the pipes of a process: the lane for calls, and the one for `rmcp`.
/// `server` is used in log events, which `redactor` sanitizes; `traffic` counts the bytes.
///
/// # Errors
/// If the pipe cannot be set to non-blocking mode.
pub fn open(
    server: &str,
    redactor: &Redactor,
    stdin: ChildStdin,
    stdout: ChildStdout,
    traffic: Traffic,
) -> std::io::Result<(FastLane, RmcpPipe)> {
    let (ends, ended) = oneshot::channel();
    let skipped = SkippedLines::from(server, redactor);
    let queue = Arc::new(WriteQueue::new(Outlet::new(stdin)?, skipped, ends, traffic));
    let (to_rmcp, from_server) = inbox::channel();
    let writer = tokio::spawn(Arc::clone(&queue).write());
    let reader = tokio::spawn(reader::read(stdout, Arc::clone(&queue), to_rmcp, ended));
    let time_keeper = tokio::spawn(Arc::clone(&queue).keep_time());
    let fast = FastLane::over_pipe(Arc::clone(&queue));
    Ok((fast, RmcpPipe::new(queue, from_server, [writer, reader, time_keeper])))
}
