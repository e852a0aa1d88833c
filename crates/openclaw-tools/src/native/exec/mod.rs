//! `exec`: runs a command in the workspace. It cannot be confined to paths, so it needs an
//! approval.

mod harmless;
mod output;
mod plain;
mod prefix;
mod process;
mod shell;

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_process::Guard;
use serde::Deserialize;
use tokio::time::timeout;

use super::reply::OutcomeBuilder;
use crate::grant::GrantRule;
use crate::outcome::ToolFailure;
use output::{StreamOutput, drain};
pub use prefix::{command_rule, prefix_applies};
use process::{ExecProcess, OutputPipes};

/// How long to wait for output after the command has exited and its descendants were killed: only a
/// process that escaped can still hold the pipes.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// Settings for running commands.
#[derive(Clone)]
pub struct ExecSettings {
    /// Timeout if the call does not specify one.
    pub timeout: Duration,
    /// Maximum timeout, whatever the call specifies.
    pub max_timeout: Duration,
    /// The shell: a POSIX shell, `PowerShell` or `cmd.exe`; `None` for that of the system.
    pub shell: Option<String>,
    /// Complete environment of commands. It should not contain secrets.
    pub environment: Vec<(String, String)>,
    /// Kills running commands if this process itself is killed.
    pub guard: Guard,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            shell: None,
            environment: Vec::new(),
            guard: Guard::none(),
        }
    }
}

impl fmt::Debug for ExecSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("ExecSettings")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("shell", &self.shell)
            .field("environment", &names)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecArguments {
    command: String,
    timeout_ms: Option<u64>,
}

/// Runs commands.
#[derive(Debug)]
pub(super) struct CommandTool {
    settings: ExecSettings,
    folder: PathBuf,
}

impl CommandTool {
    pub(super) fn new(settings: ExecSettings, folder: PathBuf) -> Self {
        Self { settings, folder }
    }

    /// Returns the approvals that cover a command, the narrowest first.
    pub(super) fn covering(&self, command: &str) -> Vec<GrantRule> {
        prefix::covering(command, &self.settings, &self.folder)
    }

    /// Returns the approvals to offer for a command, the narrowest first.
    pub(super) fn offered(&self, command: &str) -> Vec<GrantRule> {
        prefix::offered(command, &self.settings, &self.folder)
    }

    /// Runs a command to completion. Dropping the future kills it and all processes that it
    /// started.
    pub(super) async fn run(&self, asked: ExecArguments, max_chars: usize) -> OutcomeBuilder {
        let Self { settings, folder } = self;
        let spawned = ExecProcess::spawn(&asked.command, folder, settings);
        let (mut process, pipes) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                let why = match &settings.shell {
                    // The folder may be what is missing.
                    Some(shell) if error.kind() == ErrorKind::NotFound && folder.is_dir() => {
                        format!("the configured shell `{shell}` was not found")
                    }
                    _ => error.kind().to_string(),
                };
                return OutcomeBuilder::error(format!("Cannot start the command: {why}."));
            }
        };
        let limit = asked.timeout_ms.map_or(settings.timeout, Duration::from_millis);
        let limit = limit.min(settings.max_timeout);
        let (mut out, mut err) = (StreamOutput::default(), StreamOutput::default());
        let ended = timeout(limit, follow(&mut process, pipes, &mut out, &mut err)).await;
        process.end().await;
        let reply = match &ended {
            Ok(Ok(status)) if status.success() => OutcomeBuilder::default(),
            Ok(Ok(status)) => {
                OutcomeBuilder::default().marked_as_error(None).say(words_for(*status))
            }
            Ok(Err(_)) => OutcomeBuilder::error("The exit status of the command is not available."),
            Err(_) => {
                let words = format!(
                    "The command timed out after {} ms. It was killed, with all processes that it had started.",
                    limit.as_millis()
                );
                OutcomeBuilder::failed(ToolFailure::TimedOut, words)
            }
        };
        show(reply, &out, &err, max_chars)
    }
}

/// Reads the output of a process until it has exited.
async fn follow(
    process: &mut ExecProcess,
    pipes: OutputPipes,
    out: &mut StreamOutput,
    err: &mut StreamOutput,
) -> std::io::Result<ExitStatus> {
    let reading = async { tokio::join!(drain(pipes.stdout, out), drain(pipes.stderr, err)) };
    let mut reading = std::pin::pin!(reading);
    tokio::select! {
        status = process.ended() => {
            // Background processes would hold the pipes indefinitely.
            process.kill().await;
            let _ = timeout(STRAGGLERS, reading).await;
            status
        }
        _ = &mut reading => process.ended().await,
    }
}

fn words_for(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("The command exited with status {code}."),
        None => "The command was killed by a signal.".to_owned(),
    }
}

fn show(
    reply: OutcomeBuilder,
    out: &StreamOutput,
    err: &StreamOutput,
    max_chars: usize,
) -> OutcomeBuilder {
    if out.is_empty() && err.is_empty() {
        return reply.say("No output.");
    }
    // Each gets half of the limit, and what the other does not need.
    let half = max_chars / 2;
    let (out_chars, err_chars) = (out.chars(), err.chars());
    let room_for_err = half.max(max_chars.saturating_sub(out_chars));
    let room_for_out = max_chars.saturating_sub(err_chars.min(room_for_err));
    let mut text = String::new();
    let mut is_cut = out.push_to(&mut text, "stdout", room_for_out);
    is_cut |= err.push_to(&mut text, "stderr", room_for_err);
    let reply = reply.show(text.trim_end(), Source::Command);
    if !is_cut {
        return reply;
    }
    reply.cut().say("The output is too long: its middle part is omitted. Ask for less output.")
}
