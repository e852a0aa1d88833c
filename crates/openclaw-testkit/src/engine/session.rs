//! The state of one client: the handshake, calls in progress, pending requests to the client.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Where messages to the client go.
pub(crate) trait Outbox: Send + Sync {
    /// Sends one message, without an end of line.
    fn send(&self, message: Vec<u8>);
    /// Whether the client has disconnected.
    fn is_closed(&self) -> bool {
        false
    }
    /// Writes out buffered messages; returns `false` if they may not be written yet.
    fn flush(&self) -> bool;
}

/// Locks a mutex, even if it is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receiver of change notifications.
pub(crate) struct Listener {
    pub(crate) out: Arc<dyn Outbox>,
    /// The id of the `subscriptions/listen` request, as JSON.
    pub(crate) subscription: Option<String>,
}

/// One client.
#[derive(Default)]
pub(crate) struct Session {
    initialized: AtomicBool,
    listeners: Mutex<Vec<Listener>>,
    /// The URIs of subscribed resources.
    subscribed: Mutex<BTreeSet<String>>,
    questions: Mutex<HashMap<String, mpsc::Sender<Vec<u8>>>>,
    running: Mutex<HashMap<String, Arc<Cancel>>>,
}

impl Session {
    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    pub(crate) fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Relaxed);
    }

    pub(crate) fn listen(&self, listener: Listener) {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| !listener.out.is_closed());
        listeners.push(listener);
    }

    /// Sends a message to every listener; `None` skips it.
    pub(crate) fn tell(&self, message: impl Fn(&Listener) -> Option<Vec<u8>>) {
        for listener in lock(&self.listeners).iter() {
            if let Some(message) = message(listener) {
                listener.out.send(message);
            }
        }
    }

    /// Subscribes to a resource.
    pub(crate) fn subscribe(&self, uri: &str) {
        lock(&self.subscribed).insert(uri.to_owned());
    }

    /// Returns the URIs of subscribed resources.
    pub(crate) fn subscribed(&self) -> Vec<String> {
        lock(&self.subscribed).iter().cloned().collect()
    }

    /// Begins a call that can be cancelled; `id` is JSON.
    pub(crate) fn begin(&self, id: &str) -> Arc<Cancel> {
        let cancel = Arc::new(Cancel::default());
        lock(&self.running).insert(id.to_owned(), Arc::clone(&cancel));
        cancel
    }

    pub(crate) fn end(&self, id: &str) {
        lock(&self.running).remove(id);
    }

    pub(crate) fn cancel(&self, id: &str) {
        if let Some(cancel) = lock(&self.running).get(id) {
            cancel.cancel();
        }
    }

    /// Sends the request with this id by calling `send`, and waits for its response.
    pub(crate) fn ask(&self, id: &str, send: impl FnOnce()) -> Option<Vec<u8>> {
        let (sender, receiver) = mpsc::channel();
        // Registered before sending: the response may arrive before `send` returns.
        lock(&self.questions).insert(id.to_owned(), sender);
        send();
        let reply = receiver.recv_timeout(Duration::from_secs(60)).ok();
        lock(&self.questions).remove(id);
        reply
    }

    /// Handles a response of the client.
    pub(crate) fn replied(&self, id: &str, line: &[u8]) {
        if let Some(sender) = lock(&self.questions).get(id) {
            let _ = sender.send(line.to_vec());
        }
    }
}

/// Whether a call was cancelled.
#[derive(Default)]
pub(crate) struct Cancel {
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    fn cancel(&self) {
        *lock(&self.cancelled) = true;
        self.changed.notify_all();
    }

    /// Waits until `then`; returns `true` as soon as the call is cancelled.
    pub(crate) fn wait_until(&self, then: Instant) -> bool {
        let mut cancelled = lock(&self.cancelled);
        loop {
            let left = then.saturating_duration_since(Instant::now());
            if *cancelled || left.is_zero() {
                return *cancelled;
            }
            cancelled = self
                .changed
                .wait_timeout(cancelled, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
