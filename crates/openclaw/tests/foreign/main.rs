//! The front ends on a gateway of another program: a forged one that answers like the Node OpenClaw, and
//! the real one where it is installed.

#![cfg(target_os = "linux")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are passed")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../acp/editor.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod editor;
mod forged;
#[path = "../mcp_server/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod mcp_client;
mod node_gateway;
mod options;
mod publishing;

use std::process::{Output, Stdio};

use editor::Place;

/// Runs a command to its end.
fn run(place: &Place, args: &[&str]) -> Output {
    run_with(place, args, &[])
}

/// Runs a command to its end, with these variables.
fn run_with(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = place.command(args);
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
