//! What servers ask and report goes to the client that a call is made for (S6).
//!
//! A server does not say which call its request belongs to. If it works for several clients at a
//! time, the one with the newest call is asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use openclaw_mcp::connection::client::{
    Downstream, ElicitationAnswer, ElicitationRequest, SamplingRequest,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::answers::{Answer, Answers, Question, ROOTS, SAMPLE, ask_if_able, elicited};
use super::client::Client;
use super::listen::Updated;

/// How many changes of resources are kept for a slow client; it loses the oldest.
const MAX_UPDATES: usize = 256;

/// The calls that are made for clients, and the clients that listen to what servers report.
#[derive(Debug)]
pub struct Asks {
    calls: Mutex<HashMap<String, CallOf>>,
    listeners: Mutex<Vec<Weak<Client>>>,
    updates: broadcast::Sender<Updated>,
    next: AtomicU64,
}

impl Default for Asks {
    fn default() -> Self {
        let (updates, next) = (broadcast::Sender::new(MAX_UPDATES), AtomicU64::new(1));
        Self { calls: Mutex::default(), listeners: Mutex::default(), updates, next }
    }
}

/// For whom the calls of a session are made.
#[derive(Debug)]
struct CallOf {
    /// Counts up, so that the newest is known.
    number: u64,
    client: Arc<dyn Answers>,
}

/// A registered session of calls. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct CallScope {
    asks: Arc<Asks>,
    session: String,
}

impl CallScope {
    /// The session of the calls.
    pub(super) fn session(&self) -> &str {
        &self.session
    }
}

impl Drop for CallScope {
    fn drop(&mut self) {
        self.asks.calls().remove(&self.session);
    }
}

impl Asks {
    /// Registers the client that the calls of a new session are made for.
    pub(super) fn register(self: &Arc<Self>, answers: Arc<dyn Answers>) -> CallScope {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let session = format!("hub:{number}");
        self.calls().insert(session.clone(), CallOf { number, client: answers });
        CallScope { asks: Arc::clone(self), session }
    }

    /// Subscribes to changes of resources.
    pub(super) fn updates(&self) -> broadcast::Receiver<Updated> {
        self.updates.subscribe()
    }

    /// Adds a client that listens to what servers report outside its calls.
    pub(super) fn listen(&self, client: &Arc<Client>) {
        let mut listeners = self.listeners();
        listeners.retain(|it| it.strong_count() > 0);
        listeners.push(Arc::downgrade(client));
    }

    /// Passes an elicitation to the client that one of the sessions belongs to; `None` if none does.
    pub fn elicit(
        &self,
        asked: &ElicitationRequest,
    ) -> Option<BoxFuture<'static, ElicitationAnswer>> {
        let client = self.newest(asked.sessions.iter())?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let question = Question::elicitation(&asked.message, &asked.wanted, id);
        Some(Box::pin(async move {
            match ask_if_able(&*client, question).await {
                Ok(answer) => elicited(&answer),
                Err(_) => ElicitationAnswer::Decline,
            }
        }))
    }

    /// Passes a sampling request to the client that the newest call belongs to; `None` if that is
    /// not a call of a client.
    pub fn sample(&self, asked: &SamplingRequest) -> Option<BoxFuture<'static, Answer>> {
        let newest = asked.calls.first()?.session.as_ref()?;
        let client = self.newest([newest].into_iter())?;
        let question = Question { method: SAMPLE, params: asked.params.clone() };
        Some(Box::pin(async move { ask_if_able(&*client, question).await }))
    }

    fn newest<'a>(&self, sessions: impl Iterator<Item = &'a String>) -> Option<Arc<dyn Answers>> {
        let calls = self.calls();
        let found = sessions.filter_map(|session| calls.get(session));
        found.max_by_key(|call| call.number).map(|call| Arc::clone(&call.client))
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, CallOf>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<Client>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each_listener(&self, tell: impl Fn(&Arc<Client>)) {
        let listeners: Vec<_> = self.listeners().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(tell);
    }
}

impl Downstream for Asks {
    fn logged(&self, server: &str, sessions: &[String], message: &Value) {
        match self.newest(sessions.iter()) {
            Some(client) => client.log(message),
            // Outside a call it concerns every client; not the ones that another caller's call
            // caused.
            None if sessions.is_empty() => self.each_listener(|it| it.logged(server, message)),
            None => {}
        }
    }

    fn updated(&self, server: &str, uri: &str) {
        // Fails if there is no subscriber.
        let _ = self.updates.send(Updated { server: server.to_owned(), uri: uri.to_owned() });
    }

    fn roots<'a>(&'a self, sessions: &'a [String]) -> BoxFuture<'a, Option<Value>> {
        let client = self.newest(sessions.iter());
        let question = Question { method: ROOTS, params: json!({}) };
        Box::pin(async move { ask_if_able(&*client?, question).await.ok() })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use openclaw_mcp::connection::client::ElicitationKind;

    use super::super::answers::Abilities;
    use super::super::replying::{CallEvent, ReplyingTask};
    use super::*;

    fn request(sessions: &[&str]) -> ElicitationRequest {
        ElicitationRequest {
            server: "x".to_owned(),
            sessions: sessions.iter().map(|it| (*it).to_owned()).collect(),
            message: "Well?".to_owned(),
            wanted: ElicitationKind::Form(json!({ "type": "object" })),
        }
    }

    #[tokio::test]
    async fn the_client_with_the_newest_call_is_asked() {
        let asks = Arc::new(Asks::default());
        let client = |form: bool| {
            let (task, events) = ReplyingTask::new(Abilities { form, ..Abilities::default() });
            (asks.register(task), events)
        };
        let (old, mut old_events) = client(true);
        let (new, mut new_events) = client(true);
        let sessions = [new.session(), old.session(), "agent:main:main"];
        let answering = tokio::spawn(asks.elicit(&request(&sessions)).unwrap());
        let CallEvent::Ask(question, answer) = new_events.next().await else { panic!() };
        assert_eq!(question.params["message"], "Well?");
        answer.send(Ok(json!({ "action": "accept", "content": { "a": 1 } }))).unwrap();
        let expected = ElicitationAnswer::Accept(Some(json!({ "a": 1 })));
        assert_eq!(answering.await.unwrap(), expected);
        assert!(old_events.next().now_or_never().is_none());
        drop(new);
        assert!(asks.elicit(&request(&["hub:99"])).is_none(), "it is for another user");
        let (mute, _mute_events) = client(false);
        let declined = asks.elicit(&request(&[mute.session()])).unwrap().await;
        assert_eq!(declined, ElicitationAnswer::Decline);
    }
}
