//! The tools of an agent's servers as a [`ToolSource`]: the pipeline does not know about MCP.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_content::{Untrusted, clean_line};
use openclaw_metrics::CallSeries;
use openclaw_tools::schema::{LazyValidator, SchemaDialect, Unusable};
use openclaw_tools::{
    AlwaysOption, ApprovalContext, ApprovalExtent, ApprovalRule, Arguments, AuditName, CallOptions,
    ChangeTooLarge, Decision, Executed, GrantRule, Pin, Ready, Tool, ToolCall, ToolFingerprint,
    ToolSource, ToolSpec,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::call::bridge;
use crate::call::direct::DirectCall;
use crate::call::resource_tool;
use crate::fleet::Fleet;
use crate::fleet::agent::AgentTools;
use crate::fleet::catalogue::CatalogueTool;
use crate::store::pins::{self, ServerKey};

/// Maximum length of a tool's name in a command that is shown, in characters.
const MAX_NAME: usize = 100;

/// The source name of MCP tools, resources and prompts in the audit log.
pub(crate) const SOURCE: &str = "mcp";

/// The tools of one agent's servers. After a configuration change, the next lookup uses the new
/// servers.
#[derive(Debug, Clone)]
pub struct ServerTools {
    fleet: Arc<Fleet>,
    agent: String,
}

impl ServerTools {
    /// The tools of an agent; empty if there is no such agent.
    pub fn new(fleet: Arc<Fleet>, agent: impl Into<String>) -> Self {
        Self { fleet, agent: agent.into() }
    }
}

impl ToolSource for ServerTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.fleet.agent(&self.agent).map(|agent| agent.tools()).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let agent = self.fleet.agent(&self.agent)?;
        // Tools for pages are unknown to the agent's model.
        let is_for_model = |tool: &Arc<CatalogueTool>| tool.app.is_for_model;
        agent.catalogue().get(name).is_none_or(is_for_model).then(|| agent.find(name))?
    }
}

impl ToolSource for AgentTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let catalogue = self.catalogue();
        let of_servers = catalogue
            .allowed()
            .filter(|tool| tool.app.is_for_model)
            .map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
        let resources = self.resource_tool();
        let resources = resources.filter(|tool| *tool.decision() == Decision::Allowed);
        let resources = resources.map(|tool| Arc::new(tool) as Arc<dyn Tool>);
        let mut tools: Vec<_> = of_servers.chain(resources).collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        if let Some(tool) = self.catalogue().get(name) {
            return Some(Arc::clone(tool) as Arc<dyn Tool>);
        }
        if name != resource_tool::NAME {
            return None;
        }
        Some(Arc::new(self.resource_tool()?))
    }
}

impl CatalogueTool {
    /// Whether its description or schema has changed since it was first seen or approved (B13).
    pub fn is_changed(&self) -> bool {
        self.pinned(Instant::now(), None) == Pin::Changed
    }

    fn pinned(&self, now: Instant, arguments: Option<&Arguments<'_>>) -> Pin {
        let Some(pins) = &self.services.pins else { return Pin::New };
        pins.check(&self.member.key, &self.listed.name, self.fingerprint(), now, arguments)
    }
}

impl Tool for CatalogueTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn schema_for(&self, dialect: SchemaDialect) -> Result<Arc<Value>, Unusable> {
        Self::schema_for(self, dialect).cloned().map_err(Clone::clone)
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName {
            name: self.spec.name.as_str(),
            source: SOURCE,
            server: self.server().name().as_str(),
            raw_tool: &self.listed.name,
        }
    }

    fn known_series(&self) -> Option<&CallSeries> {
        Self::series(self).map(AsRef::as_ref)
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn is_withheld(&self) -> bool {
        self.is_changed()
    }

    fn flaw(&self) -> Option<String> {
        Self::flaw(self).map(ToString::to_string)
    }

    fn pin(&self, about: ApprovalContext<'_>) -> Pin {
        self.pinned(about.now, Some(about.arguments))
    }

    fn rule(&self, _: &Arguments<'_>) -> ApprovalRule {
        self.member.rule()
    }

    /// Without a store, an approval does not outlive the call.
    fn always(&self, about: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        if self.services.pins.is_none() {
            return Vec::new();
        }
        let ServerKey { agent, server, .. } = &self.member.key;
        let option = |grant: GrantRule| {
            let what = grant.words(self.spec.name.as_str());
            let words = format!(
                "always allow {what} of MCP server {server} for agent {agent}, until the tool or the \
                 server changes",
            );
            AlwaysOption { grant, words }
        };
        let by_argument = GrantRule::by_argument(about.arguments);
        [GrantRule::Tool].into_iter().chain(by_argument).map(option).collect()
    }

    fn changes(&self) -> Result<Vec<String>, ChangeTooLarge> {
        let Some(pins) = &self.services.pins else { return Ok(Vec::new()) };
        let changes = pins.changes(&self.member.key, &self.listed);
        changes.ok_or_else(|| {
            let name = clean_line(Untrusted::new(&self.listed.name), MAX_NAME);
            let server = &self.member.key.server;
            let review = format!(
                "review it with `openclaw mcp tools {server} {name} --raw`, then run \
                 `openclaw mcp call {server} {name} --approve`"
            );
            ChangeTooLarge { review }
        })
    }

    /// Returns without waiting for the write, which may take longer than the call; shutdown waits
    /// for it.
    fn keep(&self, approval: &ApprovalExtent, pin: Pin, _: ApprovalContext<'_>) {
        let Some(pins) = &self.services.pins else { return };
        let always = match approval {
            ApprovalExtent::Always(grant) => Some(grant.clone()),
            // A new tool was recorded when it was listed.
            ApprovalExtent::Once if pin != Pin::Changed => return,
            ApprovalExtent::Once => None,
        };
        pins.keep(&self.member.key, &self.listed.name, *Self::fingerprint(self), always);
        pins.keep_definition(&self.member.key, &self.listed);
    }

    fn fingerprint(&self) -> Option<ToolFingerprint> {
        Some(*Self::fingerprint(self))
    }

    fn is_current(&self) -> bool {
        let inventory = self.server().cache().inventory();
        let now = inventory.tools.iter().find(|tool| tool.name == self.listed.name);
        now.is_some_and(|now| {
            Arc::ptr_eq(now, &self.listed) || pins::fingerprint(now) == *Self::fingerprint(self)
        })
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn limit(&self, now: Instant, options: CallOptions<'_>) -> Result<(), String> {
        bridge::check_limit(self.server(), now, options)
    }

    fn ready(self: Arc<Self>, options: CallOptions<'_>) -> Option<Box<dyn Ready>> {
        DirectCall::prepare(self, options).map(|call| call as Box<dyn Ready>)
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(bridge::call(self, call))
    }
}
