//! The program, as benchmarks start it: with a home, a configuration and a state folder of its own.
//!
//! It is built as for a release but for its links between crates; another one is measured with
//! `OPENCLAW_BENCH_PROGRAM`.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

/// The program and its folder.
pub(crate) struct Program {
    path: OsString,
    folder: TempDir,
}

impl Program {
    /// With these MCP servers.
    pub(crate) fn with_servers(servers: &Value) -> Self {
        let path = std::env::var_os("OPENCLAW_BENCH_PROGRAM");
        let path = path.unwrap_or_else(|| env!("CARGO_BIN_EXE_openclaw").into());
        let folder = tempfile::tempdir().unwrap();
        let config = serde_json::json!({ "mcp": { "servers": servers } });
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

    /// Milliseconds from before the start until all is read and the process is gone.
    pub(crate) fn run(&self, args: &[&str]) -> (f64, Output) {
        let start = Instant::now();
        let output = self.command(args).output().unwrap();
        (start.elapsed().as_secs_f64() * 1e3, output)
    }

    /// The same for what must go well.
    pub(crate) fn timed(&self, args: &[&str]) -> f64 {
        let (took, output) = self.run(args);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`openclaw {}`: {words}", args.join(" "));
        took
    }

    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// As if it had never run.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.state());
    }

    /// Whether there is such a command.
    pub(crate) fn knows(&self, command: &[&str]) -> bool {
        let args = [command, &["--help"]].concat();
        self.run(&args).1.status.success()
    }
}

/// The load of the machine, as the system tells it.
pub(crate) fn load() -> String {
    std::fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default().trim().to_owned()
}

/// A budget, and whether it is met.
pub(crate) fn verdict(value: f64, budget: f64) -> String {
    let met = if value <= budget { "met" } else { "MISSED" };
    format!("budget {budget}: {met}")
}
