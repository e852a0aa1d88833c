//! Who we are to servers, and whom they can reach through us.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability,
    Implementation, ProtocolVersion, RootsCapabilities, SamplingCapability,
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
    pub wanted: Wanted,
}

/// What a server wants of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Some values, as this JSON Schema describes them.
    Form(Value),
    /// A visit to an address, which must be shown in full, and not be looked at beforehand.
    Visit(String),
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
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
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// Somebody who lends servers a model (sampling).
pub trait Lender: Send + Sync + 'static {
    /// Completes what a server wants completed: the parameters of `sampling/createMessage`, and its
    /// result or why there is none.
    fn complete(&self, server: &str, params: Value) -> BoxFuture<'_, Result<Value, String>>;

    /// Whether this server may have it, if its entry allows it (`sampling`). One that may not is not told
    /// that there is a model to lend, and is declined if it asks all the same (T11).
    fn lends_to(&self, _server: &str) -> bool {
        true
    }
}

/// Who we are to servers, and whom they can reach through us.
#[derive(Clone, Default)]
pub struct Host {
    /// Somebody to ask; none where nobody is there.
    pub person: Option<Arc<dyn Person>>,
    /// Somebody who lends a model; mostly none.
    pub lender: Option<Arc<dyn Lender>>,
    /// The folders of the session.
    pub roots: Vec<PathBuf>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (person, lender) = (self.person.is_some(), self.lender.is_some());
        let mut shown = f.debug_struct("Host");
        shown.field("person", &person).field("lender", &lender).field("roots", &self.roots).finish()
    }
}

impl Host {
    /// What a server of this name can reach: a model only if it may have one.
    pub(crate) fn of_server(mut self, server: &str) -> Self {
        self.lender = self.lender.filter(|lender| lender.lends_to(server));
        self
    }

    /// The same for a server whose entry allows it a model, or does not.
    pub(crate) fn lending(mut self, is_allowed: bool) -> Self {
        self.lender = self.lender.filter(|_| is_allowed);
        self
    }

    /// What is told to servers about us.
    pub(crate) fn config(&self) -> ClientConfig {
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
        if self.lender.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let us = Implementation::new("openclaw", env!("CARGO_PKG_VERSION")).with_title("OpenClaw");
        ClientConfig::new(capabilities, us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
