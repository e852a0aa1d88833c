//! Adapts TCP for tungstenite.

use std::io;

use tokio::net::TcpStream;

/// A TCP stream with the non-blocking `Read` and `Write` that tungstenite expects.
#[derive(Debug)]
pub(super) struct Tcp {
    pub(super) stream: TcpStream,
    /// Total bytes read.
    pub(super) read: u64,
    /// Total bytes written.
    pub(super) written: u64,
}

impl Tcp {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, read: 0, written: 0 }
    }
}

impl io::Read for Tcp {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.try_read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

impl io::Write for Tcp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.try_write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
