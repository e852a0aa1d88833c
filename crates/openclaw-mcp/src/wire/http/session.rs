//! Sessions: the handshake at the wire, and the one that renews a lost session for all callers (T3).

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
use super::headers::{Object, SESSION, Subject};
use super::post::{Outgoing, Refusal};
use super::route::{Protocol, Route};
use crate::wire::call_error::CallError;
use crate::wire::deliver::hand_over;
use crate::wire::json::Json;
use crate::wire::{Closed, frame};

/// How long renewing a session may take.
const RENEWAL: Duration = Duration::from_secs(30);
/// How long a server may take to forget a session that is over.
const FAREWELL: Duration = Duration::from_secs(2);

const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Deserialize)]
struct Agreed {
    #[serde(rename = "protocolVersion")]
    version: String,
}

/// The version that a server agreed to.
pub(crate) fn agreed_version(result: &Json) -> Option<String> {
    serde_json::from_str::<Agreed>(result.get()).ok().map(|agreed| agreed.version)
}

impl HttpWire {
    /// From now on the server is spoken to as before 2026-07-28.
    pub(crate) fn speak_legacy(&self) {
        let route = Route::before_handshake(Protocol::Streamable);
        self.route.send_replace(Arc::new(route));
    }

    /// From now on the server is spoken to as since 2026-07-28.
    pub(crate) fn speak_modern(&self) {
        self.route.send_replace(Arc::new(Route::modern()));
    }

    /// Shakes hands over Streamable HTTP: `params` are those of `initialize`. The session and the version
    /// that come of it count from now on. Gives the server's result.
    pub(crate) async fn shake_hands(
        self: &Arc<Self>,
        params: &RawValue,
    ) -> Result<Json, CallError> {
        let (result, begun) = self.introduce(params).await?;
        let version = agreed_version(&result).unwrap_or_default();
        let session = begun.keep();
        self.route.send_modify(|route| *route = Arc::new(route.after_handshake(session, &version)));
        let _ = self.introduction.set(Bytes::copy_from_slice(params.get().as_bytes()));
        Ok(result)
    }

    /// What follows a handshake that did not take the way above: there is no session to be renewed.
    pub(crate) fn agreed(&self, version: &str) {
        self.route.send_modify(|route| *route = Arc::new(route.after_handshake(None, version)));
    }

    /// Sends `initialize`, outside of any session.
    async fn introduce(self: &Arc<Self>, params: &RawValue) -> Result<(Json, Begun), CallError> {
        let (id, _answer) = self.calls().open().ok_or(CallError::Busy)?;
        // Only its number is needed: the answer is read here.
        self.calls().close(id);
        let mut body = Vec::with_capacity(256 + params.get().len());
        frame::request(&mut body, id.number(), "initialize", params);
        let subject = Subject { method: "initialize", object: Object::None };
        let message = Outgoing { subject, body: body.into() };
        let outside = Route::before_handshake(Protocol::Streamable);
        let response = match self.post(&outside, &message).await {
            Ok(response) => response,
            Err(Refusal::Failed(error)) => return Err(error),
            // It cannot be: there is none.
            Err(Refusal::SessionLost) => {
                return Err(CallError::Http { status: 404, body: String::new() });
            }
        };
        let session = response.headers().get(SESSION).cloned();
        let begun = Begun { wire: Arc::clone(self), session };
        match self.answer(id.number(), &outside, response).await? {
            Some(Ok(result)) => Ok((result, begun)),
            Some(Err(fault)) => Err(fault.into()),
            None => Err(CallError::Protocol(
                "the server accepted the request without a response".to_owned(),
            )),
        }
    }

    /// Begins a new session in the place of a lost one. Whoever comes first does it, the others wait and
    /// find it done. Should the first be cancelled meanwhile, the next begins anew.
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
        // For all that wait: none of them would fare better.
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
        let route = Arc::new(self.route().after_handshake(begun.session.clone(), &version));
        let subject = Subject { method: "notifications/initialized", object: Object::None };
        let message = Outgoing { subject, body: Bytes::from_static(INITIALIZED) };
        match self.post(&route, &message).await {
            Ok(_) => {
                // Only now: nobody may use the session before it has begun.
                begun.keep();
                self.route.send_replace(route);
                self.tell_of_changes();
                tracing::info!("the server had forgotten the session; a new one has begun");
                Ok(())
            }
            Err(Refusal::Failed(error)) => Err(error),
            Err(Refusal::SessionLost) => {
                Err(CallError::Protocol("the server drops its sessions at once".to_owned()))
            }
        }
    }

    /// What a server lists in a new session may be something else, and of what it told meanwhile nobody
    /// heard. `rmcp` learns that the lists have changed as if the server had said so.
    fn tell_of_changes(self: &Arc<Self>) {
        let wire = Arc::clone(self);
        // Not waited for: it may be `rmcp` that waits for the session.
        self.tasks.spawn(async move {
            for list in ["tools", "resources", "prompts"] {
                let method = format!("notifications/{list}/list_changed");
                let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
                if hand_over(line.as_bytes(), &wire.skipped, &wire.to_rmcp).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Ends the connection: calls fail, tasks end, the server may forget the session. When this returns,
    /// nothing of it is left.
    pub(crate) async fn shut_down(&self) {
        self.close(Closed::ByUs);
        self.tasks.end().await;
        let route = self.route();
        if route.session.is_some() && self.parts_first() {
            let _ = timeout(FAREWELL, self.delete(&route)).await;
        }
    }

    /// The same where nobody can wait for it: a farewell that was not said yet is said by the way.
    pub(super) fn abandon(self: &Arc<Self>) {
        self.close(Closed::ByUs);
        self.tasks.abort();
        let route = self.route();
        if route.session.is_some() && self.parts_first() {
            self.part_from(route);
        }
    }

    /// Whether nobody has said farewell yet.
    fn parts_first(&self) -> bool {
        !self.is_parted.swap(true, Ordering::Relaxed)
    }

    /// Has the server forget a session, as far as there is still time. This outlives the connection, and
    /// everything that could own it, but not by long.
    fn part_from(self: &Arc<Self>, route: Arc<Route>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let wire = Arc::clone(self);
        runtime.spawn(async move {
            let _ = timeout(FAREWELL, wire.delete(&route)).await;
        });
    }
}

/// A session that a server has begun. Unless it is kept, the server may forget it: whoever wanted it
/// gave up before the handshake was over.
struct Begun {
    wire: Arc<HttpWire>,
    session: Option<HeaderValue>,
}

impl Begun {
    fn keep(mut self) -> Option<HeaderValue> {
        self.session.take()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let mut route = Route::before_handshake(Protocol::Streamable);
            route.session = Some(session);
            self.wire.part_from(Arc::new(route));
        }
    }
}
