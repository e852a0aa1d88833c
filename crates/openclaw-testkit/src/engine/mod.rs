//! The server behind both transports: a message goes in, messages come out.
//!
//! It is blocking: anything that takes time runs on its own thread, so that all other messages are
//! answered immediately, without a task switch.

mod answer;
mod call;
mod catalogue;
mod defaults;
mod handshake;
mod message;
mod session;
mod tasks;
mod tools;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

pub(crate) use message::{Incoming, error, notification, params};
pub(crate) use session::{Listener, Outbox, Session, lock};

use crate::script::{Discover, RpcError, Script};
use catalogue::Catalogue;
use message::{Request, response};

/// A PNG of one pixel.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// The server.
pub(crate) struct Engine {
    pub(crate) script: Script,
    pub(crate) catalogue: Catalogue,
    pub(crate) grandchild: Option<u32>,
    /// The script changes nothing about calls.
    plain: bool,
    modern: bool,
    calls: AtomicU64,
    questions: AtomicU64,
    changed: AtomicBool,
    pinging: AtomicBool,
    sessions: Mutex<Vec<Weak<Session>>>,
    tasks: Mutex<Vec<tasks::TestTask>>,
    record: Option<Mutex<File>>,
}

impl Engine {
    /// Creates the engine, and opens the recording if the script sets one.
    pub(crate) fn new(script: Script, grandchild: Option<u32>) -> std::io::Result<Arc<Self>> {
        let record = match &script.record {
            Some(path) => Some(Mutex::new(File::options().create(true).append(true).open(path)?)),
            None => None,
        };
        Ok(Arc::new(Self {
            catalogue: Catalogue::new(&script),
            grandchild,
            plain: script.calls.is_plain()
                && !script.process.stderr_per_call
                && !script.catalogue.subscriptions,
            modern: script.protocol.is_modern(),
            calls: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            pinging: AtomicBool::new(false),
            sessions: Mutex::default(),
            tasks: Mutex::default(),
            record,
            script,
        }))
    }

    /// Registers a new client.
    pub(crate) fn new_session(&self) -> Arc<Session> {
        let session = Arc::new(Session::default());
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        session
    }

    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether the tool list has changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Appends a line to the recording, before the response is sent: a client that has received the
    /// response finds the line there.
    pub(crate) fn record(&self, line: &[u8]) {
        if let Some(file) = &self.record {
            let mut whole = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
            whole.push(b'\n');
            let _ = lock(file).write_all(&whole);
        }
    }

    /// Handles a message, or a batch.
    pub(crate) fn handle(
        self: &Arc<Self>,
        session: &Arc<Session>,
        line: &[u8],
        out: &Arc<dyn Outbox>,
    ) {
        if line.trim_ascii_start().starts_with(b"[") {
            match serde_json::from_slice::<Vec<&RawValue>>(line) {
                Ok(batch) => {
                    for message in batch {
                        self.take(session, message.get().as_bytes(), out, false);
                    }
                }
                Err(_) => out.send(error("null", &RpcError::new(-32700, "Parse error"))),
            }
        } else if !line.trim_ascii().is_empty() {
            self.take(session, line, out, false);
        }
    }

    /// Handles one message. `waited`: the delay of the script is over.
    fn take(
        self: &Arc<Self>,
        session: &Arc<Session>,
        line: &[u8],
        out: &Arc<dyn Outbox>,
        waited: bool,
    ) {
        let Ok(message) = serde_json::from_slice::<Incoming<'_>>(line) else {
            return out.send(error("null", &RpcError::new(-32700, "Parse error")));
        };
        match (&message.method, message.id) {
            (Some(method), Some(id)) if !self.is_silent() => {
                let params = match params(message.params) {
                    Ok(params) => params,
                    Err(problem) => return out.send(error(id.get(), &problem)),
                };
                let modern = self.modern && params.meta.version.is_some();
                let request = Request { id, params, modern };
                let delay = if waited { 0 } else { self.delay_ms(&method.0) };
                if delay > 0 {
                    self.later(delay, session, line, out);
                } else if method.0 == "tools/call" {
                    self.call(session, &request, line, out);
                } else if self.script.calls.ask_always
                    && matches!(&*method.0, "prompts/get" | "resources/read")
                {
                    self.ask_first(session, line, out);
                } else {
                    self.request(session, &method.0, &request, out);
                }
            }
            (Some(method), None) if method.0 == "notifications/cancelled" => {
                if let Ok(params) = params(message.params)
                    && let Some(id) = params.request_id
                {
                    session.cancel(id.get());
                }
            }
            (None, Some(id)) => session.replied(id.get(), line),
            _ => {}
        }
    }

    /// Asks the client before a request is answered, on a thread of its own.
    fn ask_first(self: &Arc<Self>, session: &Arc<Session>, line: &[u8], out: &Arc<dyn Outbox>) {
        let (engine, session, out) = (Arc::clone(self), Arc::clone(session), Arc::clone(out));
        let line = line.to_vec();
        thread::spawn(move || {
            // Parsed before: this cannot fail.
            let Ok(message) = serde_json::from_slice::<Incoming<'_>>(&line) else { return };
            let (Some(method), Some(id)) = (message.method, message.id) else { return };
            let Ok(params) = params(message.params) else { return };
            let request = Request { id, params, modern: false };
            if let Some(question) = engine.question(&request) {
                engine.ask(&session, &request, &question, &out);
            }
            engine.request(&session, &method.0, &request, &out);
        });
    }

    fn delay_ms(&self, method: &str) -> u64 {
        match method {
            "initialize" => self.script.protocol.initialize_delay_ms,
            "tools/list" => self.script.catalogue.list_delay_ms,
            "server/discover" => match self.script.protocol.discover {
                Some(Discover::DelayMs(ms)) => ms,
                _ => 0,
            },
            _ => 0,
        }
    }

    fn later(
        self: &Arc<Self>,
        ms: u64,
        session: &Arc<Session>,
        line: &[u8],
        out: &Arc<dyn Outbox>,
    ) {
        let (engine, session, out) = (Arc::clone(self), Arc::clone(session), Arc::clone(out));
        let line = line.to_vec();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(ms));
            engine.take(&session, &line, &out, true);
        });
    }

    fn is_silent(&self) -> bool {
        !self.plain && self.script.calls.silent_after.is_some_and(|after| self.calls() >= after)
    }

    /// Handles requests other than calls.
    fn request(
        self: &Arc<Self>,
        session: &Arc<Session>,
        method: &str,
        request: &Request<'_>,
        out: &Arc<dyn Outbox>,
    ) {
        let id = request.id.get();
        let answer = match method {
            "initialize" => self.initialize(session, request),
            "server/discover" => self.discover(request),
            _ => match self.refusal(session, request) {
                Some(refusal) => Err(refusal),
                None => self.answer(session, method, request, out),
            },
        };
        match answer {
            Ok(Some(members)) => out.send(response(id, &members, request.modern)),
            Ok(None) => {}
            Err(problem) => out.send(error(id, &problem)),
        }
        if matches!(method, "initialize" | "server/discover") {
            self.ping_for_ever();
        }
    }

    /// Sends a message to every listener of every client.
    fn broadcast(&self, message: impl Fn(&Session, &Listener) -> Option<Vec<u8>>) {
        let sessions: Vec<_> = lock(&self.sessions).iter().filter_map(Weak::upgrade).collect();
        for session in sessions {
            session.tell(|listener| message(&session, listener));
        }
    }

    /// Notifies all listeners that the resources they subscribed to have changed.
    fn update_resources(&self) {
        let sessions: Vec<_> = lock(&self.sessions).iter().filter_map(Weak::upgrade).collect();
        for session in sessions {
            for uri in session.subscribed() {
                let params = serde_json::json!({ "uri": uri });
                let message = notification("notifications/resources/updated", &params);
                session.tell(|_| Some(message.clone()));
            }
        }
    }

    fn ping_for_ever(self: &Arc<Self>) {
        let Some(ms) = self.script.calls.ping_every_ms else { return };
        if self.pinging.swap(true, Ordering::Relaxed) {
            return;
        }
        let engine = Arc::clone(self);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(ms));
                let number = engine.questions.fetch_add(1, Ordering::Relaxed);
                engine.broadcast(|_, _| {
                    Some(
                        format!(r#"{{"jsonrpc":"2.0","id":"ping-{number}","method":"ping"}}"#)
                            .into(),
                    )
                });
            }
        });
    }
}
