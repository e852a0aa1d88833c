//! A front end's way to the gateway: over the socket if one runs, otherwise in this process (G5).

mod local;
mod remote;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_protocol::connect::caps;
use openclaw_protocol::{AskError, ErrorShape, Rpc, Scope, Surface, ask, detail};
use tokio::time::timeout;

use super::{block_on, load_config_at, log_warnings};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::output::Output;
use crate::signals::{Signals, Wish};
use local::Local;
pub(crate) use local::{cannot_start, missing_servers, ourselves, setup};
pub(crate) use remote::knock;

/// How long a look at something may take.
const LOOK: Duration = Duration::from_secs(30);
/// How long work that was given up has, when a front end leaves.
const GRACE: Duration = Duration::from_secs(1);

/// What a front end needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// To look at what is stored: no server is started for it.
    Records,
    /// All that an agent has.
    Agents(Role),
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
    fn role(self) -> Role {
        match self {
            Self::Records => Role::Person,
            Self::Agents(role) => role,
        }
    }
}

/// A way to the gateway.
pub(crate) struct Link {
    pub(crate) surface: Arc<dyn Surface>,
    /// Whether the gateway is another process.
    pub(crate) is_remote: bool,
}

impl Link {
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
    need: Need,
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
    with_link(Need::Records, flag, edge, output, async |link, signals, output| {
        tokio::select! {
            result = work(link, output) => result,
            _ = signals.next() => Err(CommandError::Interrupted),
        }
    })
}

async fn attend(
    need: Need,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Link, &mut Signals, &mut Output) -> CommandResult,
) -> CommandResult {
    // Before anything starts: nothing may be left behind from here on.
    let mut signals = Signals::listen().context("cannot start")?;
    if let Some(client) = remote::find(paths, need.role(), output).await {
        let link = Link { surface: Arc::new(client), is_remote: true };
        return work(&link, &mut signals, output).await;
    }
    let (config, report) = load_config_at(paths, edge, output)?;
    log_warnings(&report);
    let local = Local::start(reduced(config, need), need.role(), paths, edge, output).await?;
    let link = Link { surface: local.surface(), is_remote: false };
    let result = work(&link, &mut signals, output).await;
    drop(link);
    // Whoever is in a hurry asks twice: then nothing is waited for, and the servers are killed.
    tokio::select! {
        () = local.stop(GRACE) => {}
        () = asked_to_end(&mut signals) => {}
    }
    result
}

async fn asked_to_end(signals: &mut Signals) {
    while signals.next().await == Wish::HangUp {}
}

/// The configuration as the front end needs it.
pub(crate) fn reduced(mut config: Config, need: Need) -> Config {
    if need == Need::Records {
        let servers = config.agents.iter_mut().flat_map(|agent| agent.mcp.servers.values_mut());
        servers.for_each(|server| server.treatment.lazy = true);
    }
    config
}
