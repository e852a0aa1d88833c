//! Tasks of this repository: `cargo xtask test | bench | build-cost | compat | conformance | docs | layers | peers | platforms`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "output for the terminal")]

mod benches;
#[cfg(unix)]
mod build_cost;
mod compat;
mod conformance;
mod layers;
// Two unit tests of the repository: for integration tests, cargo would rebuild this program's binary
// while it runs.
#[cfg(test)]
mod names;
mod peers;
#[cfg(unix)]
mod platforms;
mod programs;
#[cfg(test)]
mod requirements;
mod shell;
mod tests;

use std::process::ExitCode;

use shell::{Failure, Run as _, cargo};

const HELP: &str = "Usage: cargo xtask TASK

Tasks:
  test [ARGS]    Install the test dependencies into target/peers, then run all tests.
                 ARGS go to `cargo test`, as in `cargo xtask test -p openclaw-config`.
  bench [--smoke] [NAME]
                 Run the benchmarks of the release build, and print their ratios to the baselines.
                 With --smoke, only show that each one works: one round, in the build of the tests.
                 Names: content, call, http, catalogue, fleet, memory, cold, acp, agent, gateway,
                 hub
  build-cost [ARGS]
                 Build `openclaw` in an empty folder, and print the processor time of its most
                 expensive packages. ARGS go to `cargo build`, as in `build-cost --release`.
                 Not on Windows.
  compat [NAME]  Run the front ends of the Node OpenClaw (npm) against our gateway, and check every
                 frame of the gateway against the published schema; run ours against its gateway.
                 Linux only.
                 Names: agent, \"agent --model\", status, health, \"gateway call\", \"gateway probe\",
                 \"mcp serve\", acp, tui, pages, \"control ui\"
  conformance [FILTER] [--client COMMAND]
                 Run the official MCP conformance suite against our client (or COMMAND), each
                 scenario alone, and compare with the reference. Keep the machine idle meanwhile.
  conformance --server [FILTER] [--program FILE]
                 Run the suite for servers against a reference server, directly and through the hub
                 (of FILE), with clients and servers of all eras.
  docs           Regenerate docs/configuration-reference.md.
  layers [--paths]
                 List the cycles among the top-level modules of each crate (with --paths, what makes
                 them), and fail on new ones.
  peers [--all]  Only install the test dependencies; with --all, those of `compat`, too.
  platforms [TARGET]...
                 Check that everything compiles, without warnings, for Windows (msvc), macOS (arm64),
                 Linux (arm64) and musl. Targets that `rustup` has not installed need the nightly
                 compiler and Debian's packages. About ten minutes at first. Not on Windows.
  platforms --run
                 Build the Windows program (gnu) and run commands of it under Wine.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test", rest @ ..] => test(rest),
        ["bench", rest @ ..] => benches::run(rest),
        #[cfg(unix)]
        ["build-cost", rest @ ..] => build_cost::run(rest),
        #[cfg(unix)]
        ["measure", command @ ..] => return build_cost::measure(command),
        ["compat", rest @ ..] => compat::run(rest),
        ["conformance", rest @ ..] => conformance::run(rest),
        ["docs"] => docs(),
        ["layers", rest @ ..] => layers::run(rest),
        #[cfg(unix)]
        ["platforms", rest @ ..] => platforms::run(rest),
        ["peers"] => peers::install().map(drop),
        ["peers", "--all"] => peers::install().and_then(|_| peers::install_compat()).map(drop),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every test, or those that `cargo test` selects with these arguments, against real peers.
fn test(args: &[&str]) -> Result<(), Failure> {
    if args.is_empty() {
        return tests::run_all();
    }
    let peers = peers::install()?;
    // Tests of other crates start it; cargo does not build the binaries of a dependency by itself.
    cargo("build").args(["--package", "openclaw-testkit"]).run()?;
    cargo("test").arg("--all-features").args(args).env("OPENCLAW_PEERS", peers).run()
}

/// Writes the generated documentation, by running the test that checks it.
fn docs() -> Result<(), Failure> {
    let test = ["--package", "openclaw-config", "--test", "it", "reference::"];
    cargo("test").arg("--quiet").args(test).env("UPDATE_REFERENCE", "1").run()
}
