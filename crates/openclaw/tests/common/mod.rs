//! The binary under test, with a known environment.

#![allow(dead_code, clippy::needless_pass_by_value, reason = "each test uses a part of it")]

pub(crate) mod gateway;
pub(crate) mod place;
pub(crate) mod rpc;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A generous timeout: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Variables of the developer that would change what the binary does, or make it use a real model.
const UNSET: [&str; 6] = [
    "OPENCLAW_LOG",
    "OPENCLAW_CONFIG_PATH",
    "OPENCLAW_GATEWAY_TOKEN",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
];

/// Removes the variables of the developer.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    for name in UNSET {
        command.env_remove(name);
    }
    // No test uses the keychain of the user.
    command.env("OPENCLAW_KEYCHAIN", "off").env("NO_COLOR", "1")
}

/// Sends a signal to a process.
#[cfg(unix)]
pub(crate) fn signal(process: u32, signal: nix::sys::signal::Signal) {
    let process = nix::unistd::Pid::from_raw(process.try_into().unwrap());
    nix::sys::signal::kill(process, signal).unwrap();
}

/// Returns a figure of a process, in KB, from `/proc`: `VmRSS`, `VmHWM` or `RssAnon`.
pub(crate) fn memory(process: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Runs a command with this input, and returns its output.
pub(crate) fn run_with(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The write fails once the program has closed the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Returns the exit code, stdout and stderr of a command.
pub(crate) fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns a command that runs the binary with these arguments and this state folder. Its output is
/// piped.
pub(crate) fn openclaw(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
    clean(&mut command)
        .args(args)
        .env("HOME", "/home/user")
        .env("OPENCLAW_STATE_DIR", state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
