//! Sessions: the handshake, and the renewal of a lost session for all callers (T3).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use openclaw_content::{Untrusted, clean_line};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::HttpWire;
use super::headers::{MessageSubject, Object, SESSION};
use super::post::{Outgoing, PostRefusal};
use super::route::{Protocol, Route};
use crate::wire::call_error::CallError;
use crate::wire::deliver::Wanted;
use crate::wire::json::Json;
use crate::wire::{Closed, frame};

/// Maximum length of a session id: it is sent with every request.
const MAX_SESSION_ID: usize = 8 * 1024;
/// Timeout for renewing a session.
const RENEWAL: Duration = Duration::from_secs(30);
/// Timeout for deleting a session.
const FAREWELL: Duration = Duration::from_secs(2);

const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Deserialize)]
struct Agreed {
    #[serde(rename = "protocolVersion")]
    version: String,
}

/// Returns the negotiated protocol version.
pub(crate) fn agreed_version(result: &Json) -> Option<String> {
    serde_json::from_str::<Agreed>(result.get()).ok().map(|agreed| agreed.version)
}

impl HttpWire {
    /// Switches to the protocol before 2026-07-28.
    pub(crate) fn speak_legacy(&self) {
        let route = Route::before_handshake(Protocol::Streamable);
        self.route.send_replace(Arc::new(route));
    }

    /// Switches to the protocol of 2026-07-28.
    pub(crate) fn speak_modern(&self) {
        self.route.send_replace(Arc::new(Route::modern()));
    }

    /// Performs the handshake over Streamable HTTP with the `params` of `initialize`, stores the
    /// session and the version, and returns the server's result.
    pub(crate) async fn shake_hands(
        self: &Arc<Self>,
        params: &RawValue,
    ) -> Result<Json, CallError> {
        let (result, begun) = self.introduce(params).await?;
        let version = agreed_version(&result).unwrap_or_default();
        let session = begun.keep();
        self.route.send_modify(|route| *route = Arc::new(route.after_handshake(session, &version)));
        let _ = self.introduction.set(Bytes::copy_from_slice(params.get().as_bytes()));
        let _ = self.agreed_on.set(version);
        Ok(result)
    }

    /// Stores the version of a handshake that was done in another way; there is no session to
    /// renew.
    pub(crate) fn agreed(&self, version: &str) {
        self.route.send_modify(|route| *route = Arc::new(route.after_handshake(None, version)));
    }

    /// Sends `initialize` outside of any session.
    async fn introduce(
        self: &Arc<Self>,
        params: &RawValue,
    ) -> Result<(Json, NewSession), CallError> {
        let (id, _answer) = self.calls().open().ok_or(CallError::Busy)?;
        // Only the number is needed: the response is read here.
        self.calls().close(id);
        let mut body = Vec::with_capacity(256 + params.get().len());
        frame::request(&mut body, id.number(), "initialize", params);
        let subject = MessageSubject { method: "initialize", object: Object::None };
        let message = Outgoing { subject, body: body.into() };
        let outside = Route::before_handshake(Protocol::Streamable);
        let response = match self.post(&outside, &message).await {
            Ok(response) => response,
            Err(PostRefusal::Failed(error)) => return Err(error),
            // Unreachable: the route has no session.
            Err(PostRefusal::SessionLost) => {
                return Err(CallError::Http { status: 404, body: String::new() });
            }
        };
        let session = response.headers().get(SESSION).cloned();
        if let Some(length) =
            session.as_ref().map(HeaderValue::len).filter(|it| *it > MAX_SESSION_ID)
        {
            return Err(CallError::Protocol(format!(
                "the server sent a session id of {length} bytes (at most {MAX_SESSION_ID} are allowed)"
            )));
        }
        let begun = NewSession { wire: Arc::clone(self), session };
        match self.answer(Wanted { id: id.number(), work: None }, &outside, response).await? {
            Some(Ok(result)) => Ok((result, begun)),
            Some(Err(fault)) => Err(fault.into()),
            None => Err(CallError::Protocol(
                "the server accepted the request without a response".to_owned(),
            )),
        }
    }

    /// Replaces a lost session. The first caller does it, the others wait for the result. If the
    /// first is cancelled, the next one starts again.
    pub(super) async fn renew(self: &Arc<Self>, lost: &Route) -> Result<(), CallError> {
        let _held = self.renewal.lock().await;
        if let Some(closed) = self.closed() {
            return Err(closed.clone().into());
        }
        if self.route().generation != lost.generation {
            return Ok(());
        }
        let renewed = timeout(RENEWAL, self.begin_session()).await;
        let cause = match renewed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => clean_line(Untrusted::new(&error.to_string()), 300),
            Err(_) => format!("timed out after {} s", RENEWAL.as_secs()),
        };
        // Closed for all waiting callers: none of them would succeed.
        let reason =
            Closed::Lost(format!("the session expired, and opening a new one failed: {cause}"));
        self.close(reason.clone());
        Err(reason.into())
    }

    async fn begin_session(self: &Arc<Self>) -> Result<(), CallError> {
        let params = self.introduction.get().and_then(|params| serde_json::from_slice(params).ok());
        let params: Box<RawValue> = params.ok_or_else(|| {
            CallError::Protocol("the server lost the session before it started".to_owned())
        })?;
        let (result, begun) = self.introduce(&params).await?;
        let version = agreed_version(&result).unwrap_or_default();
        if self.agreed_on.get() != Some(&version) {
            let version = clean_line(Untrusted::new(&version), 40);
            return Err(CallError::Protocol(format!("it now uses version `{version}`")));
        }
        let route = Arc::new(self.route().after_handshake(begun.session.clone(), &version));
        let subject = MessageSubject { method: "notifications/initialized", object: Object::None };
        let message = Outgoing { subject, body: Bytes::from_static(INITIALIZED) };
        match self.post(&route, &message).await {
            Ok(_) => {
                // Only now: the session must not be used before it is initialized.
                begun.keep();
                // Each session has its own stream.
                self.has_stream_settled.send_replace(false);
                self.route.send_replace(route);
                self.interrupted();
                tracing::info!("session lost by the server; opened a new one");
                Ok(())
            }
            Err(PostRefusal::Failed(error)) => Err(error),
            Err(PostRefusal::SessionLost) => {
                Err(CallError::Protocol("the server drops new sessions immediately".to_owned()))
            }
        }
    }

    /// Closes the connection: pending calls fail, tasks are aborted, and the session is deleted.
    /// When this returns, nothing is left running.
    pub(crate) async fn shut_down(&self) {
        self.close(Closed::ByUs);
        self.tasks.end().await;
        let route = self.route();
        if route.session.is_some() && self.parts_first() {
            let _ = timeout(FAREWELL, self.delete(&route)).await;
        }
    }

    /// Like [`shut_down`](Self::shut_down), but without waiting: the session is deleted in the
    /// background, unless it already was.
    pub(super) fn abandon(self: &Arc<Self>) {
        self.close(Closed::ByUs);
        self.tasks.abort();
        let route = self.route();
        if route.session.is_some() && self.parts_first() {
            self.part_from(route);
        }
    }

    /// Returns whether the caller is the first to delete the session.
    fn parts_first(&self) -> bool {
        !self.is_parted.swap(true, Ordering::Relaxed)
    }

    /// Deletes a session in the background. The task outlives the connection and every possible
    /// owner, but not longer than the timeout.
    fn part_from(self: &Arc<Self>, route: Arc<Route>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let wire = Arc::clone(self);
        runtime.spawn(async move {
            let _ = timeout(FAREWELL, wire.delete(&route)).await;
        });
    }
}

/// A session that the server has opened. Dropping it without [`keep`](Self::keep) deletes it: its
/// creator gave up before the handshake was complete.
struct NewSession {
    wire: Arc<HttpWire>,
    session: Option<HeaderValue>,
}

impl NewSession {
    fn keep(mut self) -> Option<HeaderValue> {
        self.session.take()
    }
}

impl Drop for NewSession {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let mut route = Route::before_handshake(Protocol::Streamable);
            route.session = Some(session);
            self.wire.part_from(Arc::new(route));
        }
    }
}
