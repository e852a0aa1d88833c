//! Runs the binary for benchmarks, with its own home, configuration and state folder.
//!
//! `OPENCLAW_BENCH_PROGRAM` selects another binary.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

/// The binary and its temporary folder.
pub(crate) struct Program {
    path: OsString,
    folder: TempDir,
}

impl Program {
    /// Creates a program whose configuration has these MCP servers.
    pub(crate) fn with_servers(servers: &Value) -> Self {
        Self::with(&serde_json::json!({ "mcp": { "servers": servers } }))
    }

    /// Creates a program with this configuration.
    pub(crate) fn with(config: &Value) -> Self {
        let path = std::env::var_os("OPENCLAW_BENCH_PROGRAM");
        let path = path.unwrap_or_else(|| env!("CARGO_BIN_EXE_openclaw").into());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("openclaw.json"), config.to_string()).unwrap();
        Self { path, folder }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .env_clear()
            .env("HOME", folder)
            .env("OPENCLAW_CONFIG_PATH", folder.join("openclaw.json"))
            .env("OPENCLAW_STATE_DIR", self.state())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command, and returns its output with the milliseconds from spawn to exit.
    pub(crate) fn run(&self, args: &[&str]) -> (f64, Output) {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        (start.elapsed().as_secs_f64() * 1e3, output)
    }

    /// Like [`run`](Self::run), but panics if the command fails.
    pub(crate) fn timed(&self, args: &[&str]) -> f64 {
        let (took, output) = self.run(args);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`openclaw {}`: {words}", args.join(" "));
        took
    }

    /// Returns the milliseconds from spawn to the answer to `initialize` of an MCP server.
    #[allow(dead_code, reason = "not every benchmark uses it")]
    pub(crate) fn greeted(&self, args: &[&str]) -> f64 {
        let start = Instant::now();
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let hello = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        } });
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{hello}").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        let took = start.elapsed().as_secs_f64() * 1e3;
        assert!(answer.contains("serverInfo"), "{answer}");
        drop(input);
        child.wait().unwrap();
        took
    }

    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// Deletes the state folder.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.state());
    }

    /// Whether the binary has this command.
    pub(crate) fn knows(&self, command: &[&str]) -> bool {
        let args = [command, &["--help"]].concat();
        self.run(&args).1.status.success()
    }
}
