//! Loads a file into a [`Config`] and a [`Report`].

use std::collections::BTreeSet;
use std::path::Path;

use crate::build::Builder;
use crate::decode::{Decode, Decoder};
use crate::diagnostic::{Diagnostic, Report};
use crate::files::{FileContent, ReadFile};
use crate::include::Includes;
use crate::model::Config;
use crate::raw::RawConfig;
use crate::source::{ReadError, Sources, read_text};
use crate::text::VariableLookup;
use crate::tree::parse;

/// The configuration without a file; also what a first file contains.
pub(crate) const EMBEDDED: &str = include_str!("default.json5");
const EMBEDDED_NAME: &str = "built-in default";

/// The environment that a configuration depends on, besides the file itself.
#[derive(Clone, Copy)]
pub struct LoadEnvironment<'a> {
    /// Looks up environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The user's home folder.
    pub home: Option<&'a Path>,
}

impl LoadEnvironment<'_> {
    /// An environment without variables and without a home folder.
    pub fn empty() -> Self {
        Self { variable: &|_| None, home: None }
    }
}

/// A loaded configuration and the findings about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration; `None` if the report has errors.
    pub config: Option<Config>,
    /// The findings.
    pub report: Report,
    /// The files it was read from: the requested one first, then the included ones. Missing files
    /// are listed, too: they may be created later.
    pub files: Vec<ReadFile>,
}

impl std::fmt::Debug for LoadEnvironment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadEnvironment").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Loads and checks the file, or the built-in default if the file does not exist.
pub fn load(file: &Path, environment: LoadEnvironment<'_>) -> Loaded {
    let mut sources = Sources::default();
    match read_text(file) {
        Ok(text) => {
            let read = ReadFile::with(file, &text);
            let id = sources.add(file.display().to_string(), text);
            check(read, true, sources, id, environment)
        }
        Err(ReadError::Missing) => {
            let id = sources.add(EMBEDDED_NAME.to_owned(), EMBEDDED.to_owned());
            check(ReadFile::unreadable(file), false, sources, id, environment)
        }
        Err(error) => {
            let message = format!("cannot read {}: {error}", file.display());
            let diagnostics = vec![Diagnostic::error(message).help(way_out(&error))];
            let files = vec![ReadFile::unreadable(file)];
            Loaded { config: None, report: Report { diagnostics, sources }, files }
        }
    }
}

/// Like [`load`], but takes the text instead of reading `file`.
pub fn load_text(file: &Path, text: &str, environment: LoadEnvironment<'_>) -> Loaded {
    let mut sources = Sources::default();
    let id = sources.add(file.display().to_string(), text.to_owned());
    check(ReadFile::with(file, text), true, sources, id, environment)
}

fn check(
    read: ReadFile,
    exists: bool,
    mut sources: Sources,
    id: crate::source::SourceId,
    environment: LoadEnvironment<'_>,
) -> Loaded {
    let mut found = Vec::new();
    let tree = match parse(&sources, id) {
        Ok(tree) => tree,
        Err(problem) => {
            let report = Report { diagnostics: vec![*problem], sources };
            return Loaded { config: None, report, files: vec![read] };
        }
    };
    let file = read.path.clone();
    let content =
        if exists { FileContent::of(&sources.get(id).text) } else { FileContent::Nothing };
    let mut includes = Includes::new(&file, &mut sources, &mut found);
    let tree = includes.resolve(tree);
    let mut files = vec![read];
    files.append(&mut includes.files);
    let mut contents = includes.contents;
    contents.insert(file.clone(), content);
    let raw = RawConfig::decode(&tree, &mut Decoder::new(&mut found)).unwrap_or_default();
    let base = file.parent().unwrap_or(Path::new(""));
    let lookup: VariableLookup<'_> = environment.variable;
    let home = environment.home;
    let mut builder =
        Builder { lookup, home, base, sources: &sources, found, warned: BTreeSet::new() };
    let mut config = builder.build(raw, exists.then(|| file.clone()));
    config.contents = contents;
    let mut report = Report { diagnostics: builder.found, sources };
    report.settle();
    let config = (!report.has_errors()).then_some(config);
    Loaded { config, report, files }
}

fn way_out(error: &ReadError) -> &'static str {
    match error {
        ReadError::Folder => "name the file itself, as in `--config folder/openclaw.json`",
        ReadError::Special => "name a file, or pass it on stdin with `/dev/stdin`",
        ReadError::Denied => "make it readable for this user",
        ReadError::TooLarge => "check that this is the configuration file",
        ReadError::NotUtf8(_) | ReadError::Utf16 => "in most editors, \"Save as\" has the option",
        // A missing file is not an error.
        ReadError::Missing | ReadError::Io(_) => "check the path and the disk",
    }
}
