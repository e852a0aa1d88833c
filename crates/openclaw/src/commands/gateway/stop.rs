//! `openclaw gateway stop`: requests that the gateway stops, and waits until it has exited.

use std::time::Duration;

use openclaw_config::Paths;
use openclaw_protocol::config::StopParams;
use openclaw_protocol::{RequestError, detail, rpc};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{GatewayState, gateway_state};
use crate::commands::block_on;
use crate::commands::link::{look, running};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;
use openclaw_terminal::style::GOOD;

/// How long the shutdown may take, in addition to the grace period for turns.
const MARGIN: Duration = Duration::from_secs(15);
/// The grace period for turns if the configuration cannot be read.
const USUAL_GRACE: Duration = Duration::from_secs(30);
/// The interval between checks whether it has exited.
const EVERY: Duration = Duration::from_millis(50);

/// Stops the gateway, and returns its process id; `None` if it was not running.
pub(super) fn stopped(edge: &Edge) -> Result<Option<u32>, CommandError> {
    let paths = edge.paths()?;
    let config = edge.load(&paths.config).config;
    let grace = config.map_or(USUAL_GRACE, |config| config.gateway.shutdown_grace);
    block_on(end(&paths, grace + MARGIN, edge))
}

/// Whether a gateway is stopping.
pub(super) fn stops(edge: &Edge) -> Result<bool, CommandError> {
    let paths = edge.paths()?;
    let state = block_on(async { Ok(gateway_state(&paths.state, edge).await) })?;
    Ok(matches!(state, GatewayState::Stopping(_)))
}

pub(super) fn stop(edge: &Edge, output: &mut Output) -> CommandResult {
    let stopped = stopped(edge)?;
    match (stopped, output.json) {
        (Some(pid), true) => output.value(&json!({ "ok": true, "stopped": true, "pid": pid })),
        (Some(pid), false) => {
            output.line(format_args!("{GOOD}✓{GOOD:#} gateway stopped (PID {pid})"));
        }
        (None, true) => output.value(&json!({ "ok": true, "stopped": false })),
        (None, false) => output.line("The gateway is not running."),
    }
    Ok(Exit::Ok)
}

/// Stops the gateway, and returns its process id; `None` if it is not running.
async fn end(paths: &Paths, limit: Duration, edge: &Edge) -> Result<Option<u32>, CommandError> {
    let pid = match gateway_state(&paths.state, edge).await {
        GatewayState::Stopped => return Ok(None),
        GatewayState::Stopping(running) => running.pid,
        GatewayState::Running(gateway) if gateway.status.pid == Some(gateway.running.pid) => {
            let pid = gateway.running.pid;
            let requested = look::<rpc::GatewayStop>(&gateway.client, StopParams {}).await;
            let Err(error) = requested else { return wait(paths, pid, limit, edge).await };
            let failed =
                || CommandError::failed(format!("cannot stop the gateway (PID {pid}): {error}"));
            match &error {
                // An earlier version does not know the method. The signal is sent only to a process
                // that itself reports to be the gateway.
                error if error.is_unknown_method() || has_code(error, detail::TIMED_OUT) => {
                    ask_to_end(pid).map_err(|cause| failed().cause(cause))?;
                }
                // It may have stopped before it could respond.
                error if has_code(error, detail::CONNECTION_LOST) => {}
                _ => return Err(failed()),
            }
            pid
        }
        GatewayState::Running(gateway) => {
            let pid = gateway.running.pid;
            let message = format!("the gateway does not confirm that its PID is {pid}");
            return Err(CommandError::failed(message).hint("stop it where it was started"));
        }
        GatewayState::Unresponsive(running, error, _) => {
            let command = kill_command(running.pid, cfg!(windows));
            let hint = format!("if that process is the gateway, run `{command}`");
            let message = format!("cannot stop the gateway (PID {})", running.pid);
            return Err(CommandError::failed(message).cause(error).hint(hint));
        }
    };
    wait(paths, pid, limit, edge).await
}

fn has_code(error: &RequestError, code: &str) -> bool {
    matches!(error, RequestError::Refused(error) if error.detail().as_deref() == Some(code))
}

/// Waits until a gateway has exited, and returns its process id.
async fn wait(
    paths: &Paths,
    pid: u32,
    limit: Duration,
    edge: &Edge,
) -> Result<Option<u32>, CommandError> {
    let deadline = Instant::now() + limit;
    while running(&paths.state, edge).is_some_and(|running| running.pid == pid) {
        if Instant::now() > deadline {
            let seconds = limit.as_secs();
            let message = format!("the gateway (PID {pid}) is still running after {seconds} s");
            let command = kill_command(pid, cfg!(windows));
            return Err(CommandError::failed(message)
                .hint(format!("run `{command}` to stop it immediately")));
        }
        sleep(EVERY).await;
    }
    Ok(Some(pid))
}

/// The command of the system that ends a process.
pub(super) fn kill_command(pid: u32, is_windows: bool) -> String {
    match is_windows {
        true => format!("taskkill /F /PID {pid}"),
        false => format!("kill {pid}"),
    }
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
    Err("there are no signals on this system; end the process in the task manager".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_a_command_that_the_system_has() {
        assert_eq!(kill_command(7, false), "kill 7");
        assert_eq!(kill_command(7, true), "taskkill /F /PID 7");
    }
}
