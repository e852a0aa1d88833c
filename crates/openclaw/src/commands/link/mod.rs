//! The link to the gateway: over the socket if one is running, otherwise in this process (G5).

mod devices;
mod local;
mod relink;
mod remote;
mod stdio_gateway;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_mcp::server::StartMode;
use openclaw_protocol::client::Client;
use openclaw_protocol::connect::caps;
use openclaw_protocol::mcp::ServersParams;
use openclaw_protocol::{ErrorShape, RequestError, Rpc, Scope, Surface, ask, detail, rpc};
use tokio::time::timeout;

use super::{block_on, load_config_at};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{SignalAction, Signals, end_after};
use local::Local;
pub(crate) use local::{caller, cannot_start, dial_context, missing_servers, ourselves, setup};
pub(crate) use relink::Relink;
use relink::Replaceable;
pub(crate) use remote::{find_running, options, running, usable_options};
pub(crate) use stdio_gateway::StdioGateway;
pub(crate) use target::{GatewayTarget, NamedGateway};

/// The timeout of a short request.
const LOOK: Duration = Duration::from_secs(30);
/// How long a gateway may take to apply a changed configuration.
const RELOAD: Duration = Duration::from_secs(10);
/// How long running work may take to stop when the command exits.
const GRACE: Duration = Duration::from_secs(1);

/// The timeout of a request over the socket.
const ANSWER: Duration = Duration::from_secs(600);
/// The timeout of a request over the socket that may call a tool, which has its own timeout.
const CALL: Duration = Duration::from_secs(2 * 60 * 60);

/// What a command needs from the gateway.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// Stored data: no server is started.
    Records,
    /// Agents, with all their servers.
    Agents(ClientRole),
    /// Agents that work in this folder.
    AgentsIn(ClientRole, PathBuf),
    /// Servers of one agent, for an `mcp` command.
    Servers(Servers),
}

/// What an `mcp` command needs.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    /// The agent whose servers are used; `None` for the default agent.
    pub(crate) agent: Option<String>,
    /// Which servers are started immediately, if they run in this process.
    pub(crate) start: StartMode,
    /// Whether tools may be called, which needs the audit log.
    pub(crate) calls: bool,
    /// Whether the user can be prompted.
    pub(crate) role: ClientRole,
    /// Whether a running gateway is ignored.
    pub(crate) alone: bool,
}

/// Which requests of the gateway a client can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientRole {
    /// The user can approve calls and answer elicitations, in all sessions.
    Attending,
    /// The user can approve calls and answer elicitations of this client.
    Chatting,
    /// The user can approve calls of this client.
    User,
    /// No user is present: a request for approval would only time out.
    Script,
    /// Like `Script`, for a program that serves others: its runs end with it.
    Serving,
}

impl ClientRole {
    /// Returns the scopes to request, out of all.
    fn scopes(self, mut all: Vec<String>) -> Vec<String> {
        if matches!(self, Self::Script | Self::Serving) {
            // The admin scope includes approvals.
            let asked = [Scope::Admin.name(), Scope::Approvals.name()];
            all.retain(|scope| !asked.contains(&Some(scope.as_str())));
        }
        all
    }

    /// Returns the capabilities to announce, in addition to the usual ones.
    fn caps(self, mut usual: Vec<String>) -> Vec<String> {
        let more: &[&str] = match self {
            Self::Attending => &[caps::APPROVALS, caps::ELICITATION, caps::ALL_QUESTIONS],
            Self::Chatting => &[caps::APPROVALS, caps::ELICITATION, caps::OWN_APPROVALS],
            Self::User => &[caps::APPROVALS, caps::OWN_APPROVALS],
            Self::Script => &[caps::OWN_APPROVALS],
            Self::Serving => &[caps::OWN_APPROVALS, caps::ENDS_RUNS],
        };
        usual.extend(more.iter().map(|&cap| cap.to_owned()));
        usual
    }
}

impl Need {
    /// Agents that work in this folder, or in their workspaces.
    pub(crate) fn agents(role: ClientRole, folder: Option<PathBuf>) -> Self {
        folder.map_or(Self::Agents(role), |folder| Self::AgentsIn(role, folder))
    }

    fn role(&self) -> ClientRole {
        match self {
            Self::Records => ClientRole::User,
            Self::Agents(role) | Self::AgentsIn(role, _) => *role,
            Self::Servers(servers) => servers.role,
        }
    }

    /// The name in the audit log; `None` for the client's name.
    fn name(&self) -> Option<String> {
        matches!(self, Self::Servers(_)).then(|| "shell".to_owned())
    }

    fn is_alone(&self) -> bool {
        // A gateway lets a client choose a folder only if its user is there.
        matches!(
            self,
            Self::Servers(Servers { alone: true, .. }) | Self::AgentsIn(ClientRole::Script, _)
        )
    }

    fn answer_within(&self) -> Duration {
        match self {
            Self::Records | Self::Agents(_) | Self::AgentsIn(..) => ANSWER,
            Self::Servers(_) => CALL,
        }
    }
}

/// A link to the gateway.
pub(crate) struct GatewayLink {
    pub(crate) surface: Arc<dyn Surface>,
    /// The gateway itself, if it is in this process.
    pub(crate) local: Option<Arc<Gateway>>,
}

impl GatewayLink {
    /// Whether the gateway is another process.
    pub(crate) fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    /// Sends a short request, with a timeout.
    pub(crate) async fn look<R: Rpc>(&self, params: R::Params) -> Result<R::Result, RequestError> {
        look::<R>(&*self.surface, params).await
    }
}

/// Sends a short request, with a timeout.
pub(crate) async fn look<R: Rpc>(
    surface: &dyn Surface,
    params: R::Params,
) -> Result<R::Result, RequestError> {
    timeout(LOOK, ask::<R>(surface, params)).await.unwrap_or_else(|_| {
        let message = format!("the gateway did not respond to `{}` in time", R::METHOD);
        Err(ErrorShape::unavailable(message).with_detail(detail::TIMED_OUT).into())
    })
}

/// Runs a command with a link to the gateway, and stops the gateway if it was started for it.
pub(crate) fn with_link(
    need: &Need,
    target: &GatewayTarget,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&GatewayLink, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    let paths = edge.paths()?;
    block_on(attend(need, target, &paths, edge, output, work))
}

/// Like [`with_link`], for stored data. A signal drops the work.
pub(crate) fn with_records(
    target: &GatewayTarget,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&GatewayLink, &mut Output) -> CommandResult,
) -> CommandResult {
    with_link(&Need::Records, target, edge, output, async |link, signals, output| {
        signals.interrupt(work(link, output)).await
    })
}

/// Like [`with_link`], for work that continues when a gateway in another process ends: it gets the
/// means to connect again.
pub(crate) fn with_lasting_link(
    need: &Need,
    target: &GatewayTarget,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(
        &GatewayLink,
        Option<&mut Relink<'_>>,
        &mut Signals,
        &mut Output,
    ) -> CommandResult,
) -> CommandResult {
    let paths = &edge.paths()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let Some(client) = connected(need, target, paths, edge, output).await? else {
            let config = load_config_at(paths, edge, output)?;
            let work = async |link: &GatewayLink, signals: &mut Signals, output: &mut Output| {
                work(link, None, signals, output).await
            };
            return standalone(config, need, paths, edge, &mut signals, output, work).await;
        };
        let surface = Arc::new(Replaceable::new(Arc::new(client)));
        let link = GatewayLink { surface: Arc::clone(&surface) as Arc<dyn Surface>, local: None };
        let mut relink = Relink { need, target, paths, edge, surface, local: None, lost: None };
        let result = work(&link, Some(&mut relink), &mut signals, output).await;
        drop(link);
        if let Relink { local: Some(local), surface, .. } = relink {
            drop(surface);
            stop(local, &result, &mut signals).await;
        }
        result
    })
}

async fn attend(
    need: &Need,
    target: &GatewayTarget,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&GatewayLink, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    // Before any process is spawned: from here on, a signal must not leave one behind.
    let mut signals = Signals::listen().context("cannot start")?;
    if let Some(client) = connected(need, target, paths, edge, output).await? {
        let link = GatewayLink { surface: Arc::new(client), local: None };
        return work(&link, &mut signals, output).await;
    }
    let config = load_config_at(paths, edge, output)?;
    standalone(config, need, paths, edge, &mut signals, output, work).await
}

/// Connects to the gateway; `None` if none is running, and none is named.
async fn connected(
    need: &Need,
    target: &GatewayTarget,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Option<Client>, CommandError> {
    Ok(match target {
        GatewayTarget::Own => remote::find(paths, need, edge, output).await,
        GatewayTarget::Named(gateway) => Some(gateway.connect(need, edge).await?),
    })
}

/// Runs a command with a gateway in this process, and stops that gateway.
async fn standalone(
    config: Config,
    need: &Need,
    paths: &Paths,
    edge: &Edge,
    signals: &mut Signals,
    output: &mut Output,
    work: impl AsyncFnOnce(&GatewayLink, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    let local = Local::start(config, need, paths, edge, output).await?;
    let link = local.link();
    let result = work(&link, signals, output).await;
    drop(link);
    stop(local, &result, signals).await;
    result
}

/// Stops a gateway in this process after the work.
async fn stop(local: Local, result: &CommandResult, signals: &mut Signals) {
    if matches!(result, Err(CommandError::Interrupted)) {
        end_after(GRACE);
    }
    // A further signal skips the graceful stop, and the servers are killed.
    tokio::select! {
        () = local.stop(GRACE) => {}
        () = asked_to_end(signals) => {}
    }
}

/// Like [`with_link`], with a loaded configuration, and never with a running gateway.
pub(crate) fn with_own_servers(
    config: &Config,
    servers: Servers,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&GatewayLink, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let (config, need) = (config.clone(), Need::Servers(servers));
        standalone(config, &need, paths, edge, &mut signals, output, work).await
    })
}

/// Runs a command that needs a running gateway. Returns `None` if there is none that can be used.
pub(crate) fn with_running(
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&dyn Surface, &mut Output) -> CommandResult,
) -> Result<Option<Exit>, CommandError> {
    let paths = edge.paths()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let Some(client) = remote::find(&paths, &Need::Records, edge, output).await else {
            return Ok(None);
        };
        signals.interrupt(work(&client, output)).await.map(Some)
    })
}

/// Makes the running gateway apply the configuration file, which was just written, so that the next
/// command finds the change. If this fails, the gateway notices the change by itself, but later.
pub(crate) fn reload_running(paths: &Paths, edge: &Edge) {
    let Some(running) = running(&paths.state, edge) else { return };
    let reload = async {
        if let Ok(client) = remote::usable(&running, paths, &Need::Records).await {
            let _ = timeout(RELOAD, ask::<rpc::McpReload>(&client, ServersParams::default())).await;
        }
        Ok(())
    };
    let _ = block_on(reload);
}

/// Waits for a signal to end.
pub(crate) async fn asked_to_end(signals: &mut Signals) {
    while signals.next().await == SignalAction::HangUp {}
}
