//! A front end's way to the gateway: over the socket if one runs, otherwise in this process (G5).

pub(crate) mod keep;
mod local;
mod remote;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_mcp::fleet::StartMode;
use openclaw_protocol::connect::caps;
use openclaw_protocol::{AskError, ErrorShape, Rpc, Scope, Surface, ask, detail};
use tokio::time::timeout;

use super::{block_on, load_config_at, log_warnings};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{Signals, Wish};
use local::Local;
pub(crate) use local::{cannot_start, missing_servers, ourselves, setup};
pub(crate) use remote::find_running;

/// How long a look at something may take.
const LOOK: Duration = Duration::from_secs(30);
/// How long work that was given up has, when a front end leaves.
const GRACE: Duration = Duration::from_secs(1);

/// How long an answer may take, over the socket.
const ANSWER: Duration = Duration::from_secs(600);
/// The same where a call is waited for: it has a time-out of its own.
const CALL: Duration = Duration::from_secs(2 * 60 * 60);

/// What a front end needs.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// To look at what is stored: no server is started for it.
    Records,
    /// All that an agent has.
    Agents(Role),
    /// Servers of one agent, for a verb of `mcp`.
    Servers(Servers),
}

/// What a verb of `mcp` needs.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    /// Whose servers; the default agent's if none is named.
    pub(crate) agent: Option<String>,
    /// Which servers start at once, if they run in this process.
    pub(crate) start: StartMode,
    /// Whether tools may be called, which is written down.
    pub(crate) calls: bool,
    /// Whether a user at the terminal can be asked.
    pub(crate) role: Role,
    /// Whether a gateway that runs is left alone.
    pub(crate) alone: bool,
}

/// What a front end is to the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Somebody sits there, who can be asked about calls, and whom servers can ask.
    Chatting,
    /// Somebody sits there, who can be asked about calls.
    Person,
    /// Nobody does: were it asked, a call would wait in vain.
    Script,
}

impl Role {
    /// What it may do, of all that there is.
    fn scopes(self, mut all: Vec<String>) -> Vec<String> {
        if self == Self::Script {
            // An administrator may do everything, and so can be asked, too.
            let asked = [Scope::Admin.name(), Scope::Approvals.name()];
            all.retain(|scope| !asked.contains(&Some(scope.as_str())));
        }
        all
    }

    /// What it can show, beside all that every front end can.
    fn caps(self, mut usual: Vec<String>) -> Vec<String> {
        if self == Self::Chatting {
            usual.push(caps::ELICITATION.to_owned());
        }
        usual
    }
}

impl Need {
    fn role(&self) -> Role {
        match self {
            Self::Records => Role::Person,
            Self::Agents(role) => *role,
            Self::Servers(servers) => servers.role,
        }
    }

    /// What this front end is called in the audit log; as its client, if there is no name.
    fn name(&self) -> Option<String> {
        matches!(self, Self::Servers(_)).then(|| "shell".to_owned())
    }

    fn is_alone(&self) -> bool {
        matches!(self, Self::Servers(Servers { alone: true, .. }))
    }

    fn answer_within(&self) -> Duration {
        match self {
            Self::Records | Self::Agents(_) => ANSWER,
            Self::Servers(_) => CALL,
        }
    }
}

/// A way to the gateway.
pub(crate) struct Link {
    pub(crate) surface: Arc<dyn Surface>,
    /// The gateway itself, if it is in this process.
    pub(crate) local: Option<Arc<Gateway>>,
}

impl Link {
    /// Whether the gateway is another process.
    pub(crate) fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    /// Asks for something that is known at once.
    pub(crate) async fn look<R: Rpc>(&self, params: R::Params) -> Result<R::Result, AskError> {
        look::<R>(&*self.surface, params).await
    }
}

/// Asks for something that is known at once.
pub(crate) async fn look<R: Rpc>(
    surface: &dyn Surface,
    params: R::Params,
) -> Result<R::Result, AskError> {
    timeout(LOOK, ask::<R>(surface, params)).await.unwrap_or_else(|_| {
        let message = format!("the gateway did not answer `{}` in time", R::METHOD);
        Err(ErrorShape::unavailable(message).with_detail(detail::TIMED_OUT).into())
    })
}

/// Runs what a front end does, and ends what was started for it.
pub(crate) fn with_link(
    need: &Need,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    let paths = edge.paths(flag)?;
    block_on(attend(need, &paths, edge, output, work))
}

/// Like [`with_link`], for work that may be dropped when it is interrupted.
pub(crate) fn with_records(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Output) -> CommandResult,
) -> CommandResult {
    with_link(&Need::Records, flag, edge, output, async |link, signals, output| {
        tokio::select! {
            result = work(link, output) => result,
            _ = signals.next() => Err(CommandError::Interrupted),
        }
    })
}

async fn attend(
    need: &Need,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    // Before anything starts: nothing may be left behind from here on.
    let mut signals = Signals::listen().context("cannot start")?;
    if let Some(client) = remote::find(paths, need, output).await {
        let link = Link { surface: Arc::new(client), local: None };
        return work(&link, &mut signals, output).await;
    }
    let (config, report) = load_config_at(paths, edge, output)?;
    log_warnings(&report);
    standalone(config, need, paths, edge, &mut signals, output, work).await
}

/// Runs what a front end does with a gateway of this process, and ends that gateway.
async fn standalone(
    config: Config,
    need: &Need,
    paths: &Paths,
    edge: &Edge,
    signals: &mut Signals,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    let local = Local::start(config, need, paths, edge, output).await?;
    let link = local.link();
    let result = work(&link, signals, output).await;
    drop(link);
    // Whoever is in a hurry asks twice: then nothing is waited for, and the servers are killed.
    tokio::select! {
        () = local.stop(GRACE) => {}
        () = asked_to_end(signals) => {}
    }
    result
}

/// Like [`with_link`], with a configuration that is loaded already, and never with a gateway that runs.
pub(crate) fn with_own_servers(
    config: &Config,
    servers: Servers,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let (config, need) = (config.clone(), Need::Servers(servers));
        standalone(config, &need, paths, edge, &mut signals, output, work).await
    })
}

/// Runs what only a gateway that runs can do. None: there is none that can be used.
pub(crate) fn with_running(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&dyn Surface, &mut Output) -> CommandResult,
) -> Result<Option<Exit>, CommandError> {
    let paths = edge.paths(flag)?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot start")?;
        let Some(client) = remote::find(&paths, &Need::Records, output).await else {
            return Ok(None);
        };
        tokio::select! {
            result = work(&client, output) => result.map(Some),
            _ = signals.next() => Err(CommandError::Interrupted),
        }
    })
}

async fn asked_to_end(signals: &mut Signals) {
    while signals.next().await == Wish::HangUp {}
}
