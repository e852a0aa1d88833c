//! The source texts of a configuration, and positions in them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Larger files are rejected: they are not configurations.
pub(crate) const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// A byte range in one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceSpan {
    pub(crate) source: SourceId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Which of the [`Sources`] a [`SourceSpan`] points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SourceId(u16);

impl SourceSpan {
    pub(crate) fn new(source: SourceId, range: std::ops::Range<usize>) -> Self {
        // Files are bounded by `MAX_FILE_BYTES`, far below `u32::MAX`.
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { source, start: clamp(range.start), end: clamp(range.end) }
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A position in a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Location {
    /// The file, or the name of a built-in text.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One file, or the built-in default.
#[derive(Clone)]
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) text: String,
    line_starts: Vec<u32>,
    /// If so, a column is a byte offset and need not be counted.
    is_ascii: bool,
}

/// Every source text of a configuration: the file and its includes.
///
/// Its `Debug` shows names only: a configuration may contain credentials.
#[derive(Clone, Default)]
pub struct Sources(Vec<SourceFile>);

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|source| &source.name)).finish()
    }
}

impl Sources {
    /// Adds a text, stripping a leading byte order mark.
    pub(crate) fn add(&mut self, name: String, mut text: String) -> SourceId {
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        // Includes are bounded well below `u16::MAX` (see `include`).
        let id = SourceId(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        let line_starts = std::iter::once(0)
            .chain(
                text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next),
            )
            .collect();
        let is_ascii = text.is_ascii();
        self.0.push(SourceFile { name, text, line_starts, is_ascii });
        id
    }

    pub(crate) fn get(&self, id: SourceId) -> &SourceFile {
        &self.0[usize::from(id.0)]
    }

    /// Returns the file, line and column where `span` begins.
    pub fn locate(&self, span: SourceSpan) -> Location {
        let source = self.get(span.source);
        let line = source.line_of(span.start);
        let before = &source.text[source.line_starts[line] as usize..span.start as usize];
        let column = if source.is_ascii { before.len() } else { before.chars().count() };
        Location { file: source.name.clone(), line: line + 1, column: column + 1 }
    }
}

impl SourceFile {
    /// Returns the index (from 0) of the line that contains `offset`.
    pub(crate) fn line_of(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the index of the first line that `range` touches, and the byte range of all of them.
    pub(crate) fn lines_around(
        &self,
        range: std::ops::Range<usize>,
    ) -> (usize, std::ops::Range<usize>) {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let first = self.line_of(clamp(range.start));
        let last = self.line_of(clamp(range.end.saturating_sub(1).max(range.start)));
        let end = self.line_starts.get(last + 1).map_or(self.text.len(), |next| *next as usize);
        (first, self.line_starts[first] as usize..end)
    }
}

/// Why a file could not be read as text.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not exist.
    #[error("no such file")]
    Missing,
    /// The path is a folder.
    #[error("is a folder, not a file")]
    Folder,
    /// A pipe or a device: reading it could block forever.
    #[error("is a pipe or a device, not a file")]
    Special,
    /// Permission denied.
    #[error("permission denied")]
    Denied,
    /// The file exceeds the size limit.
    #[error("larger than {} MiB, the limit for a configuration", MAX_FILE_BYTES / 1024 / 1024)]
    TooLarge,
    /// Not UTF-8; the offset of the first invalid byte.
    #[error("not UTF-8 text (byte {0} is invalid); save it as UTF-8")]
    NotUtf8(usize),
    /// UTF-16, as some Windows editors write.
    #[error("UTF-16 text; save it as UTF-8")]
    Utf16,
    /// Any other I/O error.
    #[error(transparent)]
    Io(io::Error),
}

/// Reads a file as text, up to the size limit for configurations.
///
/// # Errors
/// If it does not exist or cannot be read as text.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::Missing,
        io::ErrorKind::PermissionDenied => ReadError::Denied,
        io::ErrorKind::IsADirectory => ReadError::Folder,
        _ => ReadError::Io(error),
    };
    // Checked before opening: opening a pipe without a writer blocks forever.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(ReadError::Folder);
    }
    // Standard input and the shell's `<(…)` are there.
    let may_be_special = path.starts_with("/dev") || path.starts_with("/proc");
    if !metadata.is_file() && !may_be_special {
        return Err(ReadError::Special);
    }
    let file = if may_be_special { File::open(path) } else { openclaw_files::open(path) };
    let file = file.map_err(failed)?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    // Pipes and devices report no length, so the read is bounded too.
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ReadError::TooLarge);
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(ReadError::Utf16);
    }
    String::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.utf8_error().valid_up_to()))
}

/// Returns the canonical form of `path`, or `path` itself if it cannot be resolved.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    openclaw_files::canonical(path).unwrap_or_else(|_| path.to_path_buf())
}
