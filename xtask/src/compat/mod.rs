//! `cargo xtask compat`: this program and the Node OpenClaw, whose package is too large for every test
//! run.

mod node_gateway;

use crate::peers;
use crate::shell::Failure;

pub(crate) fn run() -> Result<(), Failure> {
    let peers = peers::install()?;
    node_gateway::run(&peers)
}
