//! The host application, as far as servers can reach it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability,
    Implementation, JsonObject, ProtocolVersion, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use serde_json::{Value, json};

use crate::listing::app;

/// A question of a server to the user (elicitation).
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationRequest {
    /// The server that asks.
    pub server: String,
    /// The calls that it may belong to, newest first: one if that is known, or else all that the
    /// server is processing, and those that ended without its response. Empty if the server asks on its own.
    pub calls: Vec<CallInProgress>,
    /// The message, in one line. Untrusted: not for a model.
    pub message: String,
    /// The kind of input.
    pub wanted: ElicitationKind,
    /// The id by which the server reports that a URL was visited (2025-11-25).
    pub id: Option<String>,
}

impl ElicitationRequest {
    /// The sessions of the calls that it may belong to, sorted.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        let sessions: BTreeSet<&String> =
            self.calls.iter().filter_map(|call| call.session.as_ref()).collect();
        sessions.into_iter().cloned().collect()
    }
}

/// The input that a server requests from the user.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationKind {
    /// Values that match this JSON Schema.
    Form(Value),
    /// A visit to a URL, which must be shown in full and not be prefetched.
    Visit(String),
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Accepted, with the requested values.
    Accept(Option<Value>),
    /// Declined.
    Decline,
    /// Dismissed without a decision.
    Cancel,
}

/// A user who can answer questions.
pub trait Elicitor: Send + Sync + 'static {
    /// Asks the user and returns the answer.
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer>;
}

/// A request from a server for a completion (`sampling/createMessage`).
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    /// The server.
    pub server: String,
    /// The agents that use this connection, sorted by name.
    pub agents: Vec<String>,
    /// The calls that it may belong to, newest first: one if that is known, or else all that the
    /// server is processing, and those that ended without its response. Empty if the server sent it on its own.
    pub calls: Vec<CallInProgress>,
    /// The parameters of the request. Untrusted.
    pub params: Value,
}

/// A call that a server is processing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallInProgress {
    /// The calling agent.
    pub agent: String,
    /// The session of the call, if any.
    pub session: Option<String>,
}

/// Answers requests for completions (sampling). It receives those of every server, also if the
/// capability was not declared to it: the sampler decides whether to answer (T11).
pub trait Sampler: Send + Sync + 'static {
    /// Returns the result of `sampling/createMessage`. Dropping the future cancels the request.
    ///
    /// # Errors
    /// If there is no completion; the message is sent to the server.
    fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>>;
}

/// Clients of other programs that this one makes calls for (the hub): they receive what servers
/// report and ask on their own. `calls` are those that it may belong to, newest first.
pub trait Downstream: Send + Sync + 'static {
    /// Receives a log message: the parameters of `notifications/message`. Must not block.
    fn logged(&self, server: &str, calls: &[CallInProgress], message: &Value);

    /// Receives the id of an elicitation whose URL was visited. Must not block.
    fn visited(&self, server: &str, id: &str);

    /// Receives a change of a watched resource. Must not block.
    fn updated(&self, server: &str, uri: &str);

    /// Returns the result of `roots/list` from the client that one of the calls is made for; `None`
    /// if there is no such client, or it has no roots.
    fn roots<'a>(
        &'a self,
        server: &str,
        calls: &'a [CallInProgress],
    ) -> BoxFuture<'a, Option<Value>>;
}

/// What the host application provides to servers.
#[derive(Clone, Default)]
pub struct Host {
    /// The user, if one is available.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Answers sampling requests; `None` if no model is configured.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The workspace of agents that have none of their own.
    pub workspace: Option<PathBuf>,
    /// Clients of other programs, if calls are made for any.
    pub downstream: Option<Arc<dyn Downstream>>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let elicitor = self.elicitor.is_some();
        let sampler = self.sampler.is_some();
        let mut shown = f.debug_struct("Host");
        shown.field("elicitor", &elicitor).field("sampler", &sampler);
        shown.field("downstream", &self.downstream.is_some());
        shown.field("workspace", &self.workspace).finish()
    }
}

impl Host {
    /// Returns the client configuration for a server; sampling and roots are declared only if they
    /// are offered.
    pub(crate) fn config(&self, offers_sampling: bool, offers_roots: bool) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if offers_roots {
            capabilities.roots = Some(RootsCapabilities::default());
        }
        if self.elicitor.is_some() {
            let elicitation = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        if self.sampler.is_some() && offers_sampling {
            let mut sampling = SamplingCapability::default();
            sampling.tools = Some(JsonObject::new());
            capabilities.sampling = Some(sampling);
        }
        if self.downstream.is_some() {
            // Their programs may show pages. What a connection declares is for all of its clients; since
            // 2026-07-28 a request of a client carries its own capabilities instead.
            let settings =
                JsonObject::from_iter([("mimeTypes".to_owned(), json!([app::PAGE_TYPE]))]);
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(app::EXTENSION.to_owned(), settings);
        }
        let us = Implementation::new("openclaw", env!("CARGO_PKG_VERSION")).with_title("OpenClaw");
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
