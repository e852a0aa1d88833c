//! A verb's way to the servers: one implementation, whether the gateway runs elsewhere or in this process.

use std::path::Path;
use std::sync::Arc;

use openclaw_config::{AgentConfig, Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_mcp::fleet::StartMode;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::{AskError, Rpc, Surface, ask, detail};

use super::screen::{Screen, Starting};
use super::terminal::Terminal;
use crate::cli::{AgentArgs, BesideArgs};
use crate::commands::link::{self, Need, Role, Servers, with_link};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

/// What a verb asks, and what it shows meanwhile.
pub(super) struct Shell<'a> {
    pub(super) surface: &'a dyn Surface,
    /// The gateway, if it is in this process.
    gateway: Option<&'a Arc<Gateway>>,
    agent: Option<&'a str>,
    pub(super) screen: Screen,
    /// Where the user can be asked, if there is one.
    pub(super) terminal: Option<Terminal>,
}

/// What most verbs need: servers of an agent that start when they are used, and so no other does.
pub(super) fn servers_of(whose: &AgentArgs, by: &BesideArgs, edge: &Edge) -> Servers {
    Servers {
        agent: whose.agent.clone(),
        start: StartMode::OnUse,
        calls: false,
        role: if edge.has_person() { Role::Chatting } else { Role::Person },
        alone: by.no_gateway,
    }
}

/// Runs a verb, and ends what was started for it.
pub(super) fn with_shell(
    servers: Servers,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Shell<'_>, &mut Output) -> CommandResult,
) -> CommandResult {
    let agent = servers.agent.clone();
    let screen = Screen::new(edge.can_draw() && !output.json);
    let terminal = edge.has_person().then(|| Terminal::new(screen.clone()));
    with_link(&Need::Servers(servers), flag, edge, output, async |link, signals, output| {
        let (surface, gateway, agent) = (&*link.surface, link.local.as_ref(), agent.as_deref());
        let shell = Shell { surface, gateway, agent, screen, terminal };
        let result = tokio::select! {
            result = work(&shell, output) => result,
            // What the verb asked for is cancelled with it.
            _ = signals.next() => Err(CommandError::Interrupted),
        };
        shell.screen.clear();
        result
    })
}

/// Servers that a command looks at itself, whether a gateway runs or not.
pub(super) struct Own<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) tools: Arc<AgentTools>,
    /// The agent, as it is configured.
    pub(super) config: &'a AgentConfig,
    surface: &'a dyn Surface,
    screen: Screen,
}

impl Own<'_> {
    /// Waits for something that servers are started for, and shows them meanwhile.
    pub(super) async fn watching<T>(&self, work: impl Future<Output = T>) -> T {
        let agent = Some(self.config.id.as_str());
        self.screen.show_while(Starting::new(self.surface, agent, None), work).await
    }
}

/// Runs something with servers of its own, which start when they are used, and ends them.
pub(super) fn with_own_servers(
    config: &Config,
    agent: &AgentConfig,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Own<'_>, &mut Output) -> CommandResult,
) -> CommandResult {
    let servers = Servers {
        agent: Some(agent.id.to_string()),
        start: StartMode::OnUse,
        calls: false,
        role: Role::Person,
        alone: true,
    };
    let screen = Screen::new(edge.can_draw() && !output.json);
    link::with_own_servers(config, servers, paths, edge, output, async |link, signals, output| {
        let gateway = link.local.as_ref();
        let tools = gateway.and_then(|gateway| gateway.fleet().agent(agent.id.as_str()));
        let (Some(gateway), Some(tools)) = (gateway, tools) else {
            return Err(CommandError::failed("agent not found"));
        };
        let own = Own { gateway, tools, config: agent, surface: &*link.surface, screen };
        let result = tokio::select! {
            result = work(&own, output) => result,
            _ = signals.next() => Err(CommandError::Interrupted),
        };
        own.screen.clear();
        result
    })
}

impl Shell<'_> {
    /// Asks, and shows meanwhile how the servers start that it takes: one, or all of the agent.
    pub(super) async fn ask<R: Rpc>(
        &self,
        params: R::Params,
        server: Option<&str>,
    ) -> Result<R::Result, CommandError> {
        Ok(self.try_ask::<R>(params, server).await?)
    }

    /// Like [`ask`](Self::ask), for callers that look at what went wrong.
    pub(super) async fn try_ask<R: Rpc>(
        &self,
        params: R::Params,
        server: Option<&str>,
    ) -> Result<R::Result, AskError> {
        let asked = ask::<R>(self.surface, params);
        self.screen.show_while(self.starting(server), asked).await
    }

    /// Waits until the servers that start at once were tried. Those of a gateway that runs are as they are.
    pub(super) async fn tried(&self) {
        if let Some(gateway) = self.gateway {
            self.screen.show_while(self.starting(None), gateway.fleet().tried()).await;
        }
    }

    /// How servers start, for the screen.
    pub(super) fn starting<'s>(&'s self, server: Option<&'s str>) -> Starting<'s> {
        Starting::new(self.surface, self.agent, server)
    }
}

/// The same error; where the time was over, with the flag that gives more of it.
pub(super) fn in_time(error: AskError) -> CommandError {
    let is_late = matches!(&error, AskError::Refused(shape)
        if shape.detail().as_deref() == Some(detail::TIMED_OUT));
    let error = CommandError::from(error);
    if is_late { error.hint("use `--timeout MS` to allow more time") } else { error }
}
