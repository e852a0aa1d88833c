//! `openclaw gateway run`: the gateway in this process, until somebody ends it.

use std::io;
use std::path::Path;
use std::time::Duration;

use openclaw_config::{Bind, Config, Paths};
use openclaw_gateway::Setup;
use openclaw_gateway::serve::{ServeError, Served, serve};
use openclaw_gateway::socket::ListenError;
use openclaw_gateway::state::ClaimError;
use openclaw_protocol::config::{ReloadParams, ReloadResult};
use openclaw_protocol::{AskError, Method};
use serde_json::json;

use crate::cli::RunArgs;
use crate::commands::link::{cannot_start, look, ourselves, setup, tell_missing, tell_start};
use crate::commands::{log_warnings, with_report};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{GOOD, Output, STRONG};
use crate::signals::{Signals, Wish};

pub(super) fn run(args: &RunArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_report(flag, edge, output, |config, report, paths, output| {
        log_warnings(report);
        // Many callers at once: this is what the cores are for.
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return cannot_start(&error, output),
        };
        let exit = runtime.block_on(Box::pin(attend(args, config, paths, edge, output)));
        runtime.shutdown_background();
        exit
    })
}

async fn attend(
    args: &RunArgs,
    config: &Config,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return cannot_start(&error, output),
    };
    let setup = match setup(config.clone(), paths, edge, output) {
        Ok(setup) => Setup { people: true, ..setup },
        Err(exit) => return exit,
    };
    let served = match serve(setup, args.bind.map(Bind::ip), args.port).await {
        Ok(served) => served,
        Err(error) => return refuse(&error, output),
    };
    tell(&served, paths, output);
    let exit = tokio::select! {
        exit = attend_signals(&served, &mut signals, output) => Ok(exit),
        missing = missing(&served) => Err(missing),
    };
    let exit = exit.unwrap_or_else(|missing| tell_missing(&missing, output));
    let grace = served.gateway.config().config.gateway.shutdown_grace;
    stop(served, grace, &mut signals, output).await;
    exit
}

fn tell(served: &Served, paths: &Paths, output: &mut Output) {
    let address = served.address();
    served.gateway.notes().iter().for_each(|note| output.warning(note));
    if output.json {
        output.value(&json!({
            "ok": true,
            "url": format!("ws://{address}"),
            "pid": std::process::id(),
            "stateDir": paths.state.to_string_lossy(),
        }));
    } else {
        let state = paths.state.display();
        output.line(format_args!(
            "{GOOD}✓{GOOD:#} the gateway listens on {STRONG}ws://{address}{STRONG:#} (state in {state}); \
             Ctrl-C stops it"
        ));
        if !address.ip().to_canonical().is_loopback() {
            output.warning("it can be reached from other machines; they need the token");
        }
    }
    // Whoever started it may read from a pipe, and wait for this.
    output.flush();
}

/// Waits until servers are missing at the start that must be there; forever if none is.
async fn missing(served: &Served) -> Vec<String> {
    let missing = served.gateway.fleet().missing().await;
    match missing.is_empty() {
        true => std::future::pending().await,
        false => missing,
    }
}

/// Waits until it is to end.
async fn attend_signals(served: &Served, signals: &mut Signals, output: &mut Output) -> Exit {
    loop {
        match signals.next().await {
            // To be asked to end is how a gateway ends: all went well.
            Wish::Interrupt | Wish::End => return Exit::Ok,
            Wish::HangUp => {
                let surface = served.gateway.caller(ourselves());
                let answer: Result<ReloadResult, AskError> =
                    look(&*surface, Method::ConfigReload, &ReloadParams::default()).await;
                tell_reload(answer, output);
            }
        }
    }
}

fn tell_reload(answer: Result<ReloadResult, AskError>, output: &mut Output) {
    match answer {
        Ok(ReloadResult { ok: true, changed, .. }) if changed.is_empty() => {
            output.note("the configuration was read again; nothing has changed");
        }
        Ok(ReloadResult { ok: true, changed, .. }) => {
            let changed = changed.join(", ");
            output.note(&format!("the configuration was read again; changed: {changed}"));
        }
        Ok(ReloadResult { issues, .. }) => {
            output.warning("the configuration has errors; the old one stays in force");
            for issue in issues {
                output.warning(&issue.to_string());
            }
        }
        Err(error) => output.warning(&format!("the configuration was not read again: {error}")),
    }
}

/// Stops; whoever asks twice does not want to wait.
async fn stop(served: Served, grace: Duration, signals: &mut Signals, output: &mut Output) {
    output.note("stopping; once more stops at once");
    let hurry = async { while signals.next().await == Wish::HangUp {} };
    tokio::select! {
        () = served.stop(grace) => output.note("stopped"),
        () = hurry => output.note("stopped at once"),
    }
}

fn refuse(error: &ServeError, output: &mut Output) -> Exit {
    match error {
        ServeError::Claimed(ClaimError::Taken(_)) => {
            let hint =
                "`openclaw gateway stop` ends it; another OPENCLAW_STATE_DIR has room for another";
            output.problem(&error.to_string(), Some(hint));
            Exit::Unavailable
        }
        ServeError::Listen(ListenError::Bind { address, error })
            if error.kind() == io::ErrorKind::AddrInUse =>
        {
            let message = format!("the port {} of {} is taken", address.port(), address.ip());
            let hint = "`--port PORT` takes another one, `--port 0` any that is free";
            output.problem(&message, Some(hint));
            Exit::Unavailable
        }
        ServeError::Listen(ListenError::Bind { .. }) => {
            let hint = "`--bind ADDRESS` and `--port PORT` say where to listen";
            output.problem(&error.to_string(), Some(hint));
            Exit::Failed
        }
        ServeError::Token(_) => {
            output.problem(&error.to_string(), Some("`openclaw secrets check` looks closer"));
            Exit::Failed
        }
        other => {
            tell_start(other, output);
            Exit::Failed
        }
    }
}
