//! The lane for calls: raw arguments in, a raw result out.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::Closed;
use super::calls::CallId;
use super::queue::{Queue, State};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error, here as raw JSON.
    #[error("the server answered with an error")]
    Rpc(Box<RawValue>),
    /// It took too long; the server has been told.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The server asked for something before it would answer, and did not get it.
    #[error("the server asked for {0}")]
    AskedFor(String),
    /// Far too many calls wait for this server.
    #[error("too many calls wait for this server")]
    Busy,
}

/// How long a call may take (T7).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Without a sign of life.
    pub timeout: Duration,
    /// In all, however much progress there is.
    pub cap: Duration,
}

/// The lane for calls. A clone leads to the same server.
#[derive(Clone)]
pub struct FastLane {
    queue: Arc<Queue>,
}

impl std::fmt::Debug for FastLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FastLane").field("in_flight", &self.in_flight()).finish()
    }
}

impl FastLane {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// How many calls wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.queue.state().calls.count()
    }

    /// Why the connection is closed, if it is.
    pub fn closed(&self) -> Option<&Closed> {
        self.queue.closed()
    }

    /// Waits until the connection is closed; says why. Safe to cancel.
    pub async fn until_closed(&self) -> Closed {
        self.queue.until_closed().await
    }

    /// Calls a tool. `meta` is what stands in `_meta` besides the progress token: members of an object,
    /// without braces.
    ///
    /// Dropping the future tells the server that nobody waits any more, as a time-out does.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &RawValue,
        meta: &str,
        limits: Limits,
    ) -> Result<Box<RawValue>, CallError> {
        self.send(limits, |state, id| write_call(state, id, tool, arguments, meta)).await
    }

    /// Sends any other request whose answer is wanted raw. `params` is one JSON value.
    ///
    /// # Errors
    /// If the server answers with one, too late or not at all.
    pub async fn request(
        &self,
        method: &str,
        params: &RawValue,
        limits: Limits,
    ) -> Result<Box<RawValue>, CallError> {
        self.send(limits, |state, id| write_request(state, id, method, params)).await
    }

    async fn send(
        &self,
        limits: Limits,
        write: impl FnOnce(&mut State, CallId),
    ) -> Result<Box<RawValue>, CallError> {
        self.queue.room().await?;
        let opened = self.queue.push(|state| {
            let (id, answer) = state.calls.open()?;
            write(state, id);
            Some((id, answer))
        });
        let (id, mut answer) = opened.ok_or(CallError::Busy)?;
        let mut call = Call { queue: &self.queue, id, is_over: false };
        // After the call was opened: had the connection closed before, nobody would end the call.
        if let Some(closed) = self.queue.closed() {
            call.is_over = true;
            self.queue.state().calls.close(id);
            return Err(closed.clone().into());
        }
        let started = Instant::now();
        let mut patience = limits.timeout;
        loop {
            match tokio::time::timeout(patience, &mut answer).await {
                Ok(answer) => {
                    call.is_over = true;
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(CallError::Rpc(error)),
                        Err(_) => Err(self.queue.closed().cloned().unwrap_or(Closed::ByUs).into()),
                    };
                }
                Err(_) => {
                    patience = call
                        .patience_left(started, limits)
                        .ok_or(CallError::TimedOut(started.elapsed()))?;
                }
            }
        }
    }
}

/// A call that waits. Unless it is over when this is dropped, the server is told to stop.
struct Call<'a> {
    queue: &'a Queue,
    id: CallId,
    is_over: bool,
}

impl Call<'_> {
    /// How much longer to wait, if the server told of progress meanwhile.
    fn patience_left(&self, started: Instant, limits: Limits) -> Option<Duration> {
        let progress = self.queue.state().calls.last_progress(self.id)?;
        let of_this_step = limits.timeout.checked_sub(progress.elapsed())?;
        let of_the_whole = limits.cap.checked_sub(started.elapsed())?;
        Some(of_this_step.min(of_the_whole)).filter(|left| !left.is_zero())
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let id = self.id;
        self.queue.push(|state| {
            if state.calls.close(id).is_some() {
                let number = id.number();
                // Writing to a vector cannot fail.
                let _ = writeln!(
                    state.out,
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}"#
                );
            }
        });
    }
}

/// One line. Writing to a vector cannot fail.
fn write_request(state: &mut State, id: CallId, method: &str, params: &RawValue) {
    let (out, number) = (&mut state.out, id.number());
    let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{number},"method":"#);
    let _ = serde_json::to_writer(&mut *out, method);
    out.extend_from_slice(br#","params":"#);
    write_on_one_line(out, params.get().as_bytes());
    out.extend_from_slice(b"}\n");
}

/// One line. Writing to a vector cannot fail.
fn write_call(state: &mut State, id: CallId, tool: &str, arguments: &RawValue, meta: &str) {
    let (out, number) = (&mut state.out, id.number());
    let _ =
        write!(out, r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"#);
    let _ = serde_json::to_writer(&mut *out, tool);
    out.extend_from_slice(br#","arguments":"#);
    write_on_one_line(out, arguments.get().as_bytes());
    let comma = if meta.is_empty() { "" } else { "," };
    let _ = write!(out, r#","_meta":{{{meta}{comma}"progressToken":{number}}}"#);
    out.extend_from_slice(b"}}\n");
}

/// JSON text has line breaks only between tokens, where a blank does as well.
fn write_on_one_line(out: &mut Vec<u8>, json: &[u8]) {
    if memchr::memchr2(b'\n', b'\r', json).is_none() {
        out.extend_from_slice(json);
        return;
    }
    let blank = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    out.extend(json.iter().map(blank));
}
