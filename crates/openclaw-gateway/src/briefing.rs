//! The briefing an agent gets before each turn: its identity, its servers, news about them, and the
//! resources configured for every session (B14, M3, L4).

use std::sync::Arc;

use openclaw_content::Text;
use openclaw_mcp::server::status::ServerStatus;

use crate::agents::AgentRuntime;
use crate::context;
use crate::gateway::Gateway;

/// What an agent should know about MCP servers; included only if there are any (M3).
const SKILL: &str = include_str!("../../../skills/mcp/SKILL.md");
/// Maximum number of servers listed.
const MAX_SERVERS: usize = 100;

/// The agent's own part of the system prompt.
pub(crate) fn instructions(service: &AgentRuntime) -> String {
    let words = service.config.system_prompt.as_ref().map_or("", |words| words.as_str());
    format!(
        "Your workspace is {}. File tools resolve relative paths against it.\n\n{words}",
        service.workspace.display()
    )
}

/// The briefing for this turn.
pub(crate) async fn of(gateway: &Arc<Gateway>, service: &AgentRuntime) -> Vec<Text> {
    let id = service.config.id.as_str();
    let Some(tools) = gateway.fleet.agent(id) else { return Vec::new() };
    let statuses = tools.statuses();
    if statuses.is_empty() {
        return Vec::new();
    }
    let mut briefing =
        vec![Text::ours(without_front_matter(SKILL)), Text::ours(servers(&statuses))];
    let notices = tools.take_notices();
    if !notices.is_empty() {
        briefing.push(Text::ours(notices.join("\n")));
    }
    briefing.extend(context::of(gateway, service).await);
    briefing
}

/// Lists the servers, their tools and their states. Names come from the configuration.
fn servers(statuses: &[ServerStatus]) -> String {
    let mut text = String::from("<available-mcp-servers>\n");
    for status in statuses.iter().take(MAX_SERVERS) {
        let (name, state) = (&status.name, status.state.name());
        text.push_str(&format!(
            "  <server name=\"{name}\" tools=\"{}\" status=\"{state}\"/>\n",
            status.tools
        ));
    }
    if statuses.len() > MAX_SERVERS {
        text.push_str(&format!("  and {} more\n", statuses.len() - MAX_SERVERS));
    }
    text.push_str("</available-mcp-servers>");
    text
}

/// Strips the front matter, which is meant for programs.
fn without_front_matter(text: &str) -> &str {
    let rest = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    rest.map_or(text, |(_, body)| body).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skill_has_front_matter_that_the_model_does_not_see() {
        assert!(SKILL.starts_with("---\nname: mcp\n"));
        let body = without_front_matter(SKILL);
        assert!(!body.contains("---") && body.contains("mcp_manage"), "{body}");
    }
}
