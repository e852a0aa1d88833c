//! `openclaw acp`: an agent for editors, over stdin and stdout.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_acp::{Connect, Options, ServerSetup, serve};
use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_mcp::call::bridge::CallServices;
use openclaw_protocol::Surface;
use openclaw_protocol::client::{self, Client};
use openclaw_secrets::SecretString;
use tokio::sync::watch;

use super::link::{self, Need, Role, keep};
use super::{block_on, load_config_at, log_warnings};
use crate::cli::AcpArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{Signals, end_after};

/// How long the first prompt waits for MCP servers of the editor.
const SERVERS: Duration = Duration::from_secs(20);
/// How long running work may take to stop.
const GRACE: Duration = Duration::from_secs(1);
/// The user can be asked, through the editor.
const NEED: Need = Need::Agents(Role::Chatting);

pub(crate) fn acp(
    args: &AcpArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let paths = edge.paths(flag)?;
    block_on(async {
        // Before any process is spawned: from here on, a signal must not leave one behind.
        let mut signals = Signals::listen().context("cannot start")?;
        let (config, report) = load_config_at(&paths, edge, output)?;
        log_warnings(&report);
        let (tell, opened) = watch::channel(None);
        let services =
            CallServices { spill: keep::spill(&paths.state, output), ..CallServices::none() };
        let options = Options {
            connect: Arc::new(Connector(opened)),
            agent: args.agent.clone(),
            servers: ServerSetup {
                context: link::dial_context(&config, &paths, edge),
                config: config.clone(),
                services,
                patience: SERVERS,
            },
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        // Beside the gateway, which need not be ready for the first answer.
        let serving = async {
            let serving = serve(options, tokio::io::stdin(), tokio::io::stdout());
            tokio::select! {
                served = serving => served.map_err(|error| CommandError::failed(error.to_string())),
                _ = signals.next() => Err(CommandError::Interrupted),
            }
        };
        let starting = async {
            let started = start(args, config, &paths, edge, output).await;
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
        if let Ok(AcpGateway::Local(gateway)) = &started {
            gateway.stop(GRACE).await;
        }
        started?;
        served.map(|()| Exit::Ok)
    })
}

/// A gateway to which sessions connect.
#[derive(Clone)]
enum AcpGateway {
    Local(Arc<Gateway>),
    Remote(Box<client::Options>),
}

/// Starts a gateway in this process, or finds one.
async fn start(
    args: &AcpArgs,
    config: Config,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<AcpGateway, CommandError> {
    if let Some(url) = &args.gateway {
        let given = args.token.as_deref().map(SecretString::from);
        edge.redactor.add_all(&given);
        // The token of the gateway on this machine is not sent elsewhere.
        let running = link::running(&paths.state, edge).filter(|running| running.url == *url);
        let token = given.or(running.and_then(|running| running.token));
        let options = link::options(url.clone(), token, &NEED);
        let tried = Client::connect(&options).await;
        drop(tried.map_err(|error| CommandError::unavailable(error.to_string()))?);
        return Ok(AcpGateway::Remote(Box::new(options)));
    }
    if let Some(options) = link::usable_options(paths, &NEED, edge, output).await {
        return Ok(AcpGateway::Remote(Box::new(options)));
    }
    let setup = link::setup(config, &NEED, paths, edge, output)?;
    let gateway = Gateway::start(setup).await.map_err(|error| link::cannot_start(&error))?;
    gateway.notes().iter().for_each(|note| output.warning(note));
    Ok(AcpGateway::Local(gateway))
}

/// Opens connections once the gateway is ready.
struct Connector(watch::Receiver<Option<Result<AcpGateway, String>>>);

impl Connect for Connector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn Surface>, String>> {
        Box::pin(async move {
            let mut opened = self.0.clone();
            let ready = opened.wait_for(Option::is_some).await;
            let ready = ready.map_err(|_| "the gateway did not start".to_owned())?.clone();
            match ready {
                Some(Ok(AcpGateway::Local(gateway))) => Ok(gateway.caller(link::caller(&NEED))),
                Some(Ok(AcpGateway::Remote(options))) => {
                    let client = Client::connect(&options).await.map_err(|it| it.to_string())?;
                    Ok(Arc::new(client) as Arc<dyn Surface>)
                }
                Some(Err(error)) => Err(error),
                None => Err("the gateway did not start".to_owned()),
            }
        })
    }
}
