//! The suite for servers, against a reference server with its fixtures: directly, and through the hub.
//! Every check that passes directly must pass through the hub.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::catalogue::scenario;
use super::suite::Suite;
use crate::peers;
use crate::shell::{Failure, Run as _, cargo, empty_folder, failed, hold, root};

/// The versions, and what the reference server is started as.
const VERSIONS: [(&str, &str); 2] = [("2025-11-25", "legacy"), ("2026-07-28", "modern")];
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

/// Runs all scenarios of both versions, and prints a table.
pub(super) fn run(filter: Option<&str>) -> Result<(), Failure> {
    let peers = peers::install()?;
    let suite = Suite::of(&peers);
    cargo("build").args(["--quiet", "--release", "--package", "openclaw"]).run()?;
    let (results, _lock) = hold("conformance")?;
    let listing = suite.list("--server")?;
    let mut problems = Vec::new();
    println!("{:<50}{:<12}{:>7}{:>5}  verdict", "scenario", "version", "direct", "hub");
    for (version, era) in VERSIONS {
        let folder = results.join(format!("hub-{era}"));
        let fixture = fixture(&suite, &peers, era)?;
        let hub = hub(&suite, &folder, &fixture.url)?;
        for scenario in scenarios(&listing, version) {
            let is_left_out = LEFT_OUT.iter().any(|beginning| scenario.starts_with(beginning));
            if is_left_out || filter.is_some_and(|filter| !scenario.contains(filter)) {
                continue;
            }
            let place = folder.join("results").join(scenario);
            let run = |url: &str, folder| {
                suite.run(&["server", "--url", url], scenario, version, &place.join(folder))
            };
            let (direct, through) = (run(&fixture.url, "direct")?, run(&hub.proxy.url, "hub")?);
            let word = match (direct.failed.is_empty(), through.failed.is_empty()) {
                (false, _) => "fails directly",
                (true, false) => "fails through the hub",
                (true, true) if through.passed < direct.passed => "fewer checks through the hub",
                (true, true) => "ok",
            };
            let (ours, theirs) = (through.passed, direct.passed);
            println!("{scenario:<50}{version:<12}{theirs:>7}{ours:>5}  {word}");
            direct.failed.iter().chain(&through.failed).for_each(|reason| println!("    {reason}"));
            if word != "ok" {
                problems.push(format!("{scenario} {version}: {word}; see {}", place.display()));
            }
        }
    }
    super::verdict(&problems)
}

/// The names of the scenarios of a version.
fn scenarios<'a>(listing: &'a str, version: &str) -> Vec<&'a str> {
    let listed = listing.lines().filter_map(scenario);
    listed.filter(|(_, versions)| versions.contains(&version)).map(|(name, _)| name).collect()
}

/// Starts the reference server.
fn fixture(suite: &Suite, peers: &Path, era: &str) -> Result<Running, Failure> {
    let script = root().join("crates/openclaw-testkit/peers/conformance_server.mjs");
    Running::start(suite.script(&script).arg(peers.join("node")).arg(era), "")
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

fn hub(suite: &Suite, state: &Path, server: &str) -> Result<Hub, Failure> {
    empty_folder(state)?;
    let entry = json!({
        "url": server, "approval": "never", "sampling": { "allow": "always" }, "roots": true,
    });
    let config = json!({ "mcp": { "servers": { "fixture": entry } } });
    let file = state.join("openclaw.json");
    fs::write(&file, config.to_string()).map_err(|error| failed(&file, &error))?;
    let name = format!("openclaw{}", std::env::consts::EXE_SUFFIX);
    let program = root().join("target/release").join(name);
    let mut command = Command::new(&program);
    command
        .args(["gateway", "run", "--port", "0"])
        .env("OPENCLAW_STATE_DIR", state)
        .env("OPENCLAW_KEYCHAIN", "off")
        .env_remove("OPENCLAW_CONFIG_PATH")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut gateway = command.spawn().map_err(|error| failed(&program, &error))?;
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
    use super::scenarios;

    #[test]
    fn scenarios_are_selected_by_version() {
        let listing =
            "Server scenarios:\n  - ping [2025-06-18,2025-11-25]\n  - caching [2026-07-28]\n";
        assert_eq!(scenarios(listing, "2025-11-25"), ["ping"]);
        assert_eq!(scenarios(listing, "2026-07-28"), ["caching"]);
    }
}
