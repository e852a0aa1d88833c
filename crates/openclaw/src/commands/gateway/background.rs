//! `openclaw gateway start | restart | logs`: the gateway in the background.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use openclaw_config::Paths;
use openclaw_process::exit_words;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::service::Service;
use super::{GatewayState, gateway_state, stop};
use crate::cli::{GatewayLogsArgs, RunArgs};
use crate::commands::block_on;
use crate::commands::link::running;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};
use crate::state_files;
use openclaw_terminal::style::{GOOD, STRONG};

/// How long the start may take, until the gateway responds.
const STARTING: Duration = Duration::from_secs(30);
/// The interval between checks whether it responds.
const EVERY: Duration = Duration::from_millis(50);
/// The interval of polling for new log lines.
const POLL: Duration = Duration::from_millis(200);
/// A log file of this size is renamed at the next start.
const MAX_LOG: u64 = 5 * 1024 * 1024;
/// The most bytes of the log that are read at a time.
const MAX_READ: u64 = 1024 * 1024;
/// The log lines that are shown if the start fails.
const LAST_LINES: usize = 10;

/// Starts the gateway in the background: as the installed service, or as a process of its own.
pub(super) fn start(args: &RunArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    if stop::stops(edge)? {
        // Until it has released the state folder.
        stop::stopped(edge)?;
    }
    if let Some(running) = running(&paths.state, edge) {
        match output.json {
            true => output.value(&json!({ "ok": true, "started": false, "pid": running.pid })),
            false => output.line(format_args!(
                "The gateway is already running at {} (PID {})",
                running.url, running.pid
            )),
        }
        return Ok(Exit::Ok);
    }
    // Not those of earlier runs.
    let log = LogTail::at_end(log_path(&paths.state));
    let service = Service::installed(edge).filter(|_| !args.are_given());
    let child = match &service {
        Some(service) => {
            service.start()?;
            None
        }
        None => Some(spawn(args, &paths, edge)?),
    };
    block_on(ready(child, log, &paths, edge, output))
}

/// Stops the gateway, if it is running, and starts it.
pub(super) fn restart(args: &RunArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let before = running(&edge.paths()?.state, edge).map(|running| running.url);
    stop::stopped(edge)?;
    let exit = start(args, edge, output)?;
    let now = running(&edge.paths()?.state, edge).map(|running| running.url);
    if let (Some(before), Some(now)) = (before, now)
        && before != now
    {
        output
            .aside(&format!("It was at {before} before; `--port` and `--bind` choose an address."));
    }
    Ok(exit)
}

/// Starts a process that outlives this one and its terminal.
fn spawn(args: &RunArgs, paths: &Paths, edge: &Edge) -> Result<Child, CommandError> {
    let log = open_log(&paths.state).context("cannot write the log of the gateway")?;
    let program = edge.this_program().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&paths.config).args(["gateway", "run", "--detached"]);
    if let Some(port) = args.port {
        command.arg("--port").arg(port.to_string());
    }
    if let Some(bind) = args.bind {
        command.arg("--bind").arg(bind.ip().to_string());
    }
    let errors = log.try_clone().context("cannot write the log of the gateway")?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    spawn_apart(&mut command).context("cannot start the gateway")
}

/// The gateway itself leaves the terminal (`--detached`).
#[cfg(not(windows))]
fn spawn_apart(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Starts it with a console of its own, which has no window: it outlives the user's window, and the
/// programs that it starts open none. It also leaves the job of a terminal that ends all of its processes,
/// unless the job forbids that.
#[cfg(windows)]
fn spawn_apart(command: &mut Command) -> io::Result<Child> {
    use std::os::windows::process::CommandExt as _;
    const NEW_PROCESS_GROUP: u32 = 0x0000_0200;
    const BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;
    const NO_WINDOW: u32 = 0x0800_0000;
    let apart = NO_WINDOW | NEW_PROCESS_GROUP;
    let outside = command.creation_flags(apart | BREAKAWAY_FROM_JOB).spawn();
    outside.or_else(|_| command.creation_flags(apart).spawn())
}

/// The log of a gateway in the background.
pub(super) fn log_path(state: &Path) -> PathBuf {
    state_files::logs(state).join("gateway.log")
}

fn open_log(state: &Path) -> io::Result<File> {
    openclaw_files::make_folder(&state_files::logs(state))?;
    let path = log_path(state);
    if path.metadata().is_ok_and(|about| about.len() > MAX_LOG) {
        openclaw_files::rename(&path, &path.with_extension("log.1"))?;
    }
    openclaw_files::open_with(&path, openclaw_files::private().append(true).create(true))
}

/// Waits until the gateway responds.
async fn ready(
    mut child: Option<Child>,
    mut log: LogTail,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let deadline = Instant::now() + STARTING;
    loop {
        if let GatewayState::Running(gateway) = gateway_state(&paths.state, edge).await {
            let (pid, url) = (gateway.running.pid, &gateway.running.url);
            match output.json {
                true => {
                    output.value(&json!({ "ok": true, "started": true, "pid": pid, "url": url }));
                }
                false => output.line(format_args!(
                    "{GOOD}✓{GOOD:#} gateway started at {STRONG}{url}{STRONG:#} (PID {pid})"
                )),
            }
            return Ok(Exit::Ok);
        }
        let exited = child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        if exited.is_some() || Instant::now() > deadline {
            let message = match exited {
                Some(status) => format!("the gateway did not start: {}", exit_words(status)),
                None => format!("the gateway did not respond within {} s", STARTING.as_secs()),
            };
            // One that starts after all would run although this command failed.
            let _ = child.as_mut().map(Child::kill);
            let mut lines = log.added().unwrap_or_default();
            let lines = lines.split_off(lines.len().saturating_sub(LAST_LINES));
            return Err(CommandError::failed(message)
                .with(|failure| failure.last_lines = lines)
                .hint("run `openclaw gateway run` to see it start"));
        }
        sleep(EVERY).await;
    }
}

/// Prints the log of the gateway in the background.
pub(super) fn logs(args: &GatewayLogsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let path = log_path(&edge.paths()?.state);
    let failed = |error: io::Error| {
        CommandError::failed(format!("cannot read {}", path.display())).cause(error.to_string())
    };
    if !path.exists() && !args.follow {
        return Err(CommandError::failed(format!("no log at {}", path.display()))
            .hint("`openclaw gateway start` writes one; `openclaw gateway run` logs to stderr"));
    }
    let mut log = LogTail::at(path.clone());
    let mut lines = log.last(args.lines).map_err(failed)?;
    if output.json && !args.follow {
        output.value(&json!({ "file": path.to_string_lossy(), "lines": lines }));
        return Ok(Exit::Ok);
    }
    loop {
        for line in &lines {
            match output.json {
                true => output.document(&json!({ "line": line }).to_string()),
                false => output.line(printable(line)),
            }
        }
        output.flush();
        // Ctrl-C kills the process, which has no children.
        if !args.follow || output.has_failed() {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(POLL);
        lines = log.added().map_err(failed)?;
    }
}

/// Reads the end of the log, and what is added to it.
struct LogTail {
    path: PathBuf,
    position: u64,
}

impl LogTail {
    fn at(path: PathBuf) -> Self {
        Self { path, position: 0 }
    }

    /// A log of which only what is added from now on is read.
    fn at_end(path: PathBuf) -> Self {
        let position = path.metadata().map_or(0, |about| about.len());
        Self { path, position }
    }

    /// Returns the last lines.
    fn last(&mut self, count: usize) -> io::Result<Vec<String>> {
        let length = self.path.metadata().map_or(0, |about| about.len());
        self.position = length.saturating_sub(MAX_READ);
        let is_cut = self.position > 0;
        let mut lines = self.added()?;
        if is_cut && !lines.is_empty() {
            lines.remove(0);
        }
        Ok(lines.split_off(lines.len().saturating_sub(count)))
    }

    /// Returns the whole lines that were added since the last call.
    fn added(&mut self) -> io::Result<Vec<String>> {
        let mut file = match openclaw_files::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        // A shorter file is a new one.
        if file.metadata()?.len() < self.position {
            self.position = 0;
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        // A very long line is shown in parts.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let whole = end.unwrap_or(if bytes.len() as u64 == MAX_READ { bytes.len() } else { 0 });
        self.position += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        Ok(text.lines().map(ToOwned::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_lines_are_read_and_then_those_that_are_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.log");
        let mut log = LogTail::at(path.clone());
        assert_eq!(log.last(2).unwrap(), Vec::<String>::new());
        std::fs::write(&path, "one\ntwo\nthree\nfo").unwrap();
        assert_eq!(log.last(2).unwrap(), ["two", "three"]);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"ur\n").unwrap();
        assert_eq!(log.added().unwrap(), ["four"]);
        assert_eq!(log.added().unwrap(), Vec::<String>::new());
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(log.added().unwrap(), ["new"]);
    }
}
