//! Checks whether a found server already exists in our configuration and whether it would work.

use std::path::Path;

use serde_json::{Value, json};

use super::FoundServer;
use crate::credential::{safe_address, safe_args};
use crate::load::{LoadEnvironment, load, load_text};
use crate::model::Config;
use crate::name::ServerName;
use crate::setting::{Setting, SettingOrigin};

/// How a found server compares with our configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportStatus {
    /// No server has this name.
    New,
    /// An equal server of this name exists.
    Same,
    /// A different server of this name exists.
    Differs,
}

/// The result of checking a found server.
#[derive(Debug, Clone)]
pub struct ImportCandidate {
    /// How it compares with our configuration.
    pub standing: ImportStatus,
    /// `stdio`, `http` or `sse`.
    pub transport: &'static str,
    /// Its command line or URL, without credentials.
    pub gist: String,
    /// Its settings, without credentials.
    pub settings: Vec<Setting>,
    /// Why it cannot be added.
    pub problems: Vec<String>,
    /// The unset variables that it needs to start.
    pub unset_variables: Vec<String>,
}

impl FoundServer {
    /// Compares with the configuration in `file`, and checks the entry as if it were in that file.
    pub fn judge(&self, file: &Path, environment: LoadEnvironment<'_>) -> ImportCandidate {
        // Whether a variable is set does not change the meaning of an entry: an unset one expands
        // to its name.
        let named = |name: &str| (environment.variable)(name).or_else(|| Some(name.to_owned()));
        let lenient = LoadEnvironment { variable: &named, ..environment };
        let (transport, gist) = outline(&self.entry);
        let mut judgement = ImportCandidate {
            standing: ImportStatus::New,
            transport,
            gist,
            settings: Vec::new(),
            problems: Vec::new(),
            unset_variables: Vec::new(),
        };
        let Some(name) = &self.name else {
            judgement.problems.push("its name has no usable characters".to_owned());
            return judgement;
        };
        let text = json!({ "mcp": { "servers": { name.as_str(): self.entry } } }).to_string();
        let candidate = load_text(file, &text, lenient);
        let Some(config) = candidate.config else {
            let errors = candidate.report.diagnostics().iter();
            let errors = errors.filter(|found| found.severity() == crate::Severity::Error);
            judgement.problems = errors.map(|found| found.message().to_owned()).collect();
            return judgement;
        };
        let mut strict = load_text(file, &text, environment).config;
        let held_back = strict.as_mut().and_then(|it| it.agents[0].mcp.held_back.remove(name));
        judgement.unset_variables = held_back.map(|why| why.unset_variables).unwrap_or_default();
        judgement.standing = standing(&config, load(file, lenient).config.as_ref(), name);
        let settings = config.agents[0].mcp.origins.servers.get(name).cloned().unwrap_or_default();
        let is_set = |setting: &Setting| matches!(setting.origin, SettingOrigin::File { .. });
        judgement.settings = settings.into_iter().filter(is_set).collect();
        judgement
    }
}

fn standing(candidate: &Config, current: Option<&Config>, name: &ServerName) -> ImportStatus {
    // Without a file, the first added server replaces the built-in ones.
    let Some(current) = current.filter(|current| current.file.is_some()) else {
        return ImportStatus::New;
    };
    let mut there =
        current.agents.iter().filter_map(|agent| agent.mcp.servers.get(name)).peekable();
    if there.peek().is_none() {
        return ImportStatus::New;
    }
    let new = candidate.agents[0].mcp.servers.get(name);
    if there.any(|server| Some(server) == new) { ImportStatus::Same } else { ImportStatus::Differs }
}

/// Returns the transport, and the command line or the URL.
fn outline(entry: &Value) -> (&'static str, String) {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    if let Some(url) = text("url") {
        let transport = if text("transport") == Some("sse") { "sse" } else { "http" };
        return (transport, safe_address(url));
    }
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = text("command").into_iter().chain(args.filter_map(Value::as_str));
    ("stdio", safe_args(words).join(" "))
}
