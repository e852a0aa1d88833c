//! `openclaw gateway run`: runs the gateway in this process until a signal or a request stops it.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use openclaw_config::{Bind, Config, Paths};
use openclaw_gateway::ServeError;
use openclaw_gateway::client_metadata;
use openclaw_gateway::serve::{Served, serve};
use openclaw_gateway::socket::ListenError;
use openclaw_gateway::state::ClaimError;
use openclaw_protocol::config::{ReloadParams, ReloadResult};
use openclaw_protocol::{RequestError, rpc};
use serde_json::json;
use tokio::time::timeout;

use crate::cli::RunArgs;
use crate::commands::link::{
    ClientRole, Need, asked_to_end, cannot_start, look, missing_servers, ourselves, setup,
};
use crate::commands::{LoadedConfig, load_config, log_warnings};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::{SignalAction, Signals, end_after};
use openclaw_terminal::style::{GOOD, STRONG};

/// How long a note may take to be written.
const NOTE: Duration = Duration::from_millis(500);
/// How long running turns have where the system ends the process soon.
const SHORT_GRACE: Duration = Duration::from_secs(2);

pub(super) fn run(args: &RunArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    if args.detached {
        leave_terminal();
    }
    let LoadedConfig { config, report, paths } = load_config(edge, output)?;
    log_warnings(&report);
    if let Some(remote) = &config.gateway.remote {
        return Err(CommandError::usage(format!(
            "`gateway.mode` is `remote`: commands use the gateway at {}",
            remote.url
        ))
        .hint("to run one here, run `openclaw config set gateway.mode local`"));
    }
    // Multi-threaded: the gateway serves many clients concurrently.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let result = runtime.block_on(Box::pin(attend(args, config, &paths, edge, output)));
    runtime.shutdown_background();
    result
}

/// Starts a session without a terminal, so that closing the terminal does not end the gateway.
fn leave_terminal() {
    #[cfg(unix)]
    if let Err(error) = nix::unistd::setsid() {
        tracing::warn!(%error, "cannot detach from the terminal");
    }
}

async fn attend(
    args: &RunArgs,
    config: Config,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let mut signals = Signals::listen().context("cannot start")?;
    // Clients may connect that can answer prompts.
    let public = config.gateway.public_url.clone();
    let mut setup = setup(config, &Need::Agents(ClientRole::Chatting), paths, edge, output)?;
    if let Some(auth) = &mut setup.fleet.context.auth {
        // Only this process serves the document.
        auth.client_metadata_url = public.and_then(|url| client_metadata::url(url.expose()));
    }
    let served = serve(setup, args.bind.map(Bind::ip), args.port).await?;
    tell(&served, paths, output);
    let mut has_little_time = false;
    let result = tokio::select! {
        signal = attend_signals(&served, &mut signals, output) => {
            // Windows ends the process some seconds after its window was closed.
            has_little_time = cfg!(windows) && signal == SignalAction::End;
            Ok(Exit::Ok)
        }
        () = served.gateway.stop_requested() => Ok(Exit::Ok),
        missing = missing(&served) => Err(missing_servers(&missing)),
    };
    let mut grace = served.gateway.config().config.gateway.shutdown_grace;
    if has_little_time {
        grace = grace.min(SHORT_GRACE);
    }
    stop(served, grace, &mut signals, output.json).await;
    result
}

fn tell(served: &Served, paths: &Paths, output: &mut Output) {
    let address = served.address();
    served.gateway.notes().iter().for_each(|note| output.warning(note));
    if output.json {
        // Not `value`: an error may follow, as a second document.
        let started = json!({
            "ok": true,
            "url": format!("ws://{address}"),
            "pid": std::process::id(),
            "stateDir": paths.state.to_string_lossy(),
        });
        output.document(&format!("{started:#}"));
    } else {
        let state = paths.state.display();
        // A gateway in the background writes to a log.
        let keys = if output.columns().is_some() { "; Ctrl-C to stop" } else { "" };
        output.line(format_args!(
            "{GOOD}✓{GOOD:#} gateway listening on {STRONG}ws://{address}{STRONG:#} (state in {state}){keys}"
        ));
        if !address.ip().to_canonical().is_loopback() {
            output.warning("reachable from other machines, with the token");
        }
    }
    // The parent process may read from a pipe, and wait for this line.
    output.flush();
}

/// Waits until a required server fails to start, and returns all of those; never returns otherwise.
async fn missing(served: &Served) -> Vec<String> {
    let missing = served.gateway.fleet().missing().await;
    match missing.is_empty() {
        true => std::future::pending().await,
        false => missing,
    }
}

/// Handles signals until the first that stops the gateway, and returns it.
async fn attend_signals(
    served: &Served,
    signals: &mut Signals,
    output: &mut Output,
) -> SignalAction {
    loop {
        match signals.next().await {
            signal @ (SignalAction::Interrupt | SignalAction::End) => return signal,
            SignalAction::HangUp => {
                let surface = served.gateway.caller(ourselves());
                let answer = tokio::select! {
                    answer = look::<rpc::ConfigReload>(&*surface, ReloadParams::default()) => answer,
                    () = asked_to_end(signals) => return SignalAction::End,
                };
                print_reload(answer, output);
            }
        }
    }
}

fn print_reload(answer: Result<ReloadResult, RequestError>, output: &mut Output) {
    match answer {
        Ok(ReloadResult { ok: true, changed, .. }) if changed.is_empty() => {
            output.note("configuration reloaded; nothing has changed");
        }
        Ok(ReloadResult { ok: true, changed, .. }) => {
            let changed = changed.join(", ");
            output.note(&format!("configuration reloaded; changed: {changed}"));
        }
        Ok(ReloadResult { issues, .. }) => {
            output.warning("the new configuration has errors; the old one stays active");
            for issue in issues {
                output.warning(&issue.to_string());
            }
        }
        Err(error) => output.warning(&format!("cannot reload the configuration: {error}")),
    }
}

/// Stops the gateway gracefully; a second signal stops it immediately.
async fn stop(served: Served, grace: Duration, signals: &mut Signals, json: bool) {
    end_after(grace);
    let stop = async {
        let words = match io::stderr().is_terminal() {
            true => "stopping; press Ctrl-C again to stop immediately",
            false => "stopping",
        };
        note(json, words).await;
        served.stop(grace).await;
    };
    let how = tokio::select! {
        () = stop => "stopped",
        () = asked_to_end(signals) => "stopped immediately",
    };
    note(json, how).await;
}

/// Writes a note to stderr, and gives up soon: the reader may be stuck, which must not keep the
/// gateway from stopping.
async fn note(json: bool, text: &'static str) {
    let writing = tokio::task::spawn_blocking(move || Output::new(json).note(text));
    let _ = timeout(NOTE, writing).await;
}

impl From<ServeError> for CommandError {
    fn from(error: ServeError) -> Self {
        match &error {
            ServeError::Claimed(ClaimError::Taken(_)) => Self::unavailable(error.to_string()).hint(
                "run `openclaw gateway stop` to stop it, or set another `OPENCLAW_STATE_DIR` for a \
                 second gateway",
            ),
            ServeError::Listen(ListenError::Bind { address, error })
                if error.kind() == io::ErrorKind::AddrInUse =>
            {
                let (ip, port) = (address.ip(), address.port());
                Self::unavailable(format!("port {port} on {ip} is in use"))
                    .hint("use `--port PORT` for another port, or `--port 0` for any free one")
            }
            ServeError::Listen(ListenError::Bind { .. }) => Self::failed(error.to_string())
                .hint("use `--bind ADDRESS` and `--port PORT` to listen elsewhere"),
            ServeError::Listen(ListenError::ShortToken(_)) => Self::failed(error.to_string())
                .hint("remove `gateway.auth.token`, and one is generated; or set a longer one"),
            ServeError::Listen(ListenError::ShortMetricsToken(_)) => {
                Self::failed(error.to_string())
                    .hint("set a longer one, or use a token of `openclaw gateway token create`")
            }
            ServeError::Token(..) => {
                Self::failed(error.to_string()).hint("run `openclaw secrets check`")
            }
            other => cannot_start(other),
        }
    }
}
