//! `openclaw gateway stop`: asks a gateway to end, and waits until it has.

use std::path::Path;
use std::time::Duration;

use openclaw_config::Paths;
use openclaw_gateway::state;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Standing, standing};
use crate::commands::link::run;
use crate::commands::with_paths;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{GOOD, Output};

/// How long it may take, beside the time that it gives to turns.
const MARGIN: Duration = Duration::from_secs(15);
/// Where no configuration can be read, turns have this long.
const USUAL_GRACE: Duration = Duration::from_secs(30);
/// How often it is looked whether it is gone.
const EVERY: Duration = Duration::from_millis(50);

pub(super) fn stop(flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_paths(flag, edge, output, |paths, output| {
        let config = edge.load(&paths.config).config;
        let grace = config.map_or(USUAL_GRACE, |config| config.gateway.shutdown_grace);
        run(output, async |output| end(paths, grace + MARGIN, output).await)
    })
}

async fn end(paths: &Paths, limit: Duration, output: &mut Output) -> Exit {
    let pid = match standing(&paths.state).await {
        Standing::None => {
            match output.json {
                true => output.value(&json!({ "ok": true, "stopped": false })),
                false => output.line("No gateway runs."),
            }
            return Exit::Ok;
        }
        // Only a process that says itself that it is the gateway gets the signal.
        Standing::Well(well) if well.status.pid == Some(well.running.pid) => well.running.pid,
        Standing::Well(well) => {
            let pid = well.running.pid;
            let message = format!("the gateway does not say that it is the process {pid}");
            output.problem(&message, Some("end it where it was started"));
            return Exit::Failed;
        }
        Standing::Unwell(running, error, _) => {
            let message = format!("the gateway does not answer: {error}");
            let hint = format!("if it is the process {}, end that", running.pid);
            output.problem(&message, Some(&hint));
            return Exit::Failed;
        }
    };
    if let Err(error) = ask_to_end(pid) {
        output.problem(&format!("the process {pid} cannot be asked to end: {error}"), None);
        return Exit::Failed;
    }
    let deadline = Instant::now() + limit;
    while state::find(&paths.state).is_some_and(|running| running.pid == pid) {
        if Instant::now() > deadline {
            let message = format!("the gateway (process {pid}) was asked to end, and still runs");
            output.problem(&message, Some("a second `openclaw gateway stop` ends it at once"));
            return Exit::Failed;
        }
        sleep(EVERY).await;
    }
    match output.json {
        true => output.value(&json!({ "ok": true, "stopped": true, "pid": pid })),
        false => {
            output.line(format_args!("{GOOD}✓{GOOD:#} the gateway (process {pid}) has stopped"));
        }
    }
    Exit::Ok
}

#[cfg(unix)]
fn ask_to_end(pid: u32) -> Result<(), String> {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let pid = i32::try_from(pid).map_err(|error| error.to_string())?;
    kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn ask_to_end(_: u32) -> Result<(), String> {
    Err("this system has no signals; end it in the task manager".to_owned())
}
