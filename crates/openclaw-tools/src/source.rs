//! Callable tools, and the sources that provide them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_metrics::{CallSeries, Metrics};
use openclaw_trace::Span;
use serde_json::Value;
use tokio::time::Instant;

use crate::approval::{
    ApprovalContext, ApprovalExtent, ApprovalRule, ChangeTooLarge, Pin, ToolFingerprint,
};
use crate::arguments::Arguments;
use crate::context::CallOptions;
use crate::grant::AlwaysOption;
use crate::outcome::ToolOutcome;
use crate::policy::Decision;
use crate::schema::{LazyValidator, SchemaDialect, Unusable, provider_schema};
use crate::spec::ToolSpec;

/// A call that has passed all checks of the pipeline. Only the pipeline can create one, so only it
/// can execute a tool.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// Arguments that match the tool's schema.
    pub arguments: &'a Arguments<'a>,
    /// Agent; empty if there is none.
    pub agent: &'a str,
    /// Caller, for logs.
    pub who: &'a str,
    /// Session of the call.
    pub session: Option<&'a str>,
    /// How the call was approved, if it had to be.
    pub approval: Option<&'a ApprovalExtent>,
    /// Start of the call, without the wait for an approval. Read once, because reading the clock is
    /// a considerable part of a call.
    pub started: Instant,
    /// Options of the caller.
    pub options: CallOptions<'a>,
    /// The span of the call, whose context goes to another program with it.
    pub span: &'a Span,
}

/// Result of executing a call.
#[derive(Debug)]
pub enum Executed {
    /// The call has finished.
    Done(ToolOutcome),
    /// The tool has changed at its source, which has listed it again: the call is resolved and
    /// checked again, once. Holds the outcome in case the second attempt is stale as well.
    Stale(ToolOutcome),
}

/// Receives the result of a call that was started. If it is dropped, the call was cancelled.
pub type OnExecuted = Box<dyn FnOnce(Executed) + Send>;

/// A tool that can be executed without a future.
pub trait Ready: Send {
    /// Starts a call. Its result is passed to `done`, once, possibly before this returns; the call may
    /// stay in a buffer until [`StartedCall::flush`].
    fn start(self: Box<Self>, call: ToolCall<'_>, done: OnExecuted) -> StartedCall;
}

/// The connection that calls were started on.
pub trait CallLane: Send + Sync {
    /// Sends what is buffered.
    fn flush(&self);

    /// Cancels a call. Returns whether it was still in progress: its result is dropped then.
    fn cancel(&self, call: u64) -> bool;
}

/// A call that was started.
pub struct StartedCall {
    lane: Arc<dyn CallLane>,
    call: u64,
}

impl fmt::Debug for StartedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StartedCall").field(&self.call).finish()
    }
}

impl StartedCall {
    /// Creates the handle of a call with this number.
    pub fn new(lane: Arc<dyn CallLane>, call: u64) -> Self {
        Self { lane, call }
    }

    /// The connection, which must be flushed before the result is waited for.
    pub fn lane(&self) -> &Arc<dyn CallLane> {
        &self.lane
    }

    /// Cancels the call. Returns whether it was still in progress: its result is dropped then.
    pub fn cancel(&self) -> bool {
        self.lane.cancel(self.call)
    }
}

/// How the audit log names a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditName<'a> {
    /// Model-facing name; for a request that is not a tool call, the method.
    pub name: &'a str,
    /// Kind of source: `mcp`, `native`, `client`, `openclaw`.
    pub source: &'static str,
    /// MCP server, if any.
    pub server: &'a str,
    /// Name of the tool on the server.
    pub raw_tool: &'a str,
}

/// A snapshot of a tool at lookup time. Everything independent of a call was decided when its
/// source listed it.
///
/// Only the pipeline calls [`Tool::execute`] or [`Ready::start`], after all checks.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns the description for agents.
    fn spec(&self) -> &ToolSpec;

    /// Returns the schema of its arguments in a provider's dialect (B3).
    ///
    /// # Errors
    /// If it cannot be offered to models of that provider.
    fn schema_for(&self, dialect: SchemaDialect) -> Result<Arc<Value>, Unusable> {
        provider_schema(&self.spec().input_schema, dialect).map(Arc::new)
    }

    /// Returns whether its description and schema must not reach a model: they have changed, and the
    /// user has not approved that yet.
    fn is_withheld(&self) -> bool {
        false
    }

    /// Returns whether models always see it, even where most tools must be searched for.
    fn is_essential(&self) -> bool {
        false
    }

    /// Returns how the audit log names it.
    fn origin(&self) -> AuditName<'_>;

    /// Returns where its calls are counted, if it has looked that up before. Frequently called tools
    /// do.
    fn known_series(&self) -> Option<&CallSeries> {
        None
    }

    /// Returns where its calls are counted.
    fn series(&self, metrics: &Metrics) -> Option<Arc<CallSeries>> {
        let AuditName { name, source, server, .. } = self.origin();
        metrics.calls(source, server, name)
    }

    /// Returns whether the policy allows it.
    fn decision(&self) -> &Decision {
        &Decision::Allowed
    }

    /// Returns whether the policy allows a call with these arguments, for a tool that serves several
    /// servers.
    fn decision_on(&self, _: &Arguments<'_>) -> Decision {
        Decision::Allowed
    }

    /// Returns why it cannot be called, if so.
    fn flaw(&self) -> Option<String> {
        None
    }

    /// Returns what was seen and approved before: looked up once per call.
    fn pin(&self, _: ApprovalContext<'_>) -> Pin {
        Pin::New
    }

    /// Returns which calls need an approval, where that depends on the arguments.
    fn rule(&self, arguments: &Arguments<'_>) -> ApprovalRule;

    /// Returns the approvals for later calls that the user may choose, the default first. If there
    /// are none, the user can approve this call only.
    fn always(&self, _: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        Vec::new()
    }

    /// Returns what has changed since the tool was seen or approved, as lines that begin with `+` or
    /// `-`; none if that is not known. May read a file.
    ///
    /// # Errors
    /// If there are too many for a question.
    fn changes(&self) -> Result<Vec<String>, ChangeTooLarge> {
        Ok(Vec::new())
    }

    /// Stores an approval.
    fn keep(&self, _approval: &ApprovalExtent, _pin: Pin, _: ApprovalContext<'_>) {}

    /// Returns a hash of its definition, if approvals are bound to that.
    fn fingerprint(&self) -> Option<ToolFingerprint> {
        None
    }

    /// Returns whether its definition is still current: checked after the user took time to decide.
    fn is_current(&self) -> bool {
        true
    }

    /// Returns the validator of its arguments.
    fn validator(&self) -> &LazyValidator;

    /// Counts a call against its rate limits.
    ///
    /// # Errors
    /// If a limit is exceeded: a message that says when to retry.
    fn limit(&self, _now: Instant, _: CallOptions<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Returns a way to execute a call without a future, if there is nothing to wait for but its
    /// result. Counts nothing, and has no effect.
    fn ready(self: Arc<Self>, _: CallOptions<'_>) -> Option<Box<dyn Ready>> {
        None
    }

    /// Executes a call. Failures are outcomes. Dropping the future cancels the call.
    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed>;
}

/// A source of tools: MCP servers, the program itself, clients that lend tools.
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// Returns the tools that may be used now, sorted by name.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the tool of a name, even if the policy denies it: the pipeline reports that.
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>>;
}

/// A source without tools.
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

/// Several sources combined. If two tools have the same name, that of the earlier source is used.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Vec<Arc<dyn ToolSource>>);

impl Toolbox {
    /// Combines sources.
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
