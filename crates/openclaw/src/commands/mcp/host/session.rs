//! The servers of one agent, for as long as a command runs; and what is said when one is not there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::{AgentConfig, ServerName};
use openclaw_gateway::mcp::{self, Gathered, Patience, Problem};
use openclaw_mcp::agent::AgentTools;
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::fleet::Tried;
use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::memory::Memory;
use openclaw_mcp::server::{Server, Unavailable};
use openclaw_secrets::Resolver;
use openclaw_tools::pipeline::One;
use openclaw_tools::{Call, CallContext, CallOptions, ToolOutcome};
use tokio::sync::watch;

use super::progress::Screen;
use super::terminal::Terminal;
use crate::commands::mcp::beside;
use crate::exit::Exit;
use crate::output::Output;

/// The servers of one agent, for as long as a command runs.
pub(in crate::commands::mcp) struct Session {
    pub(in crate::commands::mcp) tools: Arc<AgentTools>,
    pub(in crate::commands::mcp) resolver: Resolver,
    /// Somebody to ask, if there is one.
    pub(in crate::commands::mcp) terminal: Option<Terminal>,
    /// The agent, as it is configured.
    pub(in crate::commands::mcp) config: AgentConfig,
    pub(super) screen: Screen,
    /// Those that an agent would start only when they are used.
    pub(super) lazy: BTreeSet<ServerName>,
    pub(super) catalogue: PathBuf,
}

impl Session {
    /// Waits until all servers that start by themselves were tried.
    pub(in crate::commands::mcp) async fn tried(&self) -> Tried {
        self.screen.show_while(self.tools.servers(), self.tools.tried()).await
    }

    /// Whether a server of this name is configured, whatever its state.
    pub(in crate::commands::mcp) fn knows(&self, name: &str) -> bool {
        self.config.mcp.origins.servers.contains_key(name)
    }

    /// The names of all servers.
    pub(in crate::commands::mcp) fn names(&self) -> Vec<&str> {
        self.config.mcp.origins.servers.keys().map(ServerName::as_str).collect()
    }

    /// Whether an agent would start the server only when it is used.
    pub(in crate::commands::mcp) fn is_lazy(&self, server: &Server) -> bool {
        self.lazy.contains(server.name())
    }

    /// What a server had when it was last seen.
    pub(in crate::commands::mcp) fn remembered(&self, server: &Server) -> Inventory {
        let memory =
            Memory::of(&self.catalogue, server.name().as_str(), &server.config().connection);
        memory.recall().inventory
    }

    /// The server of a name; one that is not there, or does not run, is explained.
    pub(in crate::commands::mcp) fn server(
        &self,
        name: &str,
        output: &mut Output,
    ) -> Result<&Arc<Server>, Exit> {
        mcp::server(&self.tools, name).map_err(|problem| beside::tell(&problem, output))
    }

    /// The server of a name, started and ready; or why not is told.
    pub(in crate::commands::mcp) async fn ready(
        &self,
        name: &str,
        output: &mut Output,
    ) -> Result<&Arc<Server>, Exit> {
        let server = self.server(name, output)?;
        match self.start(server).await {
            Ok(()) => Ok(server),
            Err(unavailable) => Err(tell(&unavailable, output)),
        }
    }

    /// Starts a server, and waits until it is ready.
    pub(in crate::commands::mcp) async fn start(
        &self,
        server: &Arc<Server>,
    ) -> Result<(), Unavailable> {
        let ready = self.screen.show_while(std::slice::from_ref(server), server.ready()).await;
        ready.map(|_| ())
    }

    /// Calls a tool, and shows how far it has got.
    pub(in crate::commands::mcp) async fn call(
        &self,
        tool: Arc<CatalogueTool>,
        call: Call<'_>,
        context: CallContext<'_>,
        what: &str,
    ) -> ToolOutcome {
        let (pipeline, tool) = (self.tools.pipeline(), One(tool));
        if !self.screen.can_draw() {
            return Box::pin(pipeline.call(&tool, call, &context)).await;
        }
        let (watcher, progress) = watch::channel(None);
        let options = CallOptions { watcher: Some(&watcher), ..context.options };
        let context = CallContext { options, ..context };
        let called = Box::pin(pipeline.call(&tool, call, &context));
        self.screen.show_call(what, &progress, called).await
    }

    /// Waits for something that these servers are started for, and shows them meanwhile.
    pub(in crate::commands::mcp) async fn watching<T>(
        &self,
        servers: &[Arc<Server>],
        work: impl Future<Output = T>,
    ) -> T {
        self.screen.show_while(servers, work).await
    }

    /// The servers that a list is wanted of: one, or all. Of all, a lazy one of which something is
    /// known is not started for it.
    pub(in crate::commands::mcp) async fn gather(
        &self,
        name: Option<&str>,
        output: &mut Output,
    ) -> Result<Gathered, Exit> {
        let gathering = mcp::gather(&self.tools, name, Patience::All, |it| self.is_lazy(it));
        let gathered = self.screen.show_while(self.tools.servers(), gathering).await;
        gathered.map_err(|problem| beside::tell(&problem, output))
    }
}

/// Says why a server cannot be used.
pub(in crate::commands::mcp) fn tell(unavailable: &Unavailable, output: &mut Output) -> Exit {
    beside::tell(&Problem::from(unavailable.clone()), output)
}

/// Says that there is no server of this name, and which one may be meant.
pub(in crate::commands::mcp) fn unknown_server(
    name: &str,
    known: &[&str],
    output: &mut Output,
) -> Exit {
    beside::tell(&mcp::unknown_server(name, known), output)
}
