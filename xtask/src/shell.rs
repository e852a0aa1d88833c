//! Running other programs, with failures that say which one failed.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a task failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A failure to do something with this file or folder.
pub(crate) fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// A folder under `target`, which is made, and held for this process alone until the guard is dropped:
/// two runs at once (a terminal, an editor) would spoil each other's.
pub(crate) fn hold(name: &str) -> Result<(PathBuf, File), Failure> {
    let folder = root().join("target").join(name);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let folder = folder.canonicalize().map_err(|error| failed(&folder, &error))?;
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|error| failed(&path, &error))?;
    lock.lock().map_err(|error| failed(&path, &error))?;
    Ok((folder, lock))
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The same cargo that runs this.
pub(crate) fn cargo(task: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.arg(task).current_dir(root());
    command
}

pub(crate) trait Run {
    /// Runs the command to its end; anything but success is a failure.
    fn run(&mut self) -> Result<(), Failure>;
}

impl Run for Command {
    fn run(&mut self) -> Result<(), Failure> {
        let name = self.get_program().to_string_lossy().into_owned();
        match self.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::new(format!("`{name}` failed: {status}"))),
            Err(error) => Err(Failure::new(format!("`{name}` cannot be run: {error}"))),
        }
    }
}
