//! Answers what a server asks for: elicitations, roots and completions (sampling).

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{ElicitResult, ElicitationAction, ListRootsResult, Root};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::elicitation::Elicitation;
use super::{ClientSide, ElicitationAnswer, ElicitationRequest, SamplingRequest};
use crate::wire::WorkId;

/// Timeout for an answer of the user, or of the sampler including a user that it asks.
pub const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Maximum number of inputs that a server may request in one result.
const AT_ONCE: usize = 10;

impl ClientSide {
    /// Answers the input requests of a result (2026-07-28), by key. They belong to this call, if it is
    /// known.
    ///
    /// # Errors
    /// If an input cannot be provided; the message names it.
    pub(crate) async fn fulfil(
        &self,
        requests: BTreeMap<String, Value>,
        work: Option<WorkId>,
    ) -> Result<BTreeMap<String, Value>, String> {
        if requests.len() > AT_ONCE {
            return Err(format!("more than {AT_ONCE} inputs at once"));
        }
        let mut answers = BTreeMap::new();
        for (key, mut request) in requests {
            let params = request.get_mut("params").map(Value::take).unwrap_or_default();
            let answer = match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    to_json(&self.elicit(self.read_elicitation(params)?, work).await)
                }
                Some("roots/list") => {
                    let roots = self.roots(work).await;
                    to_json(&roots.ok_or("roots, which are not offered to it")?)
                }
                Some("sampling/createMessage") => self
                    .sample(params, work)
                    .await
                    .map_err(|why| format!("a completion (sampling), which was rejected: {why}"))?,
                _ => return Err("an unsupported kind of input".to_owned()),
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Parses the parameters of an elicitation, and logs why one is rejected.
    pub(super) fn read_elicitation(&self, params: Value) -> Result<Elicitation, &'static str> {
        Elicitation::parse(params).inspect_err(|reason| {
            tracing::warn!(server = %self.shared.server, reason, "rejected an elicitation");
        })
    }

    pub(super) async fn elicit(&self, asked: Elicitation, work: Option<WorkId>) -> ElicitResult {
        let Some(elicitor) = &self.shared.host.elicitor else {
            tracing::info!(server = %self.shared.server, "declined an elicitation: no user");
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let Elicitation { message, wanted, id } = asked;
        let server = self.shared.server.clone();
        let occasion = self.shared.calls_about(work);
        let calls = occasion.callers.clone();
        let question = ElicitationRequest { server, calls, message, wanted, id };
        let _thinking = self.thinking();
        let answer = tokio::select! {
            biased;
            answer = timeout(PATIENCE, elicitor.ask(question)) => answer.unwrap_or_else(|_| {
                tracing::info!(server = %self.shared.server, "an elicitation timed out");
                ElicitationAnswer::Cancel
            }),
            // Not every server cancels its request when its call is cancelled or times out.
            () = self.shared.work.over(&occasion) => ElicitationAnswer::Cancel,
        };
        match answer {
            ElicitationAnswer::Accept(Some(values)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(values)
            }
            ElicitationAnswer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
            ElicitationAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    pub(super) async fn sample(
        &self,
        params: Value,
        work: Option<WorkId>,
    ) -> Result<Value, String> {
        let server = &self.shared.server;
        let Some(sampler) = &self.shared.host.sampler else {
            tracing::info!(%server, "rejected a sampling request: no model is configured");
            return Err("sampling is not available".to_owned());
        };
        let occasion = self.shared.calls_about(work);
        let request = SamplingRequest {
            server: server.clone(),
            agents: self.users.names(),
            calls: occasion.callers.clone(),
            params,
        };
        let _thinking = self.thinking();
        tokio::select! {
            biased;
            answer = timeout(PATIENCE, sampler.create_message(request)) => {
                answer.unwrap_or_else(|_| Err("the sampling request timed out".to_owned()))
            }
            // Not every server cancels its request when its call is cancelled or times out.
            () = self.shared.work.over(&occasion) => {
                Err("the call that the sampling request belongs to has ended".to_owned())
            }
        }
    }

    /// Returns the roots; `None` if they are not declared. Never an empty list, for which a server
    /// may drop its own folders. A client that the server is working for has its own.
    pub(super) async fn roots(&self, work: Option<WorkId>) -> Option<ListRootsResult> {
        if self.roots.is_empty() {
            return None;
        }
        let calls = self.shared.calls_about(work).callers;
        if let Some(downstream) = &self.shared.host.downstream
            && let Ok(Some(theirs)) =
                timeout(PATIENCE, downstream.roots(&self.shared.server, &calls)).await
            && let Ok(theirs) = serde_json::from_value::<ListRootsResult>(theirs)
            && !theirs.roots.is_empty()
        {
            return Some(theirs);
        }
        let root = |root: &Url| Root::new(root.to_string()).with_name("workspace");
        Some(ListRootsResult::new(self.roots.iter().map(root).collect()))
    }
}

/// Serializing plain data cannot fail.
pub(super) fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|_| json!({}))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use rmcp::model::ProtocolVersion;

    use super::*;
    use crate::host::{Elicitor, Host, Sampler};

    /// A user who never answers.
    struct Absent;

    impl Elicitor for Absent {
        fn ask(&self, _question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
            Box::pin(std::future::pending())
        }
    }

    fn questions(count: usize) -> BTreeMap<String, Value> {
        let schema = json!({ "type": "object", "properties": {} });
        let params = json!({ "mode": "form", "message": "Well?", "requestedSchema": schema });
        let question = json!({ "method": "elicitation/create", "params": params });
        (0..count).map(|number| (number.to_string(), question.clone())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_cancelled_when_all_calls_it_may_belong_to_have_ended() {
        let host = Host { elicitor: Some(Arc::new(Absent)), ..Host::default() };
        let client = ClientSide::new("x", host);
        let calls = [client.working_for("main", Some("a")), client.working_for("main", None)];
        let mut asking = std::pin::pin!(client.fulfil(questions(1), None));
        assert!(asking.as_mut().now_or_never().is_none());
        let [first, second] = calls;
        drop(first);
        assert!(asking.as_mut().now_or_never().is_none(), "it may belong to the other call");
        drop(second);
        let later = client.working_for("main", Some("b"));
        let answers = asking.now_or_never().unwrap().unwrap();
        assert_eq!(answers["0"]["action"], "cancel");
        drop(later);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_without_an_answer_times_out() {
        let host = Host { elicitor: Some(Arc::new(Absent)), ..Host::default() };
        let answers = ClientSide::new("x", host).fulfil(questions(2), None).await.unwrap();
        assert_eq!(answers["0"]["action"], "cancel");
        assert_eq!(answers["1"]["action"], "cancel");
    }

    /// Returns the calls of the request, unless it is to wait.
    struct Mirror;

    impl Sampler for Mirror {
        fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>> {
            Box::pin(async move {
                match request.params.get("wait") {
                    Some(_) => std::future::pending().await,
                    None => Ok(json!(format!("{:?}", request.calls))),
                }
            })
        }
    }

    fn sampling(params: &Value) -> BTreeMap<String, Value> {
        let wanted = json!({ "method": "sampling/createMessage", "params": params });
        BTreeMap::from([("a".to_owned(), wanted)])
    }

    fn with_sampler() -> ClientSide {
        ClientSide::new("x", Host { sampler: Some(Arc::new(Mirror)), ..Host::default() })
    }

    #[tokio::test]
    async fn a_sampling_request_names_the_calls_in_progress_newest_first() {
        let client = with_sampler();
        let _first = client.working_for("main", Some("a"));
        let _second = client.working_for("other", None);
        let answers = client.fulfil(sampling(&json!({})), None).await.unwrap();
        let said = answers["a"].as_str().unwrap();
        let place = |text: &str| said.find(text).unwrap();
        assert!(place("other") < place("main"), "{said}");
    }

    #[tokio::test]
    async fn a_sampling_request_ends_with_the_calls_that_it_belongs_to() {
        let client = with_sampler();
        let call = client.working_for("main", Some("a"));
        let mut asking = std::pin::pin!(client.fulfil(sampling(&json!({ "wait": true })), None));
        assert!(asking.as_mut().now_or_never().is_none());
        drop(call);
        let error = asking.now_or_never().unwrap().unwrap_err();
        assert!(error.contains("has ended"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sampling_request_times_out() {
        let error =
            with_sampler().fulfil(sampling(&json!({ "wait": true })), None).await.unwrap_err();
        assert!(error.contains("timed out"), "{error}");
    }

    #[tokio::test]
    async fn sampling_is_declared_only_if_offered_and_with_tools_since_2025_11_25() {
        let sampling = |client: &ClientSide| client.config().capabilities.sampling.clone();
        let quiet = with_sampler();
        assert!(sampling(&quiet).is_none());
        let offered = quiet.with_sampling(true);
        assert!(sampling(&offered).unwrap().tools.is_some());
        let older = offered.offering(ProtocolVersion::V_2025_06_18);
        assert!(sampling(&older).unwrap().tools.is_none());
        let nowhere = ClientSide::new("x", Host::default()).with_sampling(true);
        assert!(sampling(&nowhere).is_none(), "no model is configured");
        let error = nowhere.fulfil(super::tests::sampling(&json!({})), None).await.unwrap_err();
        assert!(error.contains("not available"), "{error}");
    }

    #[tokio::test]
    async fn the_number_of_inputs_per_request_is_limited() {
        let client = ClientSide::new("x", Host::default());
        assert_eq!(client.fulfil(questions(10), None).await.unwrap().len(), 10);
        let error = client.fulfil(questions(11), None).await.unwrap_err();
        assert!(error.contains("more than 10"), "{error}");
    }
}
