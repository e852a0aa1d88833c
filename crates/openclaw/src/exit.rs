//! What the exit codes mean.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok = 0,
    /// What was asked for did not work.
    Failed = 1,
    /// The command line makes no sense. `clap` uses the same code.
    Usage = 2,
    /// A server is not available.
    Unavailable = 3,
    /// It is not allowed.
    Denied = 4,
    /// It took too long.
    TimedOut = 5,
    /// The configuration has errors (`EX_CONFIG` of sysexits.h).
    Config = 78,
    /// Somebody pressed Ctrl-C, or asked the process to end (128 and the number of SIGINT).
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
