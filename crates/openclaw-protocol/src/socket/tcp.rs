//! Adapts TCP for tungstenite, with or without TLS.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A TCP stream with the non-blocking `Read` and `Write` that tungstenite expects.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(super) stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Total bytes read.
    pub(super) read: u64,
    /// Total bytes written.
    pub(super) written: u64,
}

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, tls: None, read: 0, written: 0 }
    }

    /// Performs the TLS handshake of a client.
    ///
    /// # Errors
    /// If the connection breaks, or with the [`rustls::Error`] inside.
    pub(crate) async fn secured(
        stream: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Self> {
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut this = Self::new(stream);
        while tls.is_handshaking() || tls.wants_write() {
            match tls.complete_io(&mut this.raw()) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let interest = match tls.wants_write() {
                        true => Interest::READABLE | Interest::WRITABLE,
                        false => Interest::READABLE,
                    };
                    this.stream.ready(interest).await?;
                }
                Err(error) => return Err(error),
            }
        }
        this.tls = Some(Box::new(tls));
        Ok(this)
    }

    /// Waits until a read may make progress. TLS may have to write first.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_writing = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        if is_writing && let Poll::Ready(ready) = self.stream.poll_write_ready(cx) {
            return Poll::Ready(ready);
        }
        self.stream.poll_read_ready(cx)
    }

    fn raw(&mut self) -> Raw<'_> {
        Raw { stream: &self.stream, read: &mut self.read, written: &mut self.written }
    }

    fn parts(&mut self) -> (Option<&mut ClientConnection>, Raw<'_>) {
        let Self { stream, tls, read, written } = self;
        (tls.as_deref_mut(), Raw { stream, read, written })
    }
}

impl io::Read for Tcp {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.parts() {
            (Some(tls), mut raw) => rustls::Stream::new(tls, &mut raw).read(buffer),
            (None, mut raw) => raw.read(buffer),
        }
    }
}

impl io::Write for Tcp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.parts() {
            (Some(tls), mut raw) => rustls::Stream::new(tls, &mut raw).write(bytes),
            (None, mut raw) => raw.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.parts() {
            (Some(tls), mut raw) => rustls::Stream::new(tls, &mut raw).flush(),
            (None, _) => Ok(()),
        }
    }
}

/// The bytes on the network, which are counted.
struct Raw<'a> {
    stream: &'a TcpStream,
    read: &'a mut u64,
    written: &'a mut u64,
}

impl io::Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.try_read(buffer)?;
        *self.read += read as u64;
        Ok(read)
    }
}

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.try_write(bytes)?;
        *self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
