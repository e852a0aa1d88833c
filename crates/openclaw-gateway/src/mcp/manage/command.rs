//! `/mcp …` in a chat.

use std::sync::Arc;

use openclaw_config::AgentId;
use openclaw_mcp::server::status::ServerStatus;
use openclaw_protocol::Method;
use openclaw_protocol::agents::{CommandArg, CommandArgKind, CommandChoice};
use openclaw_tools::{Decision, ToolSource};

use super::verbs::Order;
use super::{NAME, VERBS, execute, problem_json, problem_text};
use crate::mcp::servers::McpServers;

/// What follows `/mcp`.
#[derive(Debug)]
pub(crate) enum McpChatCommand {
    /// An order.
    Order(Order),
    /// The help text that was asked for, or an error.
    Text(String),
}

impl McpChatCommand {
    pub(crate) fn read(text: &str) -> Self {
        match Order::read(text) {
            Ok(order) => Self::Order(order),
            Err(text) => Self::Text(text),
        }
    }

    /// Whether an agent with these tools may use the command: if it may use the tool.
    pub(crate) fn is_allowed(tools: &dyn ToolSource) -> bool {
        tools.find(NAME).is_some_and(|tool| *tool.decision() == Decision::Allowed)
    }

    /// The method that the command stands for.
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Order(order) => order.verb.method(),
            Self::Text(_) => Method::CommandsList,
        }
    }

    /// The command as it is named in errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Order(order) => format!("/mcp {}", order.verb.name()),
            Self::Text(_) => "/mcp".to_owned(),
        }
    }

    /// Executes the command for a caller with these scopes.
    pub(crate) async fn execute(
        self,
        servers: &Arc<McpServers>,
        agent: &AgentId,
        tools: &dyn ToolSource,
        scopes: &[String],
    ) -> String {
        let order = match self {
            Self::Text(text) => return text,
            Self::Order(order) => order,
        };
        if !Self::is_allowed(tools) {
            return format!("Not allowed: the configuration denies `{NAME}`, or MCP is disabled.");
        }
        let done = Box::pin(execute(servers, agent, &order.verb, scopes)).await;
        match (done, order.json) {
            (Ok(done), false) => done.text(),
            (Ok(done), true) => done.json(),
            (Err(problem), false) => problem_text(&problem),
            (Err(problem), true) => problem_json(&problem),
        }
    }

    /// The arguments of the command, for clients that complete them.
    pub(crate) fn arguments(servers: &[ServerStatus]) -> Vec<CommandArg> {
        let choice = |value: &str, label: &str| CommandChoice {
            value: value.to_owned(),
            label: label.to_owned(),
        };
        // Both may be omitted: then the servers are listed.
        let argument = |name: &str, description: &str, choices, dynamic| CommandArg {
            name: name.to_owned(),
            description: description.to_owned(),
            kind: CommandArgKind::String,
            required: Some(false),
            choices: Some(choices),
            dynamic: Some(dynamic),
        };
        let verbs = VERBS.iter().map(|(verb, _, about)| choice(verb, about)).collect();
        let servers = servers.iter().map(|it| choice(&it.name, it.state.name())).collect();
        vec![
            argument("verb", "The action", verbs, false),
            argument("server", "The server's name, or a URL", servers, true),
        ]
    }
}
