//! A gateway that runs is asked, and nothing is started here (G5). Where there is none that can be used,
//! the verbs do their work in this process.

use std::path::Path;
use std::time::Duration;

use openclaw_config::Paths;
use openclaw_gateway::mcp::{Problem, ProblemKind};
use openclaw_gateway::state;
use openclaw_protocol::client::{Client, Options};
use openclaw_protocol::{AskError, Method, Rpc, ask, detail};

use crate::cli::BesideArgs;
use crate::commands::shown;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;

/// How long a gateway on this machine may take to let us in. It runs, or nobody would be called: on a busy
/// machine it is slow, and servers of our own would not be those that are meant.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take. Calls have time-outs of their own.
const ANSWER: Duration = Duration::from_secs(2 * 60 * 60);

/// A gateway that runs.
pub(super) struct Gateway(Client);

/// Asks the gateway, if there is one; otherwise none, and nothing has happened.
pub(super) fn beside(
    args: &BesideArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Gateway, &mut Output) -> Result<Exit, Exit>,
) -> Option<Exit> {
    if args.no_gateway {
        return None;
    }
    // What is wrong here is told by whoever goes on.
    let paths = edge.paths(flag).ok()?;
    let running = state::find(&paths.state)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let exit = runtime.block_on(Box::pin(async {
        let version = env!("CARGO_PKG_VERSION");
        let options = Options::new(running.url, running.token, version);
        let options = Options { connect_timeout: CONNECT, request_timeout: ANSWER, ..options };
        let client = match Client::connect(&options).await {
            Ok(client) => client,
            Err(error) => {
                let pid = running.pid;
                let words = format!("the gateway (process {pid}) is not asked: {error}");
                output.warning(&words);
                return None;
            }
        };
        if !has_read(&client, &paths) || !client.has_method(Method::McpServers.name()) {
            return None;
        }
        let mut signals = Signals::listen().ok()?;
        let gateway = Gateway(client);
        Some(tokio::select! {
            exit = work(&gateway, output) => exit.unwrap_or_else(|exit| exit),
            _ = signals.next() => Exit::Interrupted,
        })
    }));
    // A thread that waits for a key must not keep the program from ending.
    runtime.shutdown_background();
    exit
}

/// Whether the gateway's configuration is the one that is meant here.
fn has_read(client: &Client, paths: &Paths) -> bool {
    let Some(theirs) = &client.hello().snapshot.config_path else { return false };
    let theirs = Path::new(theirs);
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    theirs == paths.config || whole(theirs) == whole(&paths.config)
}

impl Gateway {
    /// Asks, and tells if the gateway says no.
    pub(super) async fn ask<R: Rpc>(
        &self,
        params: R::Params,
        output: &mut Output,
    ) -> Result<R::Result, Exit> {
        self.try_ask::<R>(params).await.map_err(|problem| tell(&problem, output))
    }

    /// Asks.
    pub(super) async fn try_ask<R: Rpc>(&self, params: R::Params) -> Result<R::Result, Problem> {
        ask::<R>(&self.0, params).await.map_err(|error| match &error {
            AskError::Refused(shape)
                if shape.detail().as_deref() == Some(detail::CONNECTION_LOST) =>
            {
                Problem::new(ProblemKind::Unavailable, "the gateway has gone")
                    .hint("`openclaw gateway status` tells whether it runs again")
            }
            AskError::Refused(shape) => Problem::from(shape),
            AskError::Params { .. } | AskError::Answer { .. } | AskError::OtherMethod { .. } => {
                Problem::new(ProblemKind::Invalid, error.to_string())
                    .hint("is the gateway of another version? `--no-gateway` does without it")
            }
        })
    }
}

/// Prints a problem.
pub(super) fn tell(problem: &Problem, output: &mut Output) -> Exit {
    shown(&problem.clone().into(), output)
}
