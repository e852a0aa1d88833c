//! Servers for tests: a command line, or a process that is killed when the test ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::processes::KillGroup;
use crate::script::Script;

/// Longer scripts do not fit into one argument (Linux: 128 KiB).
const LONGEST_ARGUMENT: usize = 100_000;

/// Creates test servers. Its functions panic if their binary is not built (cargo does not build the
/// binaries of a dependency by itself), or does not start.
#[derive(Debug)]
pub struct TestServer;

impl TestServer {
    /// Returns the program and the arguments of a stdio server with this script.
    pub fn stdio(script: &Script) -> (PathBuf, Vec<String>) {
        (Self::program(), vec!["stdio".into(), "--script".into(), argument(script)])
    }

    /// Like [`stdio`](Self::stdio), with the script in this file: another script makes no other
    /// command line, as when a server is updated.
    pub fn stdio_from(file: &Path, script: &Script) -> (PathBuf, Vec<String>) {
        let written = std::fs::write(file, script.to_json());
        assert!(written.is_ok(), "cannot write {}: {written:?}", file.display());
        let file = file.display().to_string();
        (Self::program(), vec!["stdio".into(), "--script".into(), file])
    }

    /// Starts an HTTP server with this script.
    pub fn http(script: &Script) -> HttpServer {
        Self::http_on(0, script)
    }

    /// Like [`http`](Self::http), on this port, for servers that restart or start late.
    pub fn http_on(port: u16, script: &Script) -> HttpServer {
        let arguments = [
            "http",
            "--exit-with-stdin",
            "--port",
            &port.to_string(),
            "--script",
            &argument(script),
        ]
        .map(str::to_owned);
        let mut child = spawn(Command::new(Self::program()).args(arguments));
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _ = BufReader::new(stdout).read_line(&mut url);
        }
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://"), "the test server did not start; see its stderr");
        HttpServer { group: KillGroup(child.id()), child, url }
    }

    /// Returns the path of the binary: `OPENCLAW_TEST_SERVER`, or next to the running test.
    #[expect(clippy::panic, reason = "a test cannot continue without it")]
    pub fn program() -> PathBuf {
        if let Some(path) = std::env::var_os("OPENCLAW_TEST_SERVER") {
            return path.into();
        }
        let name = format!("openclaw-test-server{}", std::env::consts::EXE_SUFFIX);
        // target/debug/deps/TEST or target/debug/PROGRAM
        let test = std::env::current_exe().unwrap_or_default();
        test.ancestors()
            .skip(1)
            .take(2)
            .map(|folder| folder.join(&name))
            .find(|path| path.is_file())
            .unwrap_or_else(|| {
                panic!(
                    "no {name} near {}: run `cargo build -p openclaw-testkit` first (with the \
                     profile of the test: `--release` for benches), or set OPENCLAW_TEST_SERVER",
                    test.display()
                )
            })
    }
}

/// Returns the script as an argument; a long one is passed as a file in the temporary folder, named
/// by the hash of its content.
fn argument(script: &Script) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let json = script.to_json();
    if json.len() < LONGEST_ARGUMENT {
        return json;
    }
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    let path = std::env::temp_dir().join(format!("openclaw-script-{:016x}.json", hasher.finish()));
    // If this fails, the server reports the missing file.
    let _ = std::fs::write(&path, json);
    path.display().to_string()
}

/// Spawns a process in its own process group, with pipes for stdin and stdout.
#[expect(clippy::panic, reason = "a test cannot continue without it")]
pub(crate) fn spawn(command: &mut Command) -> Child {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

/// A running HTTP server; it is killed when this value is dropped, and exits with the test process.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    group: KillGroup,
    url: String,
}

impl HttpServer {
    /// Returns the Streamable HTTP endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the endpoint of the old HTTP+SSE transport.
    pub fn sse_url(&self) -> String {
        format!("{}sse", self.url.trim_end_matches("mcp"))
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        let rest = self.url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp");
        rest.parse().unwrap_or_default()
    }

    /// Returns the pid, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.group.0
    }

    /// Kills the server and waits until it has exited, so that its port is free.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end();
    }
}
