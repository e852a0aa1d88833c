//! Edits of a configuration file that preserve comments, order and spacing (C10). One exception:
//! adding an entry to a single-line object puts each of its entries on its own line.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use crate::source::{ReadError, read_text};
use crate::tree::json5;

/// Why a file could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It could not be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// It is not valid JSON5; `openclaw config validate` reports why.
    #[error("the file has errors ({0}); run `openclaw config validate`")]
    Syntax(String),
    /// A value on the path is not an object.
    #[error("`{0}` is not an object")]
    NotAnObject(String),
    /// It could not be written.
    #[error("cannot write the file: {0}")]
    Write(io::Error),
}

/// A configuration text that can be edited in place.
///
/// ```
/// use openclaw_config::Document;
/// use serde_json::json;
///
/// let text = "{\n  // my servers\n  mcp: { servers: { } },\n}\n";
/// let document = Document::parse(text)?;
/// document.set(&["mcp", "servers", "time"], &json!({ "command": "mcp-server-time" }))?;
/// assert!(document.to_string().contains("// my servers"));
/// assert!(document.remove(&["mcp", "servers", "time"]));
/// # Ok::<(), openclaw_config::EditError>(())
/// ```
pub struct Document {
    root: CstRootNode,
    byte_order_mark: bool,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Document(…)")
    }
}

impl std::fmt::Display for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.byte_order_mark { "\u{feff}" } else { "" };
        write!(f, "{mark}{}", self.root)
    }
}

impl Document {
    /// Parses a text. An empty text becomes an object when a value is set.
    ///
    /// # Errors
    /// If it is not valid JSON5.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        let unmarked = text.strip_prefix('\u{feff}');
        let root = CstRootNode::parse(unmarked.unwrap_or(text), &json5())
            .map_err(|error| EditError::Syntax(error.to_string()))?;
        Ok(Self { root, byte_order_mark: unmarked.is_some() })
    }

    /// Returns the configuration that is used without a file, as the beginning of a new file.
    ///
    /// # Errors
    /// If it is not valid JSON5, which the tests exclude.
    pub fn built_in() -> Result<Self, EditError> {
        Self::parse(crate::load::EMBEDDED)
    }

    /// Reads a file. A missing file is treated as an empty text.
    ///
    /// # Errors
    /// If it cannot be read or is not valid JSON5.
    pub fn open(file: &Path) -> Result<Self, EditError> {
        match read_text(file) {
            Ok(text) => Self::parse(&text),
            Err(ReadError::Missing) => Self::parse(""),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is a value at the path.
    pub fn contains(&self, path: &[&str]) -> bool {
        self.parent(path).is_some_and(|(parent, key)| parent.get(key).is_some())
    }

    /// Sets the value at the path, creating missing objects on the way.
    ///
    /// # Errors
    /// If a value on the way is not an object.
    pub fn set(&self, path: &[&str], value: &Value) -> Result<(), EditError> {
        let Some((key, way)) = path.split_last() else { return Ok(()) };
        let root = self.root.object_value_or_create();
        let mut object = root.ok_or_else(|| EditError::NotAnObject("the file".to_owned()))?;
        for (depth, step) in way.iter().enumerate() {
            object = object
                .object_value_or_create(step)
                .ok_or_else(|| EditError::NotAnObject(path[..=depth].join(".")))?;
        }
        match object.get(key) {
            Some(property) => property.set_value(input(value)),
            None => drop(object.append(key, input(value))),
        }
        Ok(())
    }

    /// Removes the value at the path. Returns whether there was one.
    pub fn remove(&self, path: &[&str]) -> bool {
        let property = self.parent(path).and_then(|(parent, key)| parent.get(key));
        property.map(|property| property.remove()).is_some()
    }

    /// Writes the text to a file atomically: readers see either the old text or the new one.
    /// A link to a file is kept, and that file is written. Permissions are kept; a new file is
    /// readable by its owner only.
    ///
    /// # Errors
    /// If it cannot be written, or is no regular file, such as a pipe, a device or a link to nothing;
    /// what is there is left untouched.
    pub fn save(&self, file: &Path) -> Result<(), EditError> {
        save_text(file, &self.to_string())
    }

    fn parent<'p>(&self, path: &[&'p str]) -> Option<(CstObject, &'p str)> {
        let (key, way) = path.split_last()?;
        Some((self.object_at(way)?, key))
    }

    pub(crate) fn object_at(&self, way: &[&str]) -> Option<CstObject> {
        let mut object = self.root.object_value()?;
        for step in way {
            object = object.object_value(step)?;
        }
        Some(object)
    }
}

/// Writes a text to a file as [`Document::save`] does.
pub(crate) fn save_text(file: &Path, text: &str) -> Result<(), EditError> {
    let write = || -> io::Result<()> {
        let target = match openclaw_files::canonical(file) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.is_symlink() => {
                let message = "a link to a missing file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => file.to_path_buf(),
            Err(error) => return Err(error),
        };
        openclaw_files::check_replaceable(&target)?;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // Created in the same folder: a rename cannot cross file systems.
        let mut temporary = tempfile::Builder::new().prefix(".openclaw-").tempfile_in(folder)?;
        temporary.write_all(text.as_bytes())?;
        if let Ok(metadata) = fs::metadata(&target) {
            temporary.as_file().set_permissions(metadata.permissions())?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&target).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(EditError::Write)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}
