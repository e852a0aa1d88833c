//! Tasks of this repository: `cargo xtask test | bench | compat | conformance | docs | layers | peers | platforms`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "output for the terminal")]

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
  bench [NAME]   Run the benchmarks, and print their ratios to the baselines.
                 Names: content, call, http, catalogue, fleet, memory, cold, acp, agent, gateway,
                 hub
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
        ["bench", rest @ ..] => bench(rest),
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

/// A benchmark: its name, its package and target, and the arguments that select it.
struct Bench {
    name: &'static str,
    package: &'static str,
    target: &'static str,
    args: &'static [&'static str],
}

const fn engine(name: &'static str, args: &'static [&'static str]) -> Bench {
    Bench { name, package: "openclaw-mcp", target: "mcp", args }
}

const fn gateway(name: &'static str, args: &'static [&'static str]) -> Bench {
    Bench { name, package: "openclaw-gateway", target: "gateway", args }
}

const BENCHES: &[Bench] = &[
    Bench { name: "content", package: "openclaw-content", target: "wrap", args: &[] },
    engine("call", &["call"]),
    engine("http", &["http"]),
    engine("catalogue", &["catalogue"]),
    engine("fleet", &["fleet"]),
    engine("memory", &["memory"]),
    Bench { name: "cold", package: "openclaw", target: "cold", args: &[] },
    Bench { name: "acp", package: "openclaw", target: "acp", args: &[] },
    gateway("agent", &["agent"]),
    gateway("gateway", &["health", "chats"]),
    Bench { name: "gateway", package: "openclaw", target: "gateway", args: &[] },
    Bench { name: "hub", package: "openclaw", target: "hub", args: &[] },
];

/// Runs the benchmarks.
fn bench(names: &[&str]) -> Result<(), Failure> {
    let is_known = |name: &&&str| BENCHES.iter().any(|bench| bench.name == **name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(Failure::new(format!("unknown benchmark `{name}`")));
    }
    // `acp` starts real servers.
    let peers = peers::install()?;
    cargo("build")
        .args(["--quiet", "--profile", "bench", "--package", "openclaw-testkit"])
        .run()?;
    for Bench { name, package, target, args } in BENCHES {
        if names.is_empty() || names.contains(name) {
            println!("== {name} ==");
            let mut bench = cargo("bench");
            bench.args(["--quiet", "--package", package, "--bench", target, "--"]).args(*args);
            bench.env("OPENCLAW_PEERS", &peers).run()?;
        }
    }
    Ok(())
}
