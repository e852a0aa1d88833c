//! Peers in Python.

use std::path::Path;
use std::process::Command;

use super::{once, write};
use crate::shell::{Failure, Run as _};

/// Installs into a separate virtual environment, so that no system package is used or changed.
pub(super) fn install(folder: &Path, pinned: &str) -> Result<(), Failure> {
    once(folder, pinned, || fill(folder, pinned).map_err(|failure| needed(&failure)))
}

fn fill(folder: &Path, pinned: &str) -> Result<(), Failure> {
    Command::new("python3").args(["-m", "venv"]).arg(folder).run()?;
    let requirements = folder.join("requirements.txt");
    write(&requirements, pinned)?;
    let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    Command::new(bin.join("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(&requirements)
        .run()
}

fn needed(failure: &Failure) -> Failure {
    Failure::new(format!(
        "{failure}\nThe tests need Python 3.11 or newer with the `venv` module and a package \
         registry that pip can reach (on Debian: apt-get install python3-venv)."
    ))
}
