//! The state that the handlers of HTTP requests share with the owner of their connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::handshake::Peer;
use super::hub::HubSocket;
use super::listener::Ending;

/// What a connection becomes after HTTP.
#[derive(Debug)]
pub(super) enum Upgrade {
    /// A WebSocket of a caller, who is not authenticated yet.
    WebSocket,
    /// The lines of a client of the hub.
    Lines(Box<HubSocket>),
}

/// A connection, as the handlers of its requests see it. Clones share their state.
#[derive(Debug, Clone)]
pub(super) struct ConnectionInfo {
    pub(super) peer: Peer,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    upgrade: Mutex<Option<Upgrade>>,
    authenticated: Notify,
    /// Requests so far.
    requests: AtomicUsize,
    /// Requests whose response is not complete.
    open: AtomicUsize,
    /// Requests whose response has not begun.
    busy: AtomicUsize,
    idle: Notify,
    /// Bytes written so far.
    written: AtomicUsize,
    /// Whether a write waits for the client to read.
    is_blocked: AtomicBool,
}

/// What has happened on a connection so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Activity {
    requests: usize,
    /// In bytes.
    written: usize,
}

/// Marks the connection as busy until it is dropped.
pub(super) struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// A request whose response is not complete, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<Shared>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ConnectionInfo {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, shared: Arc::default() }
    }

    /// Records that the connection leaves HTTP with the next response.
    pub(super) fn upgrade_to(&self, upgrade: Upgrade) {
        *self.shared.upgrade.lock() = Some(upgrade);
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.shared.upgrade.lock().is_some()
    }

    /// Takes what the connection has become.
    pub(super) fn upgrade(&self) -> Option<Upgrade> {
        self.shared.upgrade.lock().take()
    }

    /// Records that a request was authenticated.
    pub(super) fn is_authenticated(&self) {
        self.shared.authenticated.notify_one();
    }

    /// Waits until a request was authenticated. Safe to cancel.
    pub(super) async fn authenticated(&self) {
        self.shared.authenticated.notified().await;
    }

    /// Marks the connection as busy.
    pub(super) fn busy(&self) -> Busy {
        self.shared.busy.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(&self.shared))
    }

    /// Records a request, which is open until its response is complete.
    pub(super) fn open(&self) -> OpenRequest {
        self.shared.open.fetch_add(1, Ordering::AcqRel);
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.shared))
    }

    /// Records a write; without a number of bytes, it waits for the client to read.
    pub(super) fn wrote(&self, bytes: Option<usize>) {
        // Only the task of the connection writes.
        if let Some(bytes) = bytes {
            self.shared.written.fetch_add(bytes, Ordering::Relaxed);
        }
        self.shared.is_blocked.store(bytes.is_none(), Ordering::Relaxed);
    }

    /// Whether nothing was received or sent since `seen`, which is updated, and either no request is
    /// open or the client does not read.
    pub(super) fn is_unused_since(&self, seen: &mut Activity) -> bool {
        let now = Activity {
            requests: self.shared.requests.load(Ordering::Relaxed),
            written: self.shared.written.load(Ordering::Relaxed),
        };
        let before = std::mem::replace(seen, now);
        let is_open = self.shared.open.load(Ordering::Acquire) > 0;
        before == now && (!is_open || self.shared.is_blocked.load(Ordering::Relaxed))
    }

    /// Waits until the server stops and no request is being answered, or its deadline has passed.
    pub(super) async fn idle_after(&self, ending: &Ending) {
        ending.begun().await;
        let idle = async {
            loop {
                let mut idle = std::pin::pin!(self.shared.idle.notified());
                idle.as_mut().enable();
                if self.shared.busy.load(Ordering::Acquire) == 0 {
                    return;
                }
                idle.await;
            }
        };
        tokio::select! {
            () = idle => {}
            () = ending.over() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, ConnectionInfo, Peer};

    fn connection() -> ConnectionInfo {
        let (remote, local) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1".parse().unwrap());
        ConnectionInfo::new(Peer { remote, local })
    }

    #[test]
    fn a_connection_is_unused_if_its_client_does_not_read() {
        let (connection, mut seen) = (connection(), Activity::default());
        let _streaming = connection.open();
        connection.wrote(Some(7));
        connection.wrote(None);
        assert!(!connection.is_unused_since(&mut seen), "something was read");
        assert!(connection.is_unused_since(&mut seen));
        connection.wrote(Some(1));
        assert!(!connection.is_unused_since(&mut seen));
        assert!(!connection.is_unused_since(&mut seen), "nothing waits");
    }

    #[test]
    fn a_connection_is_unused_without_a_new_request_and_without_an_open_one() {
        let (connection, mut seen) = (connection(), Activity::default());
        let request = connection.open();
        assert!(!connection.is_unused_since(&mut seen), "it is new");
        assert!(!connection.is_unused_since(&mut seen), "its response is being streamed");
        drop(request);
        assert!(connection.is_unused_since(&mut seen));
        drop(connection.open());
        assert!(!connection.is_unused_since(&mut seen), "there was another one");
        assert!(connection.is_unused_since(&mut seen));
    }
}
