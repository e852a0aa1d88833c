//! The tools of an agent's servers as a [`ToolSource`]: the pipeline does not know about MCP.

use std::sync::Arc;

use openclaw_tools::{Decision, Tool, ToolSource};

use crate::call::resource_tool::ResourceTool;
use crate::catalogue::CatalogueTool;
use crate::catalogue::naming::RESOURCE_TOOL;
use crate::fleet::Fleet;
use crate::fleet::agent::AgentTools;

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

impl AgentTools {
    /// Returns the tool for resources; `None` if no server has any.
    pub(super) fn resource_tool(&self) -> Option<ResourceTool> {
        ResourceTool::new(self.members(), self.policy(), &self.services)
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
        if name != RESOURCE_TOOL {
            return None;
        }
        Some(Arc::new(self.resource_tool()?))
    }
}
