//! How far a peer is behind, readable by other tasks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The messages that wait to be sent, and since when.
#[derive(Debug)]
pub struct Backlog {
    /// Times are stored relative to this one.
    start: Instant,
    /// When the oldest of them was queued, in microseconds since `start`, plus one; 0 if none waits.
    since: AtomicU64,
    messages: AtomicUsize,
}

impl Backlog {
    pub(super) fn new() -> Self {
        let (since, messages) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { start: Instant::now(), since, messages }
    }

    pub(super) fn set(&self, oldest: Option<Instant>, messages: usize) {
        let micros = |at: Instant| at.saturating_duration_since(self.start).as_micros();
        let since = oldest.map_or(0, |at| u64::try_from(micros(at)).unwrap_or(u64::MAX - 1) + 1);
        self.since.store(since, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Returns how long the oldest message has waited; zero if none does.
    #[must_use]
    pub fn age(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.start.elapsed().saturating_sub(Duration::from_micros(since - 1)),
        }
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::super::{SendLimits, Socket};
    use super::*;

    #[tokio::test]
    async fn messages_wait_while_the_peer_does_not_read() {
        const HOUR: Duration = Duration::from_secs(3600);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let limits = SendLimits { bytes: usize::MAX, frames: 100, pause: usize::MAX, stall: HOUR };
        let mut socket = Socket::accepted(accepted.unwrap().0, Vec::new(), 1024, limits);
        let backlog = socket.backlog();
        assert_eq!((backlog.age(), backlog.messages()), (Duration::ZERO, 0));
        // More than the kernel buffers.
        for _ in 0..8 {
            socket.queue("x".repeat(4 * 1024 * 1024)).unwrap();
        }
        assert_eq!(backlog.messages(), 8);
        let mut peer = peer.unwrap();
        tokio::select! {
            flushed = socket.flush() => panic!("{flushed:?}"),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        assert!(backlog.age() >= Duration::from_millis(50), "{backlog:?}");
        assert!((1..=8).contains(&backlog.messages()), "{backlog:?}");
        let mut discarded = tokio::io::sink();
        tokio::select! {
            read = tokio::io::copy(&mut peer, &mut discarded) => panic!("{read:?}"),
            flushed = socket.flush() => flushed.unwrap(),
        }
        assert_eq!((backlog.age(), backlog.messages()), (Duration::ZERO, 0));
    }
}
