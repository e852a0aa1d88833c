//! Clients that can be asked during a call.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// What a client can be asked for, by the capabilities that it declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Its user fills in forms.
    pub(super) form: bool,
    /// Its user visits URLs.
    pub(super) url: bool,
    /// Completions of its model.
    pub(super) sampling: bool,
    /// Its roots.
    pub(super) roots: bool,
}

impl Abilities {
    /// Reads the capabilities of a client.
    pub(super) fn of(capabilities: &Value) -> Self {
        let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
        let elicitation = capabilities.get("elicitation");
        let url = elicitation.is_some_and(|it| it.get("url").is_some());
        // Without modes, as before 2025-11-25, it is forms.
        let form =
            has("elicitation") && (!url || elicitation.is_some_and(|it| it.get("form").is_some()));
        Self { form, url, sampling: has("sampling"), roots: has("roots") }
    }

    /// Whether a question can be asked.
    pub(super) fn include(self, question: &Question) -> bool {
        match question.method {
            ELICIT if question.params.get("mode").is_some_and(|mode| mode == "url") => self.url,
            ELICIT => self.form,
            SAMPLE => self.sampling,
            _ => self.roots,
        }
    }
}

pub(super) const ELICIT: &str = "elicitation/create";
pub(super) const SAMPLE: &str = "sampling/createMessage";
pub(super) const ROOTS: &str = "roots/list";

/// A request to a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// The method.
    pub(super) method: &'static str,
    /// The parameters.
    pub(super) params: Value,
}

/// The answer of a client: a result, or why there is none.
pub(super) type Answer = Result<Value, String>;

/// A client that can be asked during a call.
pub(super) trait Answers: Debug + Send + Sync {
    /// What it can be asked for.
    fn abilities(&self) -> Abilities;

    /// Asks it. Dropping the future withdraws the question.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;

    /// Sends it a log message: the parameters of `notifications/message`. Does not block.
    fn log(&self, message: &Value);
}

/// What happens during a call, for the task that replies to the client.
#[derive(Debug)]
pub(super) enum CallEvent {
    /// The client is asked.
    Ask(Question, oneshot::Sender<Answer>),
    /// The server sent a log message.
    Log(Value),
}

/// A client that is reached only by replies to its request.
#[derive(Debug)]
pub(super) struct ReplyingTask {
    pub(super) abilities: Abilities,
    pub(super) events: mpsc::Sender<CallEvent>,
}

impl Answers for ReplyingTask {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = || "the client is gone".to_owned();
            self.events.send(CallEvent::Ask(question, answer)).await.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn log(&self, message: &Value) {
        // Dropped if the client does not keep up.
        let _ = self.events.try_send(CallEvent::Log(message.clone()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elicitation_without_modes_means_forms() {
        let of = |capabilities: Value| Abilities::of(&capabilities);
        let both = of(json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} }));
        assert!(both.form && both.url && both.roots && !both.sampling);
        let old = of(json!({ "elicitation": {}, "sampling": {} }));
        assert!(old.form && !old.url && old.sampling);
        let only_url = of(json!({ "elicitation": { "url": {} } }));
        assert!(!only_url.form && only_url.url);
        assert_eq!(of(json!({})), Abilities::default());
    }
}
