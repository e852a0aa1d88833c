//! Runs other programs, with errors that name the program.

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

/// Returns the failure of an operation on this path.
pub(crate) fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// Creates a folder, without what an earlier run left in it.
pub(crate) fn empty_folder(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

/// Creates a folder under `target` and locks it until the returned file is dropped: concurrent runs (a
/// terminal, an editor) would overwrite each other's files.
pub(crate) fn hold(name: &str) -> Result<(PathBuf, File), Failure> {
    let folder = root().join("target").join(name);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let folder = openclaw_files::canonical(&folder).map_err(|error| failed(&folder, &error))?;
    let path = folder.join("lock");
    let lock = File::create(&path).map_err(|error| failed(&path, &error))?;
    lock.lock().map_err(|error| failed(&path, &error))?;
    Ok((folder, lock))
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns a command for the cargo that runs this task.
pub(crate) fn cargo(task: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.arg(task).current_dir(root());
    command
}

pub(crate) trait Run {
    /// Runs the command until it exits; any status but success is a failure.
    fn run(&mut self) -> Result<(), Failure>;
}

impl Run for Command {
    fn run(&mut self) -> Result<(), Failure> {
        let name = self.get_program().to_string_lossy().into_owned();
        match self.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::new(format!("`{name}` failed: {status}"))),
            Err(error) => Err(Failure::new(format!("cannot run `{name}`: {error}"))),
        }
    }
}
