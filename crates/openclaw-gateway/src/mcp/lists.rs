//! Listings of servers, tools, resources and prompts.

use std::sync::Arc;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::inventory::describe;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_mcp_client::listing::ListedTool;
use openclaw_protocol::mcp::{
    DefinitionRest, Effect, LeftOut, PromptsResult, ResourcesResult, ServersResult, Tool,
    ToolsResult,
};
use openclaw_tools::{self as tools, Decision};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::gather::GatheredServers;

/// Maximum characters of a name from outside.
const NAME_CHARS: usize = 64;

/// Lists all servers of an agent, including those that do not run, with these statuses.
pub(super) fn servers(agent: &AgentTools, statuses: &[ServerStatus]) -> ServersResult {
    let is_well =
        |status: &ServerStatus| matches!(status.state, ServerState::Ready | ServerState::Idle);
    let missing = statuses.iter().filter(|status| status.required && !is_well(status));
    ServersResult {
        agent: agent.id().to_string(),
        ready: statuses.iter().filter(|status| is_well(status)).count() as u64,
        missing: missing.map(|status| status.name.clone()).collect(),
        servers: statuses.iter().filter_map(|status| to_raw_value(status).ok()).collect(),
    }
}

/// Which details of tools to include.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ToolsWanted {
    /// Include the input schema.
    pub(super) schema: bool,
    /// Include everything as the server sends it, instead of sanitized and truncated as for a model.
    pub(super) raw: bool,
}

/// Lists the tools of these servers, and the ones that were skipped.
pub(super) fn tools(
    agent: &AgentTools,
    from: &GatheredServers,
    wanted: ToolsWanted,
) -> ToolsResult {
    let catalogue = agent.catalogue();
    let is_wanted = |tool: &CatalogueTool| {
        from.servers.iter().any(|server| server.name() == tool.server().name())
    };
    let tools = catalogue.all().iter().filter(|tool| is_wanted(tool));
    let left_out = from.servers.iter().flat_map(left_out);
    ToolsResult {
        tools: tools.map(|tool| self::tool(tool, wanted)).collect(),
        left_out: left_out.collect(),
        missing: from.missing.clone(),
    }
}

fn tool(tool: &CatalogueTool, wanted: ToolsWanted) -> Tool {
    let (listed, is_changed) = (tool.listed(), tool.is_changed());
    let schema = || {
        let schema = if wanted.raw { &listed.input_schema } else { &tool.spec.input_schema };
        Value::Object(Map::clone(schema))
    };
    Tool {
        name: tool.spec.name.to_string(),
        server: tool.server().name().to_string(),
        tool: listed.name.clone(),
        title: match wanted.raw {
            true => listed.title.clone(),
            false => listed.title.as_deref().map(outside),
        },
        description: match wanted.raw {
            true => listed.description.clone(),
            false => describe::own_description(listed),
        },
        effect: match tool.spec.effect {
            tools::ToolEffect::ReadOnly => Effect::ReadOnly,
            tools::ToolEffect::Destructive => Effect::Destructive,
            tools::ToolEffect::Unknown => Effect::Unknown,
        },
        denied_by: match &tool.decision {
            Decision::Denied { by } => Some(by.to_string()),
            Decision::Allowed => None,
        },
        changed: is_changed,
        changes: if is_changed && wanted.schema { changes(tool) } else { Vec::new() },
        fingerprint: tool.fingerprint().to_string(),
        unusable: tool.flaw().map(ToString::to_string),
        input_schema: (wanted.schema || wanted.raw).then(schema),
        rest: if wanted.raw { rest(listed) } else { DefinitionRest::default() },
    }
}

/// How a tool has changed, in lines: none if there are too many to show.
fn changes(tool: &CatalogueTool) -> Vec<String> {
    let changes = tools::Tool::changes(tool).unwrap_or_default().into_iter();
    changes.map(|line| clean_line(Untrusted::new(&line), usize::MAX)).collect()
}

/// The members of a definition that we do not interpret, or only in part.
fn rest(listed: &ListedTool) -> DefinitionRest {
    let omitted_members = listed.other.omitted();
    let mut rest = DefinitionRest { omitted_members, ..DefinitionRest::default() };
    for (name, value) in listed.other.iter() {
        // What is nested too deeply is shown as text.
        let value = serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().into());
        let known = match name {
            "annotations" => &mut rest.annotations,
            "outputSchema" => &mut rest.output_schema,
            "icons" => &mut rest.icons,
            "execution" => &mut rest.execution,
            "_meta" => &mut rest.meta,
            _ => {
                rest.other.insert(name.to_owned(), value);
                continue;
            }
        };
        *known = Some(value);
    }
    rest
}

/// The tools that a server lists but that cannot be used.
fn left_out(server: &Arc<Server>) -> Vec<LeftOut> {
    let inventory = server.cache().inventory();
    let each = inventory.left_out.iter().map(|it| LeftOut {
        server: server.name().to_string(),
        name: outside(&it.name),
        reason: it.reason.clone(),
    });
    each.collect()
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

/// Lists the resources of these servers.
pub(super) fn resources(from: &GatheredServers) -> ResourcesResult {
    let each = |listed: fn(&Server) -> Vec<Value>| -> Vec<Box<RawValue>> {
        from.servers.iter().flat_map(|server| owned(server, listed(server))).collect()
    };
    ResourcesResult {
        resources: each(|server| values(&server.cache().inventory().resources)),
        templates: each(|server| values(&server.cache().inventory().templates)),
        skills: each(|server| values(&server.cache().inventory().skills)),
        missing: from.missing.clone(),
    }
}

/// Lists the prompts of these servers.
pub(super) fn prompts(from: &GatheredServers) -> PromptsResult {
    let each = from
        .servers
        .iter()
        .flat_map(|server| owned(server, values(&server.cache().inventory().prompts)));
    PromptsResult { prompts: each.collect(), missing: from.missing.clone() }
}

/// Adds the server's name to each entry.
fn owned(server: &Server, entries: Vec<Value>) -> Vec<Box<RawValue>> {
    let name = server.name().to_string();
    let each = entries.into_iter().filter_map(|mut entry| {
        entry["server"] = json!(name);
        to_raw_value(&entry).ok()
    });
    each.collect()
}

fn values<T: Serialize>(entries: &[T]) -> Vec<Value> {
    entries.iter().filter_map(|entry| serde_json::to_value(entry).ok()).collect()
}

/// Lists a single tool.
pub(super) fn one_tool(tool: &CatalogueTool, wanted: ToolsWanted) -> ToolsResult {
    let tools = vec![self::tool(tool, wanted)];
    ToolsResult { tools, left_out: Vec::new(), missing: Vec::new() }
}
