//! A folder that is home, state folder and working folder of the binary under test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use openclaw_testkit::{Peers, processes};
use serde_json::Value;

use super::gateway::RunningGateway;
use super::{LONG, clean};

/// A folder with a configuration and the state.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    /// Creates a folder with this configuration.
    pub(crate) fn configured(config: &Value) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets a known environment.
    pub(crate) fn prepare<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let folder = self.folder.path();
        clean(command).current_dir(folder).env("HOME", folder).env("OPENCLAW_STATE_DIR", folder)
    }

    /// Returns a command that runs the binary with these arguments, without stdin.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
        self.prepare(command.args(args)).stdin(Stdio::null());
        command
    }

    /// Starts a gateway on any port.
    pub(crate) fn gateway(&self) -> RunningGateway {
        RunningGateway::start(self.command(&["gateway", "run", "--port", "0"]), self.folder.path())
    }

    /// Returns a command that runs a script with Node.js. It can import the packages of the peers.
    #[cfg(unix)]
    pub(crate) fn node(&self, script: &str) -> Command {
        let peers = Peers::find();
        let modules = openclaw_files::canonical(peers.node_modules()).unwrap();
        let _ = std::os::unix::fs::symlink(modules, self.path("node_modules"));
        std::fs::write(self.path("client.mjs"), script).unwrap();
        let mut command = Command::new(peers.node());
        self.prepare(command.arg(self.path("client.mjs"))).stdin(Stdio::null());
        command
    }

    /// Returns a command that runs a script with Python. It can import the SDKs.
    pub(crate) fn python(&self, script: &str) -> Command {
        let file = self.path("client.py");
        std::fs::write(&file, script).unwrap();
        let mut command = Peers::find().python_with_sdk(&[file.to_str().unwrap()]).command();
        self.prepare(&mut command).stdin(Stdio::null());
        command
    }

    /// Asserts that no process with this folder in its command line is left.
    pub(crate) fn assert_nothing_left(&self) {
        let tag = self.folder.path().to_str().unwrap();
        let left = processes::wait_until_none(LONG, || processes::mentioning(tag));
        assert_eq!(left, Vec::<u32>::new());
    }
}
