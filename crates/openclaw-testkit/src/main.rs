//! `openclaw-test-server`: an MCP server that behaves as its script says.

use std::process::ExitCode;

fn main() -> ExitCode {
    openclaw_testkit::run(std::env::args().skip(1))
}
