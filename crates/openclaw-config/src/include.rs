//! `$include`: merges other files of the configuration's folder into an object.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::files::{FileContent, ReadFile};
use crate::source::{SourceId, Sources, canonical, read_text};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue, parse};

const INCLUDE: &str = "$include";
/// The maximum nesting depth of includes, and the maximum number of included files.
const MAX_DEPTH: usize = 10;
const MAX_FILES: usize = 100;

/// Resolves the includes of a tree and reports problems.
pub(crate) struct Includes<'a> {
    /// Included files must be in this folder.
    root: PathBuf,
    sources: &'a mut Sources,
    found: &'a mut Vec<Diagnostic>,
    /// The files that are being read, outermost first.
    open: Vec<PathBuf>,
    read: usize,
    /// Every included file, and those that could not be read.
    pub(crate) files: Vec<ReadFile>,
    /// Whether each file that could be read has content.
    pub(crate) contents: BTreeMap<PathBuf, FileContent>,
}

impl<'a> Includes<'a> {
    pub(crate) fn new(
        file: &Path,
        sources: &'a mut Sources,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        let file = canonical(file);
        let root = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Self {
            root,
            sources,
            found,
            open: vec![file],
            read: 0,
            files: Vec::new(),
            contents: BTreeMap::new(),
        }
    }

    /// Replaces every `$include` of a tree with the content of the files.
    // Recursion is bounded: the depth of a file by the parser, that of includes by `MAX_DEPTH`.
    pub(crate) fn resolve(&mut self, node: ConfigNode) -> ConfigNode {
        let ConfigNode { at, value } = node;
        let value = match value {
            ConfigValue::Array(elements) => ConfigValue::Array(
                elements.into_iter().map(|element| self.resolve(element)).collect(),
            ),
            ConfigValue::Object(members) => {
                let mut merged: Option<ConfigNode> = None;
                let mut own = Vec::new();
                for member in members {
                    if member.key == INCLUDE {
                        merged = self.included(&member.node, merged);
                    } else {
                        let node = self.resolve(member.node);
                        own.push(ConfigMember { node, ..member });
                    }
                }
                let own = ConfigNode { at, value: ConfigValue::Object(own) };
                return match merged {
                    Some(base) => merge(base, own),
                    None => own,
                };
            }
            other => other,
        };
        ConfigNode { at, value }
    }

    /// Merges the files that an `$include` names, one or several; later ones win.
    fn included(
        &mut self,
        names: &ConfigNode,
        mut merged: Option<ConfigNode>,
    ) -> Option<ConfigNode> {
        let single = std::slice::from_ref(names);
        let names =
            if let ConfigValue::Array(names) = &names.value { names.as_slice() } else { single };
        for name in names {
            let ConfigValue::String(file) = &name.value else {
                let kind = name.value.kind();
                let message = format!("expected the name of a file to include, found {kind}");
                self.found.push(Diagnostic::error(message).at(name.at, "not a string"));
                continue;
            };
            match self.file(file) {
                Ok(node) => {
                    merged = Some(match merged {
                        Some(base) => merge(base, node),
                        None => node,
                    });
                }
                Err(Problem::Here(problem)) => {
                    let message = format!("cannot include `{file}`: {problem}");
                    self.found.push(Diagnostic::error(message).at(name.at, "included here"));
                }
                Err(Problem::There(problem)) => self.found.push(*problem),
            }
        }
        merged
    }

    fn file(&mut self, name: &str) -> Result<ConfigNode, Problem> {
        let here = |problem: &str| Problem::Here(problem.to_owned());
        let folder = self.open.last().and_then(|file| file.parent()).unwrap_or(&self.root);
        let path = folder.join(name);
        let path = openclaw_files::canonical(&path).map_err(|error| {
            self.missing(path);
            match error.kind() {
                std::io::ErrorKind::NotFound => here("no such file"),
                _ => Problem::Here(error.to_string()),
            }
        })?;
        if !path.starts_with(&self.root) {
            return Err(here("it is outside the folder of the configuration"));
        }
        if self.open.contains(&path) {
            let name = |path: &PathBuf| {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            };
            let chain: Vec<_> = self.open.iter().chain([&path]).map(name).collect();
            return Err(Problem::Here(format!("it includes itself ({})", chain.join(" → "))));
        }
        self.read += 1;
        if self.open.len() > MAX_DEPTH || self.read > MAX_FILES {
            return Err(here("too many includes"));
        }
        if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Err(here("not a file"));
        }
        let text = read_text(&path).map_err(|error| {
            self.missing(path.clone());
            Problem::Here(error.to_string())
        })?;
        self.files.push(ReadFile::with(path.as_path(), &text));
        self.contents.insert(path.clone(), FileContent::of(&text));
        let id: SourceId = self.sources.add(path.display().to_string(), text);
        let node = parse(self.sources, id).map_err(Problem::There)?;
        if !matches!(node.value, ConfigValue::Object(_)) {
            let kind = node.value.kind();
            return Err(Problem::Here(format!("it contains {kind}, expected an object")));
        }
        self.open.push(path);
        let node = self.resolve(node);
        self.open.pop();
        Ok(node)
    }

    /// Records an unreadable file, so that it is watched. Their number is bounded, too.
    fn missing(&mut self, path: PathBuf) {
        if self.files.len() < MAX_FILES {
            self.files.push(ReadFile::unreadable(path));
        }
    }
}

/// A problem with an included file, and where to report it.
enum Problem {
    /// At the `$include`.
    Here(String),
    /// In the included file.
    There(Box<Diagnostic>),
}

/// Merges `over` into `base`: objects key by key, arrays are concatenated, otherwise `over` wins.
fn merge(base: ConfigNode, over: ConfigNode) -> ConfigNode {
    let value = match (base.value, over.value) {
        (ConfigValue::Object(mut members), ConfigValue::Object(over)) => {
            // A duplicate key in one file is kept twice: it is reported later.
            let places: HashMap<String, usize> =
                members.iter().enumerate().map(|(at, member)| (member.key.clone(), at)).collect();
            for mut member in over {
                match places.get(&member.key) {
                    Some(at) => {
                        let null = ConfigNode { at: member.node.at, value: ConfigValue::Null };
                        let base = std::mem::replace(&mut members[*at].node, null);
                        member.node = merge(base, member.node);
                        members[*at] = member;
                    }
                    None => members.push(member),
                }
            }
            ConfigValue::Object(members)
        }
        (ConfigValue::Array(mut elements), ConfigValue::Array(over)) => {
            elements.extend(over);
            ConfigValue::Array(elements)
        }
        (_, over) => over,
    };
    ConfigNode { at: over.at, value }
}
