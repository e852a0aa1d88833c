//! A gateway for a server on stdin and stdout: it starts beside the server, whose first answer does
//! not wait for it.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_protocol::client::node::{Node, approve};
use openclaw_protocol::client::{self, Client, ConnectError};
use openclaw_protocol::{Connect, PublishingNode, Scope, Surface};
use tokio::sync::watch;
use tokio::time::timeout;

use super::devices::Devices;
use super::{
    ClientRole, GRACE, GatewayTarget, Need, block_on, caller, cannot_start, load_config_at, setup,
    usable_options,
};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{Signals, end_after};

/// What is needed to find or start the gateway.
pub(crate) struct StdioGateway<'a> {
    pub(crate) target: GatewayTarget,
    pub(crate) need: Need,
    pub(crate) edge: &'a Edge,
}

/// What the server gets.
pub(crate) struct ServerContext {
    pub(crate) connect: Arc<dyn Connect>,
    found: watch::Sender<Option<Result<Found, String>>>,
    stop: watch::Sender<bool>,
    pub(crate) config: Config,
    pub(crate) paths: Paths,
}

impl ServerContext {
    /// Waits for a signal. A server that does so is given a moment to finish what it has begun in the
    /// gateway.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            // The sender lives longer than the server.
            let _ = stop.wait_for(|is_stopped| *is_stopped).await;
        }
    }

    /// Returns a way to open connections with another role.
    pub(crate) fn connect_as(&self, role: ClientRole) -> Arc<dyn Connect> {
        let devices = Devices::new(&self.paths.state);
        Arc::new(Connector { need: Need::Agents(role), found: self.found.clone(), devices })
    }
}

/// A gateway that connections can be opened to.
#[derive(Clone)]
enum Found {
    Local(Arc<Gateway>),
    Remote(Box<RemoteGateway>),
}

/// A gateway in another process.
#[derive(Clone)]
struct RemoteGateway {
    options: client::ConnectOptions,
    /// Whether it is of another program.
    is_foreign: bool,
}

impl StdioGateway<'_> {
    /// Serves a client until it is gone or a signal arrives, while the gateway starts. Then stops
    /// the gateway, if it is in this process.
    pub(crate) fn serve<S: Future<Output = Result<(), String>>>(
        self,
        output: &mut Output,
        serve: impl FnOnce(ServerContext, &mut Output) -> S,
    ) -> CommandResult {
        let paths = self.edge.paths()?;
        block_on(self.run(paths, output, serve))
    }

    async fn run<S: Future<Output = Result<(), String>>>(
        self,
        paths: Paths,
        output: &mut Output,
        serve: impl FnOnce(ServerContext, &mut Output) -> S,
    ) -> CommandResult {
        // Before any process is spawned: from here on, a signal must not leave one behind.
        let mut signals = Signals::listen().context("cannot start")?;
        let config = load_config_at(&paths, self.edge, output)?;
        let found = watch::Sender::new(None);
        let devices = Devices::new(&paths.state);
        let connect = Connector { need: self.need.clone(), found: found.clone(), devices };
        let connect = Arc::new(connect);
        let (config_of, paths_of) = (config.clone(), paths.clone());
        let stop = watch::Sender::new(false);
        let context = ServerContext {
            connect,
            found: found.clone(),
            stop: stop.clone(),
            config: config_of,
            paths: paths_of,
        };
        let mut serving = Box::pin(serve(context, output));
        let mut last = None;
        let mut finding = Box::pin(self.keep_finding(&config, &paths, &found, &mut last, output));
        let served = tokio::select! {
            biased;
            served = &mut serving => served.map_err(CommandError::failed),
            _ = signals.next() => {
                if stop.receiver_count() > 0 {
                    stop.send_replace(true);
                    let _ = timeout(GRACE, &mut serving).await;
                }
                Err(CommandError::Interrupted)
            }
            never = &mut finding => match never {},
        };
        drop(serving);
        // Also if the client has closed its end: a write that it does not read would hold up the exit.
        end_after(GRACE);
        // A gateway that is just starting must be stopped, too.
        let mut is_found = found.subscribe();
        tokio::select! {
            never = &mut finding => match never {},
            _ = is_found.wait_for(Option::is_some) => {}
        }
        drop(finding);
        match last {
            Some(Ok(Found::Local(gateway))) => gateway.stop(GRACE).await,
            Some(Err(error)) => return Err(error),
            _ => {}
        }
        served.map(|()| Exit::Ok)
    }

    /// Finds or starts a gateway, and does so again when one that was found is gone. The last one is
    /// left in `last`.
    async fn keep_finding(
        &self,
        config: &Config,
        paths: &Paths,
        found: &watch::Sender<Option<Result<Found, String>>>,
        last: &mut Option<Result<Found, CommandError>>,
        output: &mut Output,
    ) -> Infallible {
        loop {
            let started = last.insert(self.start(config.clone(), paths, output).await);
            found.send_replace(Some(match started {
                Ok(gateway) => Ok(gateway.clone()),
                Err(error) => Err(with_hint(error)),
            }));
            // The sender is owned by the caller.
            let _ = found.subscribe().wait_for(Option::is_none).await;
        }
    }

    /// Starts a gateway in this process, or finds one.
    async fn start(
        &self,
        config: Config,
        paths: &Paths,
        output: &mut Output,
    ) -> Result<Found, CommandError> {
        let Self { target, need, edge, .. } = self;
        if let GatewayTarget::Named(gateway) = target {
            let options = gateway.options(need, edge).await?;
            let client = Client::connect(&options).await;
            let is_foreign = client.map_err(|error| gateway.explain(&error))?.is_foreign();
            return Ok(Found::Remote(Box::new(RemoteGateway { options, is_foreign })));
        }
        if let Some(options) = usable_options(paths, need, edge, output).await {
            return Ok(Found::Remote(Box::new(RemoteGateway { options, is_foreign: false })));
        }
        edge.check_not_own_server(paths)?;
        let setup = setup(config, need, paths, edge, output)?;
        let gateway = Gateway::start(setup).await.map_err(|error| cannot_start(&error))?;
        gateway.notes().iter().for_each(|note| output.warning(note));
        Ok(Found::Local(gateway))
    }
}

/// An error with its hint, in one line: the user of a client sees nothing else.
fn with_hint(error: &CommandError) -> String {
    match error {
        CommandError::Failed(failure) => {
            let hint = failure.hint.as_ref().map(|hint| format!("; {hint}"));
            format!("{error}{}", hint.unwrap_or_default())
        }
        CommandError::Interrupted => error.to_string(),
    }
}

/// Opens connections once the gateway is ready.
struct Connector {
    need: Need,
    found: watch::Sender<Option<Result<Found, String>>>,
    devices: Devices,
}

impl Connector {
    async fn ready(&self) -> Result<Found, String> {
        let mut found = self.found.subscribe();
        let ready = found.wait_for(Option::is_some).await;
        let ready = ready.ok().and_then(|ready| ready.clone());
        ready.unwrap_or_else(|| Err("the gateway did not start".to_owned()))
    }

    /// Has another gateway found or started, unless there is one in this process.
    fn find_again(&self) {
        self.found.send_if_modified(|found| {
            let is_gone = !matches!(found, None | Some(Ok(Found::Local(_))));
            if is_gone {
                *found = None;
            }
            is_gone
        });
    }
}

impl Connect for Connector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Surface>, String>> {
        Box::pin(async move {
            let mut problem = String::new();
            for is_again in [false, true] {
                if is_again {
                    tracing::info!(%problem, "looking for another gateway");
                    self.find_again();
                }
                problem = match self.ready().await {
                    Ok(Found::Local(gateway)) => return Ok(gateway.caller(caller(&self.need))),
                    Ok(Found::Remote(found)) => {
                        let options = for_need(&found, &self.need);
                        match Client::connect(&options).await {
                            Ok(client) => return Ok(Arc::new(client) as Arc<dyn Surface>),
                            Err(error) => error.to_string(),
                        }
                    }
                    Err(error) => error,
                };
            }
            Err(problem)
        })
    }

    fn node(&self) -> BoxFuture<'_, Result<PublishingNode, String>> {
        Box::pin(async move {
            let Found::Remote(found) = self.ready().await? else {
                return Err("the gateway is in this process".to_owned());
            };
            let device = self.devices.free_node().map_err(|error| error.to_string())?;
            let options = for_need(&found, &self.need);
            let node = Node::connect(&options, device.key).await;
            let node = node.map_err(|error| no_node(&error))?;
            Ok(PublishingNode {
                waits_for: approved(&options, &node).await,
                node,
                lock: device.lock,
            })
        })
    }
}

/// The options of another connection to the same gateway.
fn for_need(found: &RemoteGateway, need: &Need) -> client::ConnectOptions {
    let mut wanted = super::options(String::new(), None, need);
    let admin = Scope::Admin.name().unwrap_or_default();
    // There, only an administrator can send a message that is not read as a command.
    if found.is_foreign && !wanted.scopes.iter().any(|scope| scope == admin) {
        wanted.scopes.push(admin.to_owned());
    }
    client::ConnectOptions {
        client: wanted.client,
        scopes: wanted.scopes,
        caps: wanted.caps,
        request_timeout: wanted.request_timeout,
        ..found.options.clone()
    }
}

/// Approves the commands of a node with the rights of the user, who has the gateway's token and has
/// started the tools that are published. Returns what the user must do if that is not possible.
async fn approved(options: &client::ConnectOptions, node: &Node) -> Option<String> {
    let scopes = ["pairing", "read", "write"];
    let scopes = scopes.map(|scope| format!("operator.{scope}")).to_vec();
    let operator = Client::connect(&client::ConnectOptions { scopes, ..options.clone() }).await;
    let problem = match operator {
        Ok(operator) => approve(&operator, &node.id()).await.err()?.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::info!(%problem, "cannot approve the node");
    let list = "run `openclaw nodes pending`, then `openclaw nodes approve ID`";
    Some(format!("on the machine of the gateway, {list}"))
}

fn no_node(error: &ConnectError) -> String {
    match error {
        ConnectError::NotPaired { request } => {
            let request = request.as_deref().unwrap_or("ID");
            format!(
                "{error}: on the machine of the gateway, run `openclaw devices approve {request}`"
            )
        }
        error => error.to_string(),
    }
}
