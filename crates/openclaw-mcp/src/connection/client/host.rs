//! Who we are to servers, and whom they can reach through us.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability,
    Implementation, JsonObject, ProtocolVersion, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use serde_json::Value;

/// A question of a server to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Who asks.
    pub server: String,
    /// The conversations that it works for at this moment: it asks for the sake of one of them. None if
    /// nobody in a conversation waits for it.
    pub sessions: Vec<String>,
    /// What it says, in one line. From outside: not for a model.
    pub message: String,
    /// What it wants.
    pub wanted: QuestionKind,
}

/// What a server wants of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionKind {
    /// Some values, as this JSON Schema describes them.
    Form(Value),
    /// A visit to an address, which must be shown in full, and not be looked at beforehand.
    Visit(String),
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Yes, with the values that were asked for.
    Accept(Option<Value>),
    /// No.
    Decline,
    /// Never mind.
    Cancel,
}

/// Somebody who can be asked.
pub trait Person: Send + Sync + 'static {
    /// Asks.
    fn ask(&self, question: Question) -> BoxFuture<'_, ElicitationAnswer>;
}

/// A request of a server for a completion (`sampling/createMessage`).
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    /// The server.
    pub server: String,
    /// The agents that use this connection, in the order of their names.
    pub agents: Vec<String>,
    /// The calls that the server works on at this moment, newest first: it asks for the sake of one of
    /// them. None if it asks by itself.
    pub calls: Vec<CallInProgress>,
    /// The parameters, as the protocol has them. From outside.
    pub params: Value,
}

/// A call that a server works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallInProgress {
    /// The agent that calls.
    pub agent: String,
    /// The session that it belongs to.
    pub session: Option<String>,
}

/// Answers requests for completions (sampling). It is asked by every server, also by those that were not
/// told of it: whether one may have an answer is for the sampler to decide (T11).
pub trait Sampler: Send + Sync + 'static {
    /// Returns the result of `sampling/createMessage`. Dropping the future cancels the request.
    ///
    /// # Errors
    /// Why there is no answer, in words for the server.
    fn create_message(&self, request: SamplingRequest) -> BoxFuture<'_, Result<Value, String>>;
}

/// Who we are to servers, and whom they can reach through us.
#[derive(Clone, Default)]
pub struct Host {
    /// Somebody to ask; none where nobody is there.
    pub person: Option<Arc<dyn Person>>,
    /// What answers requests for completions; none where there is no model.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The folders of the session.
    pub roots: Vec<PathBuf>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (person, sampler) = (self.person.is_some(), self.sampler.is_some());
        let mut shown = f.debug_struct("Host");
        shown.field("person", &person).field("sampler", &sampler);
        shown.field("roots", &self.roots).finish()
    }
}

impl Host {
    /// What is told to a server about us: of sampling only where it is offered.
    pub(crate) fn config(&self, offers_sampling: bool) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        // A server that is told of no folders takes that for an answer, and may forget its own.
        if !self.roots.is_empty() {
            capabilities.roots = Some(RootsCapabilities::default());
        }
        if self.person.is_some() {
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
        let us = Implementation::new("openclaw", env!("CARGO_PKG_VERSION")).with_title("OpenClaw");
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
