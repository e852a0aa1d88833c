//! A gateway for a server on stdin and stdout: it starts beside the server, whose first answer does
//! not wait for it.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_protocol::client::{self, Client};
use openclaw_protocol::{Connect, Surface};
use openclaw_secrets::SecretString;
use tokio::sync::watch;

use super::{
    GRACE, Need, block_on, caller, cannot_start, load_config_at, log_warnings, options, running,
    setup, usable_options,
};
use crate::cli::GatewayChoice;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{Signals, end_after};

/// What is needed to find or start the gateway.
pub(crate) struct Beside<'a> {
    pub(crate) choice: &'a GatewayChoice,
    pub(crate) need: Need,
    /// The configuration file that the user named.
    pub(crate) flag: Option<&'a Path>,
    pub(crate) edge: &'a Edge,
}

/// What the server gets.
pub(crate) struct ServerContext {
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) config: Config,
    pub(crate) paths: Paths,
}

/// A gateway that connections can be opened to.
#[derive(Clone)]
enum Found {
    Local(Arc<Gateway>),
    Remote(Box<client::Options>),
}

impl Beside<'_> {
    /// Serves a client until it is gone or a signal arrives, while the gateway starts. Then stops
    /// the gateway, if it is in this process.
    pub(crate) fn serve<S: Future<Output = Result<(), String>>>(
        self,
        output: &mut Output,
        serve: impl FnOnce(ServerContext, &mut Output) -> S,
    ) -> CommandResult {
        let paths = self.edge.paths(self.flag)?;
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
        let (config, report) = load_config_at(&paths, self.edge, output)?;
        log_warnings(&report);
        let (tell, found) = watch::channel(None);
        let connect = Arc::new(Connector { need: self.need.clone(), found });
        let context = ServerContext { connect, config: config.clone(), paths: paths.clone() };
        let serving = serve(context, output);
        let serving = async {
            tokio::select! {
                served = serving => served.map_err(CommandError::failed),
                _ = signals.next() => Err(CommandError::Interrupted),
            }
        };
        let starting = async {
            let started = self.start(config, &paths, output).await;
            let told = match &started {
                Ok(gateway) => Ok(gateway.clone()),
                Err(error) => Err(error.to_string()),
            };
            tell.send_replace(Some(told));
            started
        };
        let (served, started) = tokio::join!(Box::pin(serving), Box::pin(starting));
        if matches!(served, Err(CommandError::Interrupted)) {
            end_after(GRACE);
        }
        if let Ok(Found::Local(gateway)) = &started {
            gateway.stop(GRACE).await;
        }
        started?;
        served.map(|()| Exit::Ok)
    }

    /// Starts a gateway in this process, or finds one.
    async fn start(
        &self,
        config: Config,
        paths: &Paths,
        output: &mut Output,
    ) -> Result<Found, CommandError> {
        let Self { choice, need, edge, .. } = self;
        if let Some(url) = &choice.gateway {
            let given = choice.token.as_deref().map(SecretString::from);
            edge.redactor.add_all(&given);
            // The token of the gateway on this machine is not sent elsewhere.
            let running = running(&paths.state, edge).filter(|running| running.url == *url);
            let token = given.or(running.and_then(|running| running.token));
            let options = options(url.clone(), token, need);
            let tried = Client::connect(&options).await;
            drop(tried.map_err(|error| CommandError::unavailable(error.to_string()))?);
            return Ok(Found::Remote(Box::new(options)));
        }
        if let Some(options) = usable_options(paths, need, edge, output).await {
            return Ok(Found::Remote(Box::new(options)));
        }
        let setup = setup(config, need, paths, edge, output)?;
        let gateway = Gateway::start(setup).await.map_err(|error| cannot_start(&error))?;
        gateway.notes().iter().for_each(|note| output.warning(note));
        Ok(Found::Local(gateway))
    }
}

/// Opens connections once the gateway is ready.
struct Connector {
    need: Need,
    found: watch::Receiver<Option<Result<Found, String>>>,
}

impl Connect for Connector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Surface>, String>> {
        Box::pin(async move {
            let mut found = self.found.clone();
            let ready = found.wait_for(Option::is_some).await;
            let ready = ready.map_err(|_| "the gateway did not start".to_owned())?.clone();
            match ready {
                Some(Ok(Found::Local(gateway))) => Ok(gateway.caller(caller(&self.need))),
                Some(Ok(Found::Remote(options))) => {
                    let client = Client::connect(&options).await.map_err(|it| it.to_string())?;
                    Ok(Arc::new(client) as Arc<dyn Surface>)
                }
                Some(Err(error)) => Err(error),
                None => Err("the gateway did not start".to_owned()),
            }
        })
    }
}
