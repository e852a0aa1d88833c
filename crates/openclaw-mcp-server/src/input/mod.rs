//! Input that clients are asked for during a call: by requests of their own, or by results, which they
//! answer with another request (2026-07-28).

pub(crate) mod approval;
mod digest;
pub(crate) mod parked;
pub(crate) mod state;

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationKind};
use rmcp::model::{ClientResult, CustomRequest, ServerRequest};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};

/// What a client can be asked for, by the capabilities that it declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Its user fills in forms.
    pub(crate) form: bool,
    /// Its user visits URLs.
    pub(crate) url: bool,
    /// Completions of its model.
    pub(crate) sampling: bool,
    /// Its roots.
    pub(crate) roots: bool,
}

impl Abilities {
    /// Reads the capabilities of a client.
    pub(crate) fn declared_in(capabilities: &Value) -> Self {
        let has = |name: &str| capabilities.get(name).is_some_and(Value::is_object);
        let elicitation = capabilities.get("elicitation");
        let url = elicitation.is_some_and(|it| it.get("url").is_some());
        // Without modes, as before 2025-11-25, it is forms.
        let form =
            has("elicitation") && (!url || elicitation.is_some_and(|it| it.get("form").is_some()));
        Self { form, url, sampling: has("sampling"), roots: has("roots") }
    }

    /// Whether a question can be asked.
    pub(crate) fn include(self, question: &ClientQuestion) -> bool {
        match question.method {
            ELICIT if question.params.get("mode").is_some_and(|mode| mode == "url") => self.url,
            ELICIT => self.form,
            SAMPLE => self.sampling,
            _ => self.roots,
        }
    }
}

pub(crate) const ELICIT: &str = "elicitation/create";
pub(crate) const SAMPLE: &str = "sampling/createMessage";
pub(crate) const ROOTS: &str = "roots/list";

/// A request to a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientQuestion {
    /// The method.
    pub(crate) method: &'static str,
    /// The parameters.
    pub(crate) params: Value,
}

impl ClientQuestion {
    /// The elicitation of a server. The `id` of a URL correlates a notification about its completion.
    pub(crate) fn elicitation(message: &str, wanted: &ElicitationKind, id: u64) -> Self {
        let params = match wanted {
            ElicitationKind::Form(schema) => {
                json!({ "mode": "form", "message": message, "requestedSchema": schema })
            }
            ElicitationKind::Visit(url) => json!({
                "mode": "url", "message": message, "url": url, "elicitationId": visit_id(id),
            }),
        };
        Self { method: ELICIT, params }
    }
}

/// The id that a client knows the visit to a URL by.
pub(super) fn visit_id(number: u64) -> String {
    format!("{number:x}")
}

/// Reads the answer to an elicitation.
pub(crate) fn elicited(answer: &Value) -> ElicitationAnswer {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => ElicitationAnswer::Accept(answer.get("content").cloned()),
        Some("decline") => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}

/// The answer of a client: a result, or why there is none.
pub(crate) type ClientAnswer = Result<Value, String>;

/// A client that can be asked during a call.
pub(crate) trait AskableClient: Debug + Send + Sync {
    /// What it can be asked for.
    fn abilities(&self) -> Abilities;

    /// Asks it. Dropping the future withdraws the question.
    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer>;

    /// Sends it a log message: the parameters of `notifications/message`. Does not block.
    fn log(&self, _message: &Value) {}

    /// Reports that the URL of the elicitation with this id was visited. Does not block. Only earlier
    /// clients know that (2025-11-25), outside of replies.
    fn visited(&self, _id: &str) {}
}

/// Asks a client, if it can answer.
pub(crate) async fn ask_if_able(
    client: &dyn AskableClient,
    question: ClientQuestion,
) -> ClientAnswer {
    if client.abilities().include(&question) {
        client.ask(question).await
    } else {
        Err(format!("the client does not support `{}`", question.method))
    }
}

/// Asks a client through `rmcp`.
pub(crate) async fn ask_peer(peer: &Peer<RoleServer>, question: ClientQuestion) -> ClientAnswer {
    let request = CustomRequest::new(question.method, Some(question.params));
    let answer = peer.send_request(ServerRequest::CustomRequest(request)).await;
    let answer: ClientResult = answer.map_err(|error| error.to_string())?;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elicitation_without_modes_means_forms() {
        let of = |capabilities: Value| Abilities::declared_in(&capabilities);
        let both = of(json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} }));
        assert!(both.form && both.url && both.roots && !both.sampling);
        let old = of(json!({ "elicitation": {}, "sampling": {} }));
        assert!(old.form && !old.url && old.sampling);
        let only_url = of(json!({ "elicitation": { "url": {} } }));
        assert!(!only_url.form && only_url.url);
        assert_eq!(of(json!({})), Abilities::default());
    }
}
