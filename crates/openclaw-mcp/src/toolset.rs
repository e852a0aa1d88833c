//! The tools of an agent's servers, as an agent knows tools: it never learns that they are MCP's.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_config::Approval as Rule;
use openclaw_tools::schema::{Dialect, Unusable};
use openclaw_tools::{
    Effect, Failure, Standing, Tool, ToolCall, ToolOutcome, ToolSet, ToolSpec, Why,
};
use serde_json::Value;

use crate::agent::AgentTools;
use crate::bridge::{Approved, Call};
use crate::catalogue::CatalogueTool;
use crate::fleet::Fleet;
use crate::pins::Pin;
use crate::resource_tool;

/// The tools of one agent's servers. They follow the configuration: after a change, the next look sees
/// the servers of then.
#[derive(Debug, Clone)]
pub struct ServerTools {
    fleet: Arc<Fleet>,
    agent: String,
}

impl ServerTools {
    /// The tools of an agent; none if there is no such agent.
    pub fn new(fleet: Arc<Fleet>, agent: impl Into<String>) -> Self {
        Self { fleet, agent: agent.into() }
    }
}

impl ToolSet for ServerTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let Some(agent) = self.fleet.agent(&self.agent) else { return Vec::new() };
        let catalogue = agent.catalogue();
        let of_servers = catalogue.allowed().map(|tool| {
            let tool = ServerTool { agent: Arc::clone(&agent), tool: Arc::clone(tool) };
            Arc::new(tool) as Arc<dyn Tool>
        });
        let resources = resources(&agent).into_iter();
        let mut tools: Vec<_> = of_servers.chain(resources).collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let agent = self.fleet.agent(&self.agent)?;
        if name == resource_tool::NAME {
            return resources(&agent);
        }
        let tool = Arc::clone(agent.catalogue().get(name).filter(|tool| tool.is_allowed())?);
        Some(Arc::new(ServerTool { agent, tool }))
    }
}

impl AgentTools {
    /// Whether somebody must agree to calls of a tool (B9).
    pub fn standing(&self, tool: &CatalogueTool) -> Standing {
        let (rule, effect) = (tool.server().config().treatment.approval, tool.spec.effect);
        let Some(pins) = &self.office.pins else {
            return standing(rule, effect, Known::Nothing);
        };
        let (server, name) = (tool.server().name().as_str(), &tool.listed().name);
        let fingerprint = tool.fingerprint();
        let known = match pins.check(server, name, fingerprint) {
            Pin::Changed { .. } => Known::Changed,
            Pin::Same if pins.is_free(server, name, fingerprint) => Known::Free,
            Pin::Same | Pin::New => Known::Nothing,
        };
        standing(rule, effect, known)
    }
}

/// A tool of a server, as it was when somebody looked.
#[derive(Debug)]
struct ServerTool {
    agent: Arc<AgentTools>,
    tool: Arc<CatalogueTool>,
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn schema_for(&self, dialect: Dialect) -> Result<Arc<Value>, Unusable> {
        self.tool.schema_for(dialect).cloned().map_err(Clone::clone)
    }

    fn standing(&self) -> Standing {
        self.agent.standing(&self.tool)
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome> {
        if call.approval.is_none() && self.standing() != Standing::Free {
            return Box::pin(std::future::ready(not_approved()));
        }
        let fingerprint = *self.tool.fingerprint();
        let approved = call.approval.map(|how| Approved { fingerprint, how });
        Box::pin(self.agent.call(Call {
            name: self.tool.spec.name.as_str(),
            arguments: call.arguments,
            who: call.who,
            session: call.session,
            approved,
        }))
    }
}

/// What people have said about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing that would free it.
    Nothing,
    /// It may be called without asking.
    Free,
    /// They have approved something else.
    Changed,
}

/// Whether somebody must agree to a call (B9, B13).
fn standing(rule: Rule, effect: Effect, known: Known) -> Standing {
    match (rule, known) {
        (_, Known::Changed) => Standing::Ask(Why::Changed),
        (Rule::Never, _) | (Rule::Auto, Known::Free) => Standing::Free,
        (Rule::Auto, Known::Nothing) if effect == Effect::ReadOnly => Standing::Free,
        (Rule::Auto, Known::Nothing) => Standing::Ask(Why::MayChange),
        (Rule::Always, _) => Standing::Ask(Why::EachTime),
    }
}

/// The tool for resources. It only looks.
#[derive(Debug)]
struct ResourceTool {
    agent: Arc<AgentTools>,
    spec: ToolSpec,
}

fn resources(agent: &Arc<AgentTools>) -> Option<Arc<dyn Tool>> {
    let spec = agent.resource_tool()?;
    Some(Arc::new(ResourceTool { agent: Arc::clone(agent), spec }))
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn standing(&self) -> Standing {
        Standing::Free
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(self.agent.call(Call {
            name: resource_tool::NAME,
            arguments: call.arguments,
            who: call.who,
            session: call.session,
            approved: None,
        }))
    }
}

fn not_approved() -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(
        "This call is not allowed: somebody must approve it first. Nothing was called.",
    );
    outcome.details.failure = Some(Failure::Denied);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_only_looks_runs_unasked_unless_every_call_is_asked_about() {
        assert_eq!(standing(Rule::Auto, Effect::ReadOnly, Known::Nothing), Standing::Free);
        assert_eq!(standing(Rule::Never, Effect::Destructive, Known::Nothing), Standing::Free);
        let asked = standing(Rule::Always, Effect::ReadOnly, Known::Free);
        assert_eq!(asked, Standing::Ask(Why::EachTime));
    }

    #[test]
    fn what_may_change_something_is_asked_about_until_it_is_approved_for_good() {
        for effect in [Effect::Unknown, Effect::Destructive] {
            let asked = standing(Rule::Auto, effect, Known::Nothing);
            assert_eq!(asked, Standing::Ask(Why::MayChange));
            assert_eq!(standing(Rule::Auto, effect, Known::Free), Standing::Free);
        }
    }

    #[test]
    fn a_changed_tool_is_asked_about_whatever_the_rule() {
        for rule in [Rule::Auto, Rule::Always, Rule::Never] {
            let asked = standing(rule, Effect::ReadOnly, Known::Changed);
            assert_eq!(asked, Standing::Ask(Why::Changed));
        }
    }
}
