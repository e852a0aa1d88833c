//! Runs the benchmarks.

use std::process::Command;

use crate::peers;
use crate::programs::{self, Program};
use crate::shell::{Failure, Run as _, cargo};

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

const fn program(name: &'static str) -> Bench {
    Bench { name, package: "openclaw", target: name, args: &[] }
}

const BENCHES: [Bench; 12] = [
    Bench { name: "content", package: "openclaw-content", target: "wrap", args: &[] },
    engine("call", &["call"]),
    engine("http", &["http"]),
    engine("catalogue", &["catalogue"]),
    engine("fleet", &["fleet"]),
    engine("memory", &["memory"]),
    program("cold"),
    program("acp"),
    gateway("agent", &["agent"]),
    gateway("gateway", &["health", "chats"]),
    program("gateway"),
    program("hub"),
];

/// Runs the benchmarks of the release build, or, with `--smoke`, one short round of each in the build of the
/// tests.
pub(crate) fn run(args: &[&str]) -> Result<(), Failure> {
    let (smoke, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|it| **it == "--smoke");
    let is_smoke = !smoke.is_empty();
    let is_known = |name: &&&str| BENCHES.iter().any(|bench| bench.name == **name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(Failure::new(format!("unknown benchmark `{name}`")));
    }
    // Some start real servers.
    let peers = peers::install()?;
    let chosen: Vec<&Bench> =
        BENCHES.iter().filter(|it| names.is_empty() || names.contains(&it.name)).collect();
    let programs = build(&chosen, is_smoke)?;
    for Bench { name, package, target, args } in chosen {
        let is_meant = |it: &&Program| it.package == *package && it.target == *target;
        let Some(program) = programs.iter().find(is_meant) else {
            return Err(Failure::new(format!("{package} has no benchmark `{target}`")));
        };
        println!("== {name} ==");
        let mut bench = Command::new(&program.path);
        bench.args(*args).current_dir(&program.folder).env("OPENCLAW_PEERS", &peers);
        if is_smoke {
            bench.env("OPENCLAW_BENCH_SMOKE", "1");
        }
        bench.run()?;
    }
    Ok(())
}

/// Builds the benchmarks, and the servers and programs that they start.
fn build(chosen: &[&Bench], is_smoke: bool) -> Result<Vec<Program>, Failure> {
    let profile = if is_smoke { "dev" } else { "release" };
    let servers = ["--quiet", "--profile", profile, "--package", "openclaw-testkit"];
    cargo("build").args(servers).run()?;
    if is_smoke {
        let mut build = cargo("test");
        return programs::build(build.args(["--workspace", "--all-features", "--benches"]));
    }
    let mut built = Vec::new();
    for bench in chosen {
        let mut build = cargo("bench");
        build.args(["--quiet", "--package", bench.package, "--bench", bench.target]);
        built.extend(programs::build(&mut build)?);
    }
    Ok(built)
}
