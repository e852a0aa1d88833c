//! The MCP servers that other programs on this machine use, as entries for our file (C11).
//!
//! Nothing here touches the machine: where to look follows from [`Machine`], and files are read by the
//! function in it. A file that cannot be read or understood is reported by name; the others count all
//! the same.

mod apps;
mod codex;
mod convert;
mod judge;
mod placeholders;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use apps::{App, Platform};
pub use judge::{Judgement, Standing};

use crate::name::ServerName;
use crate::source::{ReadError, read_text};

/// What the search depends on.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// The folder that the user is in: projects keep files of their own.
    pub cwd: &'a Path,
    /// What kind of machine it is.
    pub platform: Platform,
    /// The environment variables: some of them move the files.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a file.
    pub read: &'a dyn Fn(&Path) -> Result<String, ReadError>,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("platform", &self.platform).finish_non_exhaustive()
    }
}

/// Reads a file of another program from the disk, up to the size that a configuration may have.
///
/// # Errors
/// If it is not there, or not readable as text.
pub fn read_from_disk(file: &Path) -> Result<String, ReadError> {
    read_text(file)
}

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The servers, app by app.
    pub servers: Vec<FoundServer>,
    /// Files that are there and could not be used.
    pub broken: Vec<BrokenFile>,
    /// All files that were looked for.
    pub looked_at: Vec<PathBuf>,
}

/// A server that another program uses. Its `Debug` does not show the entry, which may hold credentials.
#[derive(Clone)]
pub struct FoundServer {
    /// The program.
    pub app: App,
    /// Its file.
    pub file: PathBuf,
    /// The project that it is for; none: for all.
    pub project: Option<String>,
    /// What it is called there.
    pub written_name: String,
    /// What it would be called here; none if nothing of its name can be used.
    pub name: Option<ServerName>,
    /// The entry for our file. To be written there, not to be shown.
    pub entry: Value,
    /// What was changed, and what was left out.
    pub notes: Vec<String>,
}

impl std::fmt::Debug for FoundServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoundServer")
            .field("app", &self.app)
            .field("name", &self.written_name)
            .finish_non_exhaustive()
    }
}

/// A file that could not be used.
#[derive(Debug, Clone)]
pub struct BrokenFile {
    /// The program whose file it is.
    pub app: App,
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it; no text of the file is quoted.
    pub problem: String,
}

/// Looks for servers of all programs, or of one.
pub fn find(machine: Machine<'_>, only: Option<App>) -> Findings {
    let mut findings = Findings::default();
    for app in App::ALL.into_iter().filter(|app| only.is_none_or(|only| only == *app)) {
        for place in app.places(machine) {
            let mut problems = Vec::new();
            match (machine.read)(&place.file) {
                Ok(text) => {
                    findings.servers.extend(place.servers(&text, machine, &mut problems));
                }
                Err(ReadError::Missing) => {}
                Err(error) => problems.push(error.to_string()),
            }
            let broken = |problem| BrokenFile { app, file: place.file.clone(), problem };
            findings.broken.extend(problems.into_iter().map(broken));
            findings.looked_at.push(place.file);
        }
    }
    findings
}
