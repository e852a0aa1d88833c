//! Converts the MCP servers of other programs on this machine into entries for our file (C11).
//!
//! Nothing here accesses the machine directly: [`SearchContext`] determines where to look, and files are
//! read by the function in it. A file that cannot be read or parsed is reported by name and does
//! not affect the others.

mod apps;
mod check;
mod codex;
mod convert;
mod fields;
mod placeholders;
mod yaml;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) use apps::parse as parse_json;
pub use apps::{App, Platform};
pub use check::{ImportCandidate, ImportStatus};
pub(crate) use codex::parse as parse_toml;
pub use convert::adapted;

use crate::name::ServerName;
use crate::source::ReadError;
pub use crate::source::read_text as read_from_disk;

/// The environment of the search.
#[derive(Clone, Copy)]
pub struct SearchContext<'a> {
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// The current folder: projects have their own files.
    pub cwd: &'a Path,
    /// The platform.
    pub platform: Platform,
    /// Looks up environment variables: some of them relocate the files.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a file.
    pub read: &'a dyn Fn(&Path) -> Result<String, ReadError>,
}

impl std::fmt::Debug for SearchContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("platform", &self.platform).finish_non_exhaustive()
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct ImportResult {
    /// The servers, grouped by program.
    pub servers: Vec<FoundServer>,
    /// Files that exist but cannot be used.
    pub broken: Vec<BrokenFile>,
    /// All files that were searched, existing or not.
    pub looked_at: Vec<PathBuf>,
}

/// A server of another program. Its `Debug` omits the entry, which may contain credentials.
#[derive(Clone)]
pub struct FoundServer {
    /// The program.
    pub app: App,
    /// Its file.
    pub file: PathBuf,
    /// The project that it belongs to; `None` for all projects.
    pub project: Option<String>,
    /// Its name in the other program.
    pub written_name: String,
    /// Its name in our configuration; `None` if no part of its name is usable.
    pub name: Option<ServerName>,
    /// The entry for our file. Do not display it.
    pub entry: Value,
    /// What was changed and what was skipped.
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

/// A file that cannot be used.
#[derive(Debug, Clone)]
pub struct BrokenFile {
    /// The program whose file it is.
    pub app: App,
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it; does not quote the file.
    pub problem: String,
}

/// Searches for the servers of all programs, or of `only` one.
pub fn find(machine: SearchContext<'_>, only: Option<App>) -> ImportResult {
    let mut findings = ImportResult::default();
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
