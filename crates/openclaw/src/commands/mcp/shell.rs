//! The context of an `mcp` command, the same for a gateway in this or in another process.

use std::sync::Arc;

use openclaw_config::{AgentConfig, Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::StartMode;
use openclaw_protocol::{RequestError, Rpc, Surface, ask, detail};

use super::screen::{Screen, Starting};
use super::terminal::Terminal;
use crate::cli::ContextArgs;
use crate::commands::link::{self, ClientRole, GatewayTarget, Need, Servers, with_link};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;

/// The gateway of an `mcp` command, and its terminal.
pub(super) struct Shell<'a> {
    pub(super) surface: &'a dyn Surface,
    /// The gateway, if it is in this process.
    gateway: Option<&'a Arc<Gateway>>,
    agent: Option<&'a str>,
    pub(super) screen: Screen,
    /// Set if the user can be prompted.
    pub(super) terminal: Option<Terminal>,
}

/// The need of most `mcp` commands: the servers of an agent, each started only when it is used.
pub(super) fn servers_of(context: &ContextArgs, edge: &Edge) -> Servers {
    Servers {
        agent: context.agent.clone(),
        start: StartMode::OnUse,
        calls: false,
        role: if edge.has_user() { ClientRole::Chatting } else { ClientRole::User },
        alone: context.no_gateway,
    }
}

/// Runs an `mcp` command, and stops the servers that were started for it.
pub(super) fn with_shell(
    servers: Servers,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Shell<'_>, &mut Output) -> CommandResult,
) -> CommandResult {
    let agent = servers.agent.clone();
    let screen = Screen::new(edge.can_draw() && !output.json);
    let terminal = edge.has_user().then(|| Terminal::new(screen.clone()));
    with_link(
        &Need::Servers(servers),
        &GatewayTarget::Own,
        edge,
        output,
        async |link, signals, output| {
            let (surface, gateway, agent) = (&*link.surface, link.local.as_ref(), agent.as_deref());
            let shell = Shell { surface, gateway, agent, screen, terminal };
            // Dropping the work cancels its requests.
            let result = signals.interrupt(work(&shell, output)).await;
            shell.screen.clear();
            result
        },
    )
}

/// Runs an `mcp` command that is a single request, about one server or all, and shows its result.
pub(super) fn with_result<R: Rpc>(
    (context, server): (&ContextArgs, Option<&str>),
    params: R::Params,
    edge: &Edge,
    output: &mut Output,
    show: impl FnOnce(&R::Result, &mut Output) -> Exit,
) -> CommandResult {
    with_shell(servers_of(context, edge), edge, output, async |shell, output| {
        Ok(show(&shell.ask::<R>(params, server).await?, output))
    })
}

/// Servers in this process, even if a gateway is running.
pub(super) struct OwnServers<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) tools: Arc<AgentTools>,
    /// The configuration of the agent.
    pub(super) config: &'a AgentConfig,
    surface: &'a dyn Surface,
    screen: Screen,
}

impl OwnServers<'_> {
    /// Waits for work that starts servers, and shows their state meanwhile.
    pub(super) async fn watching<T>(&self, work: impl Future<Output = T>) -> T {
        let agent = Some(self.config.id.as_str());
        self.screen.show_while(Starting::new(self.surface, agent, None), work).await
    }
}

/// Runs work with servers in this process, which are started when they are used, and stops them.
pub(super) fn with_own_servers(
    config: &Config,
    agent: &AgentConfig,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&OwnServers<'_>, &mut Output) -> CommandResult,
) -> CommandResult {
    let servers = Servers {
        agent: Some(agent.id.to_string()),
        start: StartMode::OnUse,
        calls: false,
        role: ClientRole::User,
        alone: true,
    };
    let screen = Screen::new(edge.can_draw() && !output.json);
    link::with_own_servers(config, servers, paths, edge, output, async |link, signals, output| {
        let gateway = link.local.as_ref();
        let tools = gateway.and_then(|gateway| gateway.fleet().agent(agent.id.as_str()));
        let (Some(gateway), Some(tools)) = (gateway, tools) else {
            return Err(CommandError::failed("agent not found"));
        };
        let own = OwnServers { gateway, tools, config: agent, surface: &*link.surface, screen };
        let result = signals.interrupt(work(&own, output)).await;
        own.screen.clear();
        result
    })
}

impl Shell<'_> {
    /// Sends a request, and shows the starting servers meanwhile: one, or all of the agent.
    pub(super) async fn ask<R: Rpc>(
        &self,
        params: R::Params,
        server: Option<&str>,
    ) -> Result<R::Result, CommandError> {
        Ok(self.try_ask::<R>(params, server).await?)
    }

    /// Like [`ask`](Self::ask), for callers that inspect the error.
    pub(super) async fn try_ask<R: Rpc>(
        &self,
        params: R::Params,
        server: Option<&str>,
    ) -> Result<R::Result, RequestError> {
        let asked = ask::<R>(self.surface, params);
        self.screen.show_while(self.starting(server), asked).await
    }

    /// Waits until the servers that start eagerly are ready or have failed. Does nothing if the
    /// gateway is another process.
    pub(super) async fn tried(&self) {
        if let Some(gateway) = self.gateway {
            self.screen.show_while(self.starting(None), gateway.fleet().tried()).await;
        }
    }

    /// Returns the starting servers, for the screen.
    pub(super) fn starting<'s>(&'s self, server: Option<&'s str>) -> Starting<'s> {
        Starting::new(self.surface, self.agent, server)
    }
}

/// Converts an error; a timeout gets a hint to use `--timeout`.
pub(super) fn in_time(error: RequestError) -> CommandError {
    let is_late = matches!(&error, RequestError::Refused(shape)
        if shape.detail().as_deref() == Some(detail::TIMED_OUT));
    let error = CommandError::from(error);
    if is_late { error.hint("use `--timeout MS` to allow more time") } else { error }
}
