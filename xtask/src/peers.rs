//! What the tests talk to and this repository does not contain: real servers from the registries,
//! pinned by version, installed into `target/peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Failure, Run as _, root};

/// The Python packages, pinned with everything that they need.
const PYTHON: &str = include_str!("../peers/python.txt");

/// Installs what is missing or of another version; returns the folder.
pub(crate) fn install() -> Result<PathBuf, Failure> {
    let peers = root().join("target").join("peers");
    fs::create_dir_all(&peers).map_err(|error| failed(&peers, &error))?;
    let peers = peers.canonicalize().map_err(|error| failed(&peers, &error))?;
    python(&peers.join("python"))?;
    Ok(peers)
}

/// A virtual environment of its own, so that nothing of the machine's is used or changed.
fn python(folder: &Path) -> Result<(), Failure> {
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == PYTHON) {
        return Ok(());
    }
    println!("Installing Python packages for the tests into target/peers/python");
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let needed = |failure: Failure| {
        Failure::new(format!(
            "{failure}\nThe tests need Python 3.10 or newer with the `venv` module and a package \
             registry that pip can reach (on Debian: apt-get install python3-venv)."
        ))
    };
    Command::new("python3").args(["-m", "venv"]).arg(folder).run().map_err(needed)?;
    let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, PYTHON).map_err(|error| failed(&requirements, &error))?;
    Command::new(bin.join("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(&requirements)
        .run()
        .map_err(needed)?;
    // Written last: an installation that was interrupted is begun anew.
    fs::write(&stamp, PYTHON).map_err(|error| failed(&stamp, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}
