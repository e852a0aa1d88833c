//! The suite for servers, against a reference server with its fixtures: directly, and through the hub,
//! with clients and servers of the same era and of different ones. Every check that passes directly must
//! pass through the hub, unless [`reach`] says why it cannot.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::catalogue::scenario;
use super::outcome::Outcome;
use super::reach::{self, Pair, ServerEra};
use super::suite::Suite;
use crate::peers;
use crate::shell::{Failure, Run as _, cargo, empty_folder, failed, hold, root};

/// Name prefixes of scenarios that are not run: extensions that the reference server does not
/// implement.
const LEFT_OUT: [&str; 2] = ["tasks-", "sep-2640-"];
/// How long a process may take to start.
const START: Duration = Duration::from_secs(30);

/// A process that exits when its stdin closes, and is killed on drop.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    /// The first line of its output: its address.
    url: String,
}

impl Running {
    fn start(command: &mut Command, input: &str) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let cannot = |error: &std::io::Error| Failure::new(format!("cannot run `{name}`: {error}"));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| cannot(&error))?;
        let mut stdin = child.stdin.take();
        if let Some(stdin) = &mut stdin {
            stdin.write_all(input.as_bytes()).map_err(|error| cannot(&error))?;
        }
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut url);
        }
        Ok(Self { child, input: stdin, url: url.trim().to_owned() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command-line options.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ServerOptions<'a> {
    /// Run only scenarios whose names contain this.
    filter: Option<&'a str>,
    /// Another build of `openclaw`.
    program: Option<&'a str>,
}

impl<'a> ServerOptions<'a> {
    pub(super) fn read(mut args: &[&'a str]) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some((first, rest)) = args.split_first() {
            args = rest;
            if *first == "--program" {
                let (program, rest) =
                    rest.split_first().ok_or_else(|| Failure::new("--program needs a file"))?;
                options.program = Some(program);
                args = rest;
            } else if first.starts_with('-') || options.filter.is_some() {
                return Err(Failure::new(format!(
                    "unexpected argument `{first}`; see `cargo xtask help`"
                )));
            } else {
                options.filter = Some(first);
            }
        }
        Ok(options)
    }
}

/// Runs all scenarios with all pairs of a client and a server, and prints a table.
pub(super) fn run(options: &ServerOptions<'_>) -> Result<(), Failure> {
    let peers = peers::install()?;
    let suite = Suite::of(&peers);
    let program = match options.program {
        Some(program) => root().join(program),
        None => build()?,
    };
    let (results, _lock) = hold("conformance")?;
    let listing = suite.list("--server")?;
    let fixtures = [ServerEra::Legacy, ServerEra::Modern].map(|era| fixture(&suite, &peers, era));
    let [legacy, modern] = fixtures;
    let (legacy, modern) = (legacy?, modern?);
    let fixture_of = |era| if era == ServerEra::Legacy { &legacy } else { &modern };
    let mut problems = Vec::new();
    let mut direct = HashMap::new();
    println!(
        "{:<46}{:<12}{:<8}{:>7}{:>6}  verdict",
        "scenario", "client", "server", "direct", "hub"
    );
    for pair in reach::PAIRS {
        let Pair { version, server } = pair;
        let folder = results.join(format!("hub-{version}-{}", server.name()));
        let hub = hub(&suite, &program, &folder, &fixture_of(server).url)?;
        for scenario in scenarios(&listing, version) {
            let is_left_out = LEFT_OUT.iter().any(|beginning| scenario.starts_with(beginning));
            if is_left_out || options.filter.is_some_and(|filter| !scenario.contains(filter)) {
                continue;
            }
            let place = folder.join("results").join(scenario);
            let run = |url: &str, folder| {
                suite.run(&["server", "--url", url], scenario, version, &place.join(folder))
            };
            // A server is reached directly by clients of its own era only.
            let direct = match direct.entry((scenario, version)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let same = fixture_of(ServerEra::of(version));
                    unknown.insert(run(&same.url, "direct")?)
                }
            };
            let through = run(&hub.proxy.url, "hub")?;
            let exception = reach::exception(pair, scenario);
            let word = verdict(direct, &through, exception.map(|it| it.passed));
            let (ours, theirs) = (through.passed, direct.passed);
            let server = server.name();
            println!("{scenario:<46}{version:<12}{server:<8}{theirs:>7}{ours:>6}  {word}");
            if let Some(exception) = exception {
                println!("    {}", exception.reason);
            }
            let unexpected = if word == "ok" { &[][..] } else { &through.failed };
            direct.failed.iter().chain(unexpected).for_each(|reason| println!("    {reason}"));
            if word != "ok" {
                let place = place.display();
                problems.push(format!("{scenario} {version} {server}: {word}; see {place}"));
            }
        }
    }
    super::verdict(&problems)
}

/// Compares an outcome through the hub with the direct one, or with what the pair can reach.
fn verdict(direct: &Outcome, through: &Outcome, reach: Option<usize>) -> &'static str {
    match (direct.failed.is_empty(), reach) {
        (false, _) => "fails directly",
        (true, None) if !through.failed.is_empty() => "fails through the hub",
        (true, None) if through.passed < direct.passed => "fewer checks through the hub",
        (true, Some(reach)) if through.passed < reach => "below what the pair can reach",
        (true, Some(_)) if through.passed >= direct.passed && through.failed.is_empty() => {
            "passes: the table of what the pair can reach is out of date"
        }
        (true, _) => "ok",
    }
}

fn build() -> Result<PathBuf, Failure> {
    cargo("build").args(["--quiet", "--release", "--package", "openclaw"]).run()?;
    let name = format!("openclaw{}", std::env::consts::EXE_SUFFIX);
    Ok(root().join("target/release").join(name))
}

/// The names of the scenarios of a version.
fn scenarios<'a>(listing: &'a str, version: &str) -> Vec<&'a str> {
    let listed = listing.lines().filter_map(scenario);
    listed.filter(|(_, versions)| versions.contains(&version)).map(|(name, _)| name).collect()
}

/// Starts the reference server.
fn fixture(suite: &Suite, peers: &Path, era: ServerEra) -> Result<Running, Failure> {
    let script = root().join("crates/openclaw-testkit/peers/conformance_server.mjs");
    Running::start(suite.script(&script).arg(peers.join("node")).arg(era.name()), "")
}

/// A gateway with the reference server behind it, and what adds its token to requests.
struct Hub {
    gateway: Child,
    proxy: Running,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

fn hub(suite: &Suite, program: &Path, state: &Path, server: &str) -> Result<Hub, Failure> {
    empty_folder(state)?;
    let entry = json!({
        "url": server, "approval": "never", "sampling": { "allow": "always" }, "roots": true,
    });
    let config = json!({ "mcp": { "servers": { "fixture": entry } } });
    let file = state.join("openclaw.json");
    fs::write(&file, config.to_string()).map_err(|error| failed(&file, &error))?;
    let mut command = Command::new(program);
    command
        .args(["gateway", "run", "--port", "0"])
        .env("OPENCLAW_STATE_DIR", state)
        .env("OPENCLAW_KEYCHAIN", "off")
        .env_remove("OPENCLAW_CONFIG_PATH")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut gateway = command.spawn().map_err(|error| failed(program, &error))?;
    let end = Instant::now() + START;
    let running: Value = loop {
        let text = fs::read_to_string(state.join("gateway.json")).unwrap_or_default();
        if let Ok(running) = serde_json::from_str(&text) {
            break running;
        }
        if Instant::now() > end || gateway.try_wait().is_ok_and(|status| status.is_some()) {
            let _ = gateway.kill();
            return Err(Failure::new("the gateway does not start"));
        }
        thread::sleep(Duration::from_millis(20));
    };
    let text = |key: &str| running[key].as_str().unwrap_or_default().to_owned();
    let url = text("url").replace("ws://", "http://");
    // Unwrapped; with one server, names are those of the server.
    let url = format!("{}/mcp?wrap=false", url.trim_end_matches('/'));
    let script = root().join("xtask/src/conformance/proxy.mjs");
    let proxy = Running::start(suite.script(&script).arg(url), &format!("{}\n", text("token")));
    match proxy {
        Ok(proxy) => Ok(Hub { gateway, proxy }),
        Err(error) => {
            let _ = gateway.kill();
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use super::*;

    #[test]
    fn scenarios_are_selected_by_version() {
        let listing =
            "Server scenarios:\n  - ping [2025-06-18,2025-11-25]\n  - caching [2026-07-28]\n";
        assert_eq!(scenarios(listing, "2025-11-25"), ["ping"]);
        assert_eq!(scenarios(listing, "2026-07-28"), ["caching"]);
    }

    #[test]
    fn a_filter_and_another_build_are_parsed() {
        let options = ServerOptions::read(&["--program", "target/debug/openclaw", "ping"]).unwrap();
        let expected =
            ServerOptions { filter: Some("ping"), program: Some("target/debug/openclaw") };
        assert_eq!(options, expected);
        assert!(ServerOptions::read(&["--program"]).is_err());
        assert!(ServerOptions::read(&["one", "two"]).is_err());
    }

    #[test]
    fn a_pair_must_reach_what_passes_directly_or_what_the_table_says() {
        let outcome = |passed, failed: &[&str]| {
            let failed = failed.iter().map(|reason| (*reason).to_owned()).collect();
            Outcome { passed, failed, ..Outcome::default() }
        };
        let direct = outcome(3, &[]);
        for (through, reach, word) in [
            (outcome(3, &[]), None, "ok"),
            (outcome(2, &["x"]), None, "fails through the hub"),
            (outcome(2, &[]), None, "fewer checks through the hub"),
            (outcome(2, &["x"]), Some(2), "ok"),
            (outcome(1, &["x"]), Some(2), "below what the pair can reach"),
            (
                outcome(3, &[]),
                Some(2),
                "passes: the table of what the pair can reach is out of date",
            ),
        ] {
            assert_eq!(verdict(&direct, &through, reach), word);
        }
        assert_eq!(verdict(&outcome(0, &["x"]), &direct, None), "fails directly");
    }
}
