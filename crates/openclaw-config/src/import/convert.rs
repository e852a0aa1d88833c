//! Converts the entry of another program to one of ours.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::apps::AppConfigFile;
use super::placeholders::{PlaceholderDialect, PlaceholderValues, translate};
use super::{App, FoundServer, SearchContext, codex, fields};
use crate::name::ServerName;
use crate::source::ReadError;
use crate::text::split_command;

/// An entry that is being converted.
pub(super) struct Conversion<'a> {
    entry: Map<String, Value>,
    notes: Vec<String>,
    dialect: PlaceholderDialect,
    context: PlaceholderValues<'a>,
}

/// Converts one server.
pub(super) fn server(
    place: &AppConfigFile,
    written_name: &str,
    theirs: &Map<String, Value>,
    project: Option<&Path>,
    machine: SearchContext<'_>,
) -> FoundServer {
    let dialect = match place.app {
        App::ClaudeCode | App::Amp => PlaceholderDialect::Shell,
        App::GeminiCli => PlaceholderDialect::Variables,
        App::Cursor | App::VsCode | App::Windsurf | App::JetBrains => PlaceholderDialect::Editor,
        App::OpenCode => PlaceholderDialect::Braces,
        App::ClaudeDesktop | App::Codex | App::Zed | App::Goose => PlaceholderDialect::None,
    };
    let context = PlaceholderValues { home: machine.home, project };
    let mut to = Conversion { entry: Map::new(), notes: Vec::new(), dialect, context };
    for (key, value) in theirs.iter().filter(|(_, value)| !value.is_null()) {
        let is_known = match place.app {
            App::Codex => to.field(key, value) || codex::field(key, value, &mut to),
            app => fields::field(app, key, value, &mut to) || to.field(key, value),
        };
        if !is_known {
            to.notes.push(format!("`{key}` was skipped: it is not supported here"));
        }
    }
    to.split_command(machine);
    to.settle_folder();
    let name = ServerName::new(written_name)
        .or_else(|error| ServerName::new(error.suggestion().unwrap_or_default()));
    let name = name.ok();
    if let Some(name) = name.as_ref().filter(|name| name.as_str() != written_name) {
        to.notes.push(format!("its name here is `{name}`"));
    }
    to.notes.dedup();
    FoundServer {
        app: place.app,
        file: place.file.clone(),
        project: project.map(|project| project.display().to_string()),
        written_name: written_name.to_owned(),
        name,
        entry: Value::Object(to.entry),
        notes: to.notes,
    }
}

/// Converts the names of other programs in an entry that is otherwise ours. Its texts are kept.
#[must_use]
pub fn adapted(theirs: Map<String, Value>) -> Map<String, Value> {
    let context = PlaceholderValues { home: None, project: None };
    let mut to = Conversion {
        entry: Map::new(),
        notes: Vec::new(),
        dialect: PlaceholderDialect::Ours,
        context,
    };
    for (key, value) in theirs {
        // `type` and `transport` mean the same here.
        let is_ours = matches!(key.as_str(), "type" | "transport" | "auth" | "description");
        let is_known = !is_ours
            && (to.field(&key, &value) || fields::field(App::GeminiCli, &key, &value, &mut to));
        if !is_known {
            to.set(&key, value);
        }
    }
    to.entry
}

impl Conversion<'_> {
    /// Splits a command in one string into the program and its arguments, unless there is a program
    /// of that name.
    fn split_command(&mut self, machine: SearchContext<'_>) {
        let is_alone = match self.entry.get("args") {
            None => true,
            Some(args) => args.as_array().is_some_and(Vec::is_empty),
        };
        let command = self.entry.get("command").and_then(Value::as_str).filter(|_| is_alone);
        let Some(command) = command else { return };
        let words = split_command(command)
            .filter(|_| matches!((machine.read)(Path::new(command)), Err(ReadError::Missing)));
        if let Some([program, args @ ..]) = words.as_deref() {
            let (program, args) = (json!(program), json!(args));
            self.set("command", program);
            self.set("args", args);
            self.notes.push("its command was split into a program and arguments".to_owned());
        }
    }

    /// Converts a field that several programs have. Returns whether it was one.
    pub(super) fn field(&mut self, key: &str, value: &Value) -> bool {
        match key {
            "command" if value.is_object() || value.is_array() => return false,
            "command" | "cwd" | "url" => {
                let text = self.text(value);
                self.set(key, text);
            }
            "serverUrl" => {
                let text = self.text(value);
                self.set("url", text);
            }
            "args" => {
                let list = match value {
                    Value::Array(list) => list.iter().map(|word| self.text(word)).collect(),
                    other => other.clone(),
                };
                self.set("args", list);
            }
            "env" | "headers" => self.table(key, value),
            // Inferred from `command` and `url`.
            "type" | "transport" => match value.as_str() {
                Some("sse") => self.set("transport", json!("sse")),
                Some(
                    "stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http",
                ) => {}
                _ => return false,
            },
            "disabled" => self.switch(value == &Value::Bool(true)),
            "enabled" => self.switch(value == &Value::Bool(false)),
            "description" => self.set("description", value.clone()),
            "disabledTools" => self.tools("deny", value),
            "auth" | "oauth" if value.is_object() => self.login(value),
            "envFile" => {
                let note = "`envFile` is not supported: put its variables into `env`";
                self.notes.push(note.to_owned());
            }
            _ => return false,
        }
        true
    }

    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.entry.insert(key.to_owned(), value);
    }

    /// Adds members to an object.
    pub(super) fn merge(&mut self, key: &str, members: Map<String, Value>) {
        let object = self.entry.entry(key).or_insert_with(|| json!({}));
        if let Value::Object(object) = object {
            object.extend(members);
        }
    }

    /// Sets a table of strings.
    pub(super) fn table(&mut self, key: &str, value: &Value) {
        let Value::Object(table) = value else {
            self.set(key, value.clone());
            return;
        };
        let members = table.iter().map(|(name, text)| (name.clone(), self.text(text)));
        let members = members.collect::<Vec<_>>().into_iter().collect();
        self.merge(key, members);
    }

    /// Sets one list of the tool policy.
    pub(super) fn tools(&mut self, key: &str, list: &Value) {
        self.merge("tools", Map::from_iter([(key.to_owned(), list.clone())]));
    }

    /// Adds a note about the entry.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn switch(&mut self, off: bool) {
        if off {
            self.set("enabled", json!(false));
        }
    }

    /// Translates the placeholders of a string. Numbers and booleans become strings; anything else
    /// is kept and rejected by the check.
    pub(super) fn text(&mut self, value: &Value) -> Value {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            other => return other.clone(),
        };
        Value::String(translate(&text, self.dialect, self.context, &mut self.notes))
    }

    /// Converts OAuth settings.
    pub(super) fn login(&mut self, value: &Value) {
        let mut login = Map::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let (ours, value) = match key.as_str() {
                "CLIENT_ID" | "clientId" => ("clientId", self.text(value)),
                "CLIENT_SECRET" | "clientSecret" => ("clientSecret", self.text(value)),
                "scopes" => ("scopes", value.clone()),
                "callbackPort" => ("redirectPort", value.clone()),
                other => {
                    self.notes
                        .push(format!("`auth.{other}` was skipped: it is not supported here"));
                    continue;
                }
            };
            login.insert(ours.to_owned(), value);
        }
        self.merge("auth", login);
    }

    /// Sets `cwd` where it matters: programs start the servers of a project in its folder.
    fn settle_folder(&mut self) {
        let Some(project) = self.context.project else { return };
        let is_local = |value: &Value| {
            value.as_str().is_some_and(|text| text.starts_with("./") || text.starts_with("../"))
        };
        let args = self.entry.get("args").and_then(Value::as_array);
        let mut words = self.entry.get("command").into_iter().chain(args.into_iter().flatten());
        let folder = match self.entry.get("cwd").and_then(Value::as_str) {
            // A variable may expand to an absolute path.
            Some(cwd) if !cwd.starts_with(['~', '$']) => project.join(cwd),
            None if words.any(is_local) => project.to_path_buf(),
            _ => return,
        };
        let folder = folder.to_string_lossy().replace('$', "$$");
        self.set("cwd", json!(folder));
    }
}
