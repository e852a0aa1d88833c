//! How the process starts and exits, what it leaves behind, and what it prints on stderr.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Script;

/// Start, exit, signals, children and stderr.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessScript {
    /// Lines printed on stderr at the start.
    pub stderr_lines: Vec<String>,
    /// The process exits with this code after printing its stderr lines, before it reads anything.
    pub exit_at_start: Option<i32>,
    /// Only this many first starts exit (with `exit_at_start`, or 1); `state_file` counts them.
    pub failing_starts: u32,
    /// The file that counts the starts, one byte each.
    pub state_file: Option<PathBuf>,
    /// The delay before the process begins to read, in milliseconds.
    pub start_delay_ms: u64,
    /// SIGTERM is ignored.
    pub ignore_sigterm: bool,
    /// The process keeps running when stdin is closed.
    pub ignore_stdin_close: bool,
    /// A child of the server that sleeps.
    pub grandchild: Option<Grandchild>,
    /// Megabytes of text printed on stderr before the process begins to read.
    pub stderr_mb: usize,
    /// A line on stderr for every call.
    pub stderr_per_call: bool,
}

/// A process that the server spawns and does not reap: it sleeps for ten minutes.
///
/// Its pid is printed on stderr as `grandchild PID` and is part of the result of the tool `pids`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grandchild {
    /// It ignores SIGTERM.
    pub ignore_sigterm: bool,
    /// It keeps the server's stdout and stderr open, so that they do not reach EOF.
    pub hold_pipes: bool,
}

setters! { process:
    /// Exits with this code before reading anything.
    exit_at_start(code: i32) => exit_at_start = Some(code);
    /// Waits before reading.
    start_delay_ms(ms: u64) => start_delay_ms = ms;
    /// Ignores SIGTERM.
    ignore_sigterm() => ignore_sigterm = true;
    /// Keeps running when stdin is closed.
    ignore_stdin_close() => ignore_stdin_close = true;
    /// Spawns a sleeping child with these options.
    grandchild_like(grandchild: Grandchild) => grandchild = Some(grandchild);
    /// Prints this many megabytes on stderr before reading.
    stderr_mb(megabytes: usize) => stderr_mb = megabytes;
    /// Prints a line on stderr for every call.
    stderr_per_call() => stderr_per_call = true;
}

impl Script {
    /// Prints a line on stderr at the start.
    pub fn stderr_line(mut self, line: impl Into<String>) -> Self {
        self.process.stderr_lines.push(line.into());
        self
    }

    /// Exits at the first `count` starts, and runs from then on; `state_file` counts the starts.
    pub fn failing_starts(mut self, count: u32, state_file: impl Into<PathBuf>) -> Self {
        self.process.failing_starts = count;
        self.process.state_file = Some(state_file.into());
        self
    }

    /// Spawns a sleeping child in the same process group.
    pub fn grandchild(self) -> Self {
        self.grandchild_like(Grandchild::default())
    }
}
