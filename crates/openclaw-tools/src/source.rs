//! Tools that can be called, and the sources that they come from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::approval::{Approval, ApprovalRule, Fingerprint, Pin};
use crate::outcome::ToolOutcome;
use crate::pipeline::{Arguments, CallOptions};
use crate::policy::Decision;
use crate::schema::{Dialect, LazyValidator, Unusable, provider_schema};
use crate::spec::ToolSpec;

/// A call that has passed all checks of the pipeline. Only the pipeline can create one, so only it can execute a tool.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// The arguments: they fit the tool's schema.
    pub arguments: &'a Arguments<'a>,
    /// The agent; empty if there is none.
    pub agent: &'a str,
    /// Who calls, for logs.
    pub who: &'a str,
    /// The session that it belongs to.
    pub session: Option<&'a str>,
    /// How the call was approved, if it had to be.
    pub approval: Option<Approval>,
    /// When it began, not counting an approval: read once, because a look at the clock is a good part of a call.
    pub started: Instant,
    /// What the caller wants besides.
    pub options: CallOptions<'a>,
}

/// What became of a call that was carried out.
#[derive(Debug)]
pub enum Executed {
    /// It is over.
    Done(ToolOutcome),
    /// The tool has changed at its source, which has listed it anew: the call is looked up and checked again, once.
    /// What it came to, should the second try end the same way.
    Stale(ToolOutcome),
}

/// How the audit log names a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin<'a> {
    /// Its final name; for a request that is no tool, the method.
    pub name: &'a str,
    /// The kind of source: `mcp`, `native`, `client`, `openclaw`.
    pub source: &'static str,
    /// The server, for a tool of an MCP server.
    pub server: &'a str,
    /// What the server calls it.
    pub raw_tool: &'a str,
}

/// A tool as it was when it was looked up. Everything that does not depend on a call was decided when its source listed it.
///
/// Only the pipeline calls [`Tool::execute`], after all checks.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What an agent is told about it.
    fn spec(&self) -> &ToolSpec;

    /// The schema of its arguments as a provider of models takes it (B3).
    ///
    /// # Errors
    /// Why it cannot be offered to such a model.
    fn schema_for(&self, dialect: Dialect) -> Result<Arc<Value>, Unusable> {
        provider_schema(&self.spec().input_schema, dialect).map(Arc::new)
    }

    /// Whether a model is shown it even where most tools must be searched for.
    fn is_essential(&self) -> bool {
        false
    }

    /// How the audit log names it.
    fn origin(&self) -> Origin<'_>;

    /// Whether the policy lets it be used.
    fn decision(&self) -> &Decision {
        &Decision::Allowed
    }

    /// Why nobody can call it, if so.
    fn flaw(&self) -> Option<String> {
        None
    }

    /// What was approved of it before: looked up once for each call.
    fn pin(&self, _now: Instant) -> Pin {
        Pin::New
    }

    /// Which calls need an approval, where that depends on the arguments.
    fn rule(&self, arguments: &Arguments<'_>) -> ApprovalRule;

    /// Remembers an approval.
    fn keep(&self, _approval: Approval, _pin: Pin) {}

    /// What it says about itself, in short, where approvals are bound to that.
    fn fingerprint(&self) -> Option<Fingerprint> {
        None
    }

    /// Whether its source still describes it the same way: asked after a user has taken time to decide.
    fn is_current(&self) -> bool {
        true
    }

    /// Checks arguments.
    fn validator(&self) -> &LazyValidator;

    /// Takes a call out of what its limits leave.
    ///
    /// # Errors
    /// If nothing is left: says when to try again.
    fn limit(&self, _now: Instant) -> Result<(), String> {
        Ok(())
    }

    /// Carries out a call. Whatever goes wrong is an outcome. Dropping the future cancels the call.
    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed>;
}

/// A source of tools: MCP servers, the program itself, clients that lend tools.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// The tools that may be used, as of now, in the order of their names.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// The tool of a name, also one that the policy denies: the pipeline says so.
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>>;
}

/// No tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

impl ToolSource for NoTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    fn find(&self, _: &str) -> Option<Arc<dyn Tool>> {
        None
    }
}

/// Several sources as one. Of two tools with one name the one of the earlier source counts.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Vec<Arc<dyn ToolSource>>);

impl Toolbox {
    /// Puts sources together.
    pub fn new(sources: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Self {
        Self(sources.into_iter().collect())
    }
}

impl ToolSource for Toolbox {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = BTreeMap::new();
        for tool in self.0.iter().flat_map(|source| source.tools()) {
            all.entry(tool.spec().name.clone()).or_insert(tool);
        }
        all.into_values().collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.iter().find_map(|source| source.find(name))
    }
}
