//! `exec`: a command in the workspace. It cannot be confined by path, so that somebody has to agree.

mod output;
mod process;

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::Source;
use serde::Deserialize;
use tokio::time::timeout;

use super::reply::Reply;
use crate::outcome::Failure;
use output::{Output, drain};
use process::{Pipes, Process};

/// How long output is waited for once the command has ended and its group was killed: only somebody who
/// left the group can still hold it.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// Somebody who is told of each process group, and holds on to it until what is returned is dropped:
/// whoever ends the group should this program itself be killed.
pub type Watch = Arc<dyn Fn(u32) -> Box<dyn Any + Send + Sync> + Send + Sync>;

/// How commands are run.
#[derive(Clone)]
pub struct ExecSettings {
    /// How long a command may take if the call does not say.
    pub timeout: Duration,
    /// How long it may take at most, whatever the call says.
    pub max_timeout: Duration,
    /// The whole environment of commands. There should be no secrets in it.
    pub environment: Vec<(String, String)>,
    /// Who watches over what is running.
    pub watch: Option<Watch>,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            environment: Vec::new(),
            watch: None,
        }
    }
}

impl fmt::Debug for ExecSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("ExecSettings")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("environment", &names)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    command: String,
    timeout_ms: Option<u64>,
}

/// Runs commands.
#[derive(Debug)]
pub(super) struct Exec {
    settings: ExecSettings,
    folder: PathBuf,
}

impl Exec {
    pub(super) fn new(settings: ExecSettings, folder: PathBuf) -> Self {
        Self { settings, folder }
    }

    /// Runs a command to its end. Dropping the future kills it, and all that it started.
    pub(super) async fn run(&self, asked: Arguments, max_chars: usize) -> Reply {
        let Self { settings, folder } = self;
        let spawned = Process::spawn(&asked.command, folder, &settings.environment);
        let (mut process, pipes) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                return Reply::error(format!("Cannot start the command: {}.", error.kind()));
            }
        };
        let _watched = settings.watch.as_ref().map(|watch| watch(process.group()));
        let limit = asked.timeout_ms.map_or(settings.timeout, Duration::from_millis);
        let limit = limit.min(settings.max_timeout);
        let (mut out, mut err) = (Output::default(), Output::default());
        let ended = timeout(limit, follow(&mut process, pipes, &mut out, &mut err)).await;
        process.end().await;
        let reply = match &ended {
            Ok(Ok(status)) if status.success() => Reply::default(),
            Ok(Ok(status)) => Reply::default().marked_as_error(None).say(words_for(*status)),
            Ok(Err(_)) => Reply::error("The exit status of the command is not available."),
            Err(_) => {
                let words = format!(
                    "The command timed out after {} ms. It was killed, with all its child processes.",
                    limit.as_millis()
                );
                Reply::failed(Failure::TimedOut, words)
            }
        };
        show(reply, &out, &err, max_chars)
    }
}

/// Reads what a process prints until it has ended.
async fn follow(
    process: &mut Process,
    pipes: Pipes,
    out: &mut Output,
    err: &mut Output,
) -> std::io::Result<ExitStatus> {
    let reading = async { tokio::join!(drain(pipes.stdout, out), drain(pipes.stderr, err)) };
    let mut reading = std::pin::pin!(reading);
    tokio::select! {
        status = process.ended() => {
            // Whoever it left behind would hold the pipes for as long as it likes.
            process.kill();
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

fn show(reply: Reply, out: &Output, err: &Output, max_chars: usize) -> Reply {
    if out.is_empty() && err.is_empty() {
        return reply.say("No output.");
    }
    // Each gets half of the room, and what the other does not need.
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
