//! Requests from a server, and their answers (T10, T11).
//!
//! Elicitations are passed to the user, or declined if there is none; the root is the agent's
//! workspace, if the server may know it; sampling requests are passed to the sampler. Log messages of a server go to the log
//! only. Changes of lists are counted for the owner of the lists.

#![expect(deprecated, reason = "older servers still ask for roots and sampling, and still log")]

mod elicitation;
mod handler;
mod host;
mod login;
mod work;

pub use host::{
    CallInProgress, ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor, Host,
    Sampler, SamplingRequest,
};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use openclaw_config::{LogLevel, Roots};
use openclaw_content::{Untrusted, clean_line};
use rmcp::model::{
    ClientConfig, ElicitResult, ElicitationAction, ListRootsResult, ProtocolVersion, Root,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::fleet::events::Users;
use crate::server::limiter::Limiter;
use crate::wire::{FastLane, Thinking, WeakLane};
use elicitation::Elicitation;
use work::Work;

/// Timeout for an answer of the user, or of the sampler including a user that it asks.
pub const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Maximum number of inputs that a server may request in one result.
const AT_ONCE: usize = 10;
/// Maximum length of a log or question message, in characters.
const LOG_CHARS: usize = 2_000;
/// Maximum number of log messages of a server per minute; further ones are only counted.
const LOGS_PER_MINUTE: u32 = 600;

/// How often a server reported a change of each list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changes of the tools.
    pub tools: u64,
    /// Changes of the resources.
    pub resources: u64,
    /// Changes of the prompts.
    pub prompts: u64,
}

impl Changes {
    /// Counts a change of every list.
    pub(crate) fn count_all(&mut self) {
        self.tools += 1;
        self.resources += 1;
        self.prompts += 1;
    }

    /// Returns the changes since an earlier count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            tools: self.tools - earlier.tools,
            resources: self.resources - earlier.resources,
            prompts: self.prompts - earlier.prompts,
        }
    }
}

/// Our side of the protocol, for one server. Clones share their state.
#[derive(Debug, Clone)]
pub struct Client {
    config: ClientConfig,
    /// The agents that use the server.
    users: Users,
    /// Whether sampling is declared.
    offers_sampling: bool,
    /// The folder of these agents, if the server may know it.
    root: Option<Url>,
    /// The level of the server's log messages.
    log_level: Option<LogLevel>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    host: Host,
    /// The calls in progress; only tracked if there is a user or a sampler.
    work: Work,
    /// The connection to the server, once there is one.
    lane: OnceLock<WeakLane>,
    changes: watch::Sender<Changes>,
    logs: LogLimit,
    /// The watched resources, with the number of changes.
    updates: Mutex<BTreeMap<String, Followed>>,
}

/// Limits the log messages of a server.
#[derive(Debug)]
struct LogLimit {
    limiter: Limiter,
    /// How many were not logged.
    omitted: AtomicU64,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self { limiter: Limiter::new(Some(LOGS_PER_MINUTE)), omitted: AtomicU64::new(0) }
    }
}

impl LogLimit {
    /// Returns how many messages were omitted before this one; `None` if it is to be omitted, too.
    fn check(&self, now: Instant) -> Option<u64> {
        match self.limiter.check(now) {
            Ok(()) => Some(self.omitted.swap(0, Ordering::Relaxed)),
            Err(_) => {
                self.omitted.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

/// A watched resource.
#[derive(Debug, Clone, Copy, Default)]
struct Followed {
    changes: u64,
    /// Whether the server currently reports its changes.
    is_reported: bool,
}

impl Client {
    /// Creates our side for a server; neither sampling nor roots are declared to it.
    pub fn new(server: &str, host: Host) -> Self {
        let (server, config) = (server.to_owned(), host.config(false, false));
        let changes = watch::Sender::new(Changes::default());
        let (work, lane, updates) = (Work::default(), OnceLock::new(), Mutex::default());
        let logs = LogLimit::default();
        let shared = Arc::new(Shared { server, host, work, lane, changes, logs, updates });
        let (offers_sampling, root, log_level) = (false, None, None);
        Self { config, users: Users::default(), offers_sampling, root, log_level, shared }
    }

    /// Sets whether sampling is declared to the server.
    #[must_use]
    pub fn with_sampling(mut self, is_offered: bool) -> Self {
        self.offers_sampling = is_offered;
        self.declared()
    }

    /// Sets what the server learns about the agents' folder.
    #[must_use]
    pub fn with_roots(mut self, roots: &Roots) -> Self {
        let folder = match roots {
            Roots::Hidden => None,
            Roots::Workspace(own) => own.as_ref().or(self.shared.host.workspace.as_ref()),
        };
        self.root = folder.and_then(|folder| Url::from_directory_path(folder).ok());
        self.declared()
    }

    /// Sets the level of the server's log messages.
    #[must_use]
    pub(crate) fn with_log_level(mut self, level: Option<LogLevel>) -> Self {
        self.log_level = level;
        self
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// The name of the server.
    pub(crate) fn server(&self) -> &str {
        &self.shared.server
    }

    fn declared(mut self) -> Self {
        self.config = self.shared.host.config(self.offers_sampling, self.root.is_some());
        self
    }

    /// Sets the agents that use the server.
    #[must_use]
    pub(crate) fn used_by(mut self, users: &Users) -> Self {
        self.users = users.clone();
        self
    }

    /// Returns the client configuration that is sent to the server.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Returns a receiver of list changes.
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.shared.changes.subscribe()
    }

    /// Returns a client that offers `version` in the handshake.
    pub(crate) fn offering(&self, version: ProtocolVersion) -> Self {
        let mut config = self.config.clone();
        // Older versions do not support tools in sampling.
        if let (Some(sampling), true) =
            (&mut config.capabilities.sampling, version < ProtocolVersion::V_2025_11_25)
        {
            sampling.tools = None;
        }
        let config = config.with_protocol_version(version);
        Self { config, ..self.clone() }
    }

    pub(crate) fn changed(&self, note: impl FnOnce(&mut Changes)) {
        self.shared.changes.send_modify(note);
    }

    /// Records that the server reports changes of these resources. Counts as a change of each: one
    /// may have happened before the subscription.
    pub(crate) fn follow(&self, resources: impl IntoIterator<Item = String>) {
        let mut updates = self.updates();
        for uri in resources {
            let followed = updates.entry(uri).or_default();
            followed.changes += 1;
            followed.is_reported = true;
        }
    }

    /// Records a change of a resource. Unwatched resources are ignored: a server could report any
    /// number.
    pub(crate) fn updated(&self, uri: &str) {
        if let Some(followed) = self.updates().get_mut(uri) {
            followed.changes += 1;
        }
    }

    /// Returns how often a resource has changed; `None` if the server does not report it.
    pub(crate) fn changes_of(&self, uri: &str) -> Option<u64> {
        self.updates().get(uri).filter(|it| it.is_reported).map(|it| it.changes)
    }

    /// Records that changes are no longer reported, and that some may have been missed.
    pub(crate) fn follow_nothing(&self) {
        self.updates().values_mut().for_each(|followed| followed.is_reported = false);
    }

    fn updates(&self) -> MutexGuard<'_, BTreeMap<String, Followed>> {
        self.shared.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the connection to the server.
    pub(crate) fn speaks_over(&self, lane: &FastLane) {
        // A client is for one connection.
        let _ = self.shared.lane.set(lane.downgrade());
    }

    /// Registers a call of an agent, in a session or without one, until the guard is dropped.
    pub(crate) fn working_for(&self, agent: &str, session: Option<&str>) -> Option<CallGuard> {
        let Host { elicitor, sampler, .. } = &self.shared.host;
        if elicitor.is_none() && sampler.is_none() {
            return None;
        }
        let call = self.shared.work.begin(agent, session);
        Some(CallGuard { shared: Arc::clone(&self.shared), call })
    }

    /// Answers the input requests of a result (2026-07-28), by key.
    ///
    /// # Errors
    /// If an input cannot be provided; the message names it.
    pub(crate) async fn fulfil(
        &self,
        requests: BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, String> {
        if requests.len() > AT_ONCE {
            return Err(format!("more than {AT_ONCE} inputs at once"));
        }
        let mut answers = BTreeMap::new();
        for (key, mut request) in requests {
            let params = request.get_mut("params").map(Value::take).unwrap_or_default();
            let answer = match request.get("method").and_then(Value::as_str) {
                Some("elicitation/create") => {
                    to_json(&self.elicit(Elicitation::parse(params)?).await)
                }
                Some("roots/list") => {
                    to_json(&self.roots().ok_or("roots, which are not offered to it")?)
                }
                Some("sampling/createMessage") => self
                    .sample(params)
                    .await
                    .map_err(|why| format!("a completion (sampling), which was rejected: {why}"))?,
                _ => return Err("an unsupported kind of input".to_owned()),
            };
            answers.insert(key, answer);
        }
        Ok(answers)
    }

    /// Suspends the time limits of calls until the returned value is dropped.
    fn thinking(&self) -> Option<Thinking> {
        let lane = self.shared.lane.get().and_then(WeakLane::upgrade);
        lane.map(|lane| lane.thinking())
    }

    async fn elicit(&self, asked: Elicitation) -> ElicitResult {
        let Some(elicitor) = &self.shared.host.elicitor else {
            tracing::info!(server = %self.shared.server, "declined an elicitation: no user");
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let Elicitation { message, wanted } = asked;
        let message = clean_line(Untrusted::new(&message), LOG_CHARS);
        let (server, occasion) = (self.shared.server.clone(), self.shared.work.now());
        let sessions = occasion.sessions.clone();
        let question = ElicitationRequest { server, sessions, message, wanted };
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

    async fn sample(&self, params: Value) -> Result<Value, String> {
        let server = &self.shared.server;
        let Some(sampler) = &self.shared.host.sampler else {
            tracing::info!(%server, "rejected a sampling request: no model is configured");
            return Err("sampling is not available".to_owned());
        };
        let occasion = self.shared.work.now();
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
    /// may drop its own folders.
    fn roots(&self) -> Option<ListRootsResult> {
        let root = Root::new(self.root.as_ref()?.to_string()).with_name("workspace");
        Some(ListRootsResult::new(vec![root]))
    }
}

/// Registers a call as in progress until it is dropped.
#[derive(Debug)]
pub(crate) struct CallGuard {
    shared: Arc<Shared>,
    call: u64,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.shared.work.end(self.call);
    }
}

/// Serializing plain data cannot fail.
fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|_| json!({}))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;

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
        let client = Client::new("x", host);
        let calls = [client.working_for("main", Some("a")), client.working_for("main", None)];
        let mut asking = std::pin::pin!(client.fulfil(questions(1)));
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
        let answers = Client::new("x", host).fulfil(questions(2)).await.unwrap();
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

    fn with_sampler() -> Client {
        Client::new("x", Host { sampler: Some(Arc::new(Mirror)), ..Host::default() })
    }

    #[tokio::test]
    async fn a_sampling_request_names_the_calls_in_progress_newest_first() {
        let client = with_sampler();
        let _first = client.working_for("main", Some("a"));
        let _second = client.working_for("other", None);
        let answers = client.fulfil(sampling(&json!({}))).await.unwrap();
        let said = answers["a"].as_str().unwrap();
        let place = |text: &str| said.find(text).unwrap();
        assert!(place("other") < place("main"), "{said}");
    }

    #[tokio::test]
    async fn a_sampling_request_ends_with_the_calls_that_it_belongs_to() {
        let client = with_sampler();
        let call = client.working_for("main", Some("a"));
        let mut asking = std::pin::pin!(client.fulfil(sampling(&json!({ "wait": true }))));
        assert!(asking.as_mut().now_or_never().is_none());
        drop(call);
        let error = asking.now_or_never().unwrap().unwrap_err();
        assert!(error.contains("has ended"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sampling_request_times_out() {
        let error = with_sampler().fulfil(sampling(&json!({ "wait": true }))).await.unwrap_err();
        assert!(error.contains("timed out"), "{error}");
    }

    #[tokio::test]
    async fn sampling_is_declared_only_if_offered_and_with_tools_since_2025_11_25() {
        let sampling = |client: &Client| client.config().capabilities.sampling.clone();
        let quiet = with_sampler();
        assert!(sampling(&quiet).is_none());
        let offered = quiet.with_sampling(true);
        assert!(sampling(&offered).unwrap().tools.is_some());
        let older = offered.offering(ProtocolVersion::V_2025_06_18);
        assert!(sampling(&older).unwrap().tools.is_none());
        let nowhere = Client::new("x", Host::default()).with_sampling(true);
        assert!(sampling(&nowhere).is_none(), "no model is configured");
        let error = nowhere.fulfil(super::tests::sampling(&json!({}))).await.unwrap_err();
        assert!(error.contains("not available"), "{error}");
    }

    #[test]
    fn log_messages_are_limited_and_the_omitted_ones_are_counted() {
        let (logs, now) = (LogLimit::default(), Instant::now());
        let logged = (0..10_000).filter(|_| logs.check(now).is_some()).count();
        assert_eq!(logged, usize::try_from(LOGS_PER_MINUTE).unwrap());
        assert_eq!(logs.check(now + Duration::from_secs(60)), Some(10_000 - logged as u64));
    }

    #[tokio::test]
    async fn the_number_of_inputs_per_request_is_limited() {
        let client = Client::new("x", Host::default());
        assert_eq!(client.fulfil(questions(10)).await.unwrap().len(), 10);
        let error = client.fulfil(questions(11)).await.unwrap_err();
        assert!(error.contains("more than 10"), "{error}");
    }
}
