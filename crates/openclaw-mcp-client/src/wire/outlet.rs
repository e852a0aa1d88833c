//! The writing end of a process's input, for Unix and Windows pipes.

use std::io;

use tokio::process::ChildStdin;

/// A pipe that any task can write to without blocking.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Outlet(tokio::net::unix::pipe::Sender);

#[cfg(unix)]
impl Outlet {
    pub(super) fn new(stdin: ChildStdin) -> io::Result<Self> {
        tokio::net::unix::pipe::Sender::from_owned_fd(stdin.into_owned_fd()?).map(Self)
    }

    /// Writes what fits, or fails with `WouldBlock`.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    /// Waits until something fits, and writes that. Safe to cancel: nothing was written then.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.0.writable().await?;
                }
                written => return written,
            }
        }
    }
}

/// Without non-blocking pipes, everything is written by the writer task.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct Outlet(tokio::sync::Mutex<ChildStdin>);

#[cfg(not(unix))]
impl Outlet {
    pub(super) fn new(stdin: ChildStdin) -> io::Result<Self> {
        Ok(Self(tokio::sync::Mutex::new(stdin)))
    }

    pub(super) fn try_write(&self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        use tokio::io::AsyncWriteExt as _;
        self.0.lock().await.write(bytes).await
    }
}
