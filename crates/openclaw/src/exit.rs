//! The exit codes.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// The command failed, or it found problems.
    Failed = 1,
    /// The command line or its arguments are invalid. `clap` uses the same code.
    Usage = 2,
    /// A server or the gateway is not available.
    Unavailable = 3,
    /// The call is not allowed.
    Denied = 4,
    /// The call timed out.
    TimedOut = 5,
    /// The user must log in at a server (`EX_NOPERM` of sysexits.h).
    NeedsLogin = 77,
    /// The configuration has errors (`EX_CONFIG` of sysexits.h).
    Config = 78,
    /// Interrupted by Ctrl-C or a signal (128 + SIGINT).
    Interrupted = 130,
}

impl Exit {
    /// The name of the code in JSON output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::TimedOut => "timedOut",
            Self::NeedsLogin => "needsLogin",
            Self::Config => "config",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
