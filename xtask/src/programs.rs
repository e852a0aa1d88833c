//! Compiles tests and benchmarks, and finds their programs in the messages of cargo.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::shell::Failure;

/// A compiled test or benchmark.
pub(crate) struct Program {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) path: PathBuf,
    /// The folder of its package, in which cargo would start it.
    pub(crate) folder: PathBuf,
}

impl Program {
    /// Returns the package and target, as in `openclaw-mcp remote`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// Returns the size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.path.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// Compiles what this command of cargo would run, with the binaries that it starts, and returns the programs.
pub(crate) fn build(cargo: &mut Command) -> Result<Vec<Program>, Failure> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]).stdout(Stdio::piped());
    let cannot = |error: io::Error| Failure::new(format!("cannot run `cargo`: {error}"));
    let mut child = cargo.spawn().map_err(cannot)?;
    let mut programs = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let message = serde_json::from_str(&line.map_err(cannot)?).unwrap_or_default();
            programs.extend(program(&message));
        }
    }
    if child.wait().map_err(cannot)?.success() {
        Ok(programs)
    } else {
        Err(Failure::new("it does not compile"))
    }
}

/// Returns the program in a message of cargo, if it announces one.
fn program(message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let target = message["target"]["name"].as_str()?.to_owned();
    Some(Program { package, target, path, folder })
}
