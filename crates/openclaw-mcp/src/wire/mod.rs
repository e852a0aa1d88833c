//! The bytes of a connection are ours, the protocol is `rmcp`'s.
//!
//! One reader and one writer own a connection's pipes; over HTTP, whoever has something to say does so
//! by itself. The reader looks at `id` and `method` of each
//! line and no further. An answer to a *fast-lane* call goes straight to its waiter, as raw JSON;
//! everything else is parsed and handed to `rmcp` through its `Transport`. So a tool call costs no
//! actor, no typed parsing and no second queue, while lifecycle, lists, notifications and requests of
//! the server stay where they are well kept.

mod call_error;
mod calls;
mod deliver;
mod ending;
mod fast_lane;
mod frame;
mod greeting;
pub(crate) mod http;
pub mod json;
mod last_heard;
mod outlet;
mod peek;
mod pending_requests;
mod pipe;
mod progress;
mod queue;
mod reader;
mod skipped;
mod slow_lane;

pub use call_error::{CallError, ReachProblem, Unfit, Unreachable};
pub(crate) use fast_lane::WeakLane;
pub use fast_lane::{FastLane, Limits, ToolCall};
pub(crate) use greeting::Greeting;
pub use progress::{Progress, Watcher};
pub use slow_lane::SlowLane;

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use openclaw_secrets::Redactor;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use outlet::Outlet;
use queue::Queue;
use skipped::Skipped;

/// How many messages may wait for `rmcp` before the server is no longer read.
const SLOW_LANE_BOUND: usize = 256;
/// A longer message is not read.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;
/// How long a server that has closed a pipe may take to end: then how it ended is what to say.
const ENDS: Duration = Duration::from_secs(1);

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The server closed its output.
    #[error("the server closed the connection")]
    ByServer,
    /// The server's process has ended.
    #[error("the server {}", crate::process::exit_words(*.0))]
    Ended(ExitStatus),
    /// We closed it.
    #[error("the connection was closed")]
    ByUs,
    /// The server takes nothing in, and more waits for it than is kept.
    #[error("the server does not read its input")]
    Unread,
    /// The server sent a line without end.
    #[error("the server sent a line longer than {} MiB", MAX_MESSAGE / 1024 / 1024)]
    LineTooLong,
    /// The pipe broke.
    #[error("connection lost: {0}")]
    Broken(std::io::ErrorKind),
    /// A remote server is out of reach, or does not know us any more.
    #[error("connection lost: {0}")]
    Lost(String),
}

/// Opens a connection over the pipes of a process: the lane for calls, and the one for `rmcp`. The
/// server's name is for the log, from which its secrets are kept.
///
/// # Errors
/// If the pipe cannot be used without blocking.
pub fn open(
    server: &str,
    redactor: &Redactor,
    stdin: ChildStdin,
    stdout: ChildStdout,
) -> std::io::Result<(FastLane, SlowLane)> {
    let (ends, ended) = oneshot::channel();
    let skipped = Skipped::from(server, redactor);
    let queue = Arc::new(Queue::new(Outlet::new(stdin)?, skipped, ends));
    let (to_rmcp, from_server) = mpsc::channel(SLOW_LANE_BOUND);
    let writer = tokio::spawn(Arc::clone(&queue).write());
    let reader = tokio::spawn(reader::read(stdout, Arc::clone(&queue), to_rmcp, ended));
    let time_keeper = tokio::spawn(Arc::clone(&queue).keep_time());
    let fast = FastLane::over_pipe(Arc::clone(&queue));
    Ok((fast, SlowLane::new(queue, from_server, [writer, reader, time_keeper])))
}
