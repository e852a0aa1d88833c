//! The binary, with a known environment.

use std::path::Path;
use std::process::{Command, Stdio};

/// Variables of the developer that would change what the binary does, or make it use a real model.
const UNSET: [&str; 5] = [
    "OPENCLAW_LOG",
    "OPENCLAW_CONFIG_PATH",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
];

/// Returns a command that runs the binary with these arguments and this state folder. Its output is
/// piped.
pub(crate) fn openclaw(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
    command
        .args(args)
        .env("HOME", "/home/user")
        .env("OPENCLAW_STATE_DIR", state)
        .env("NO_COLOR", "1")
        // No test uses the keychain of the user.
        .env("OPENCLAW_KEYCHAIN", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in UNSET {
        command.env_remove(name);
    }
    command
}
