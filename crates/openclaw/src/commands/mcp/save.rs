//! Saves images, audio and other binary data to files. A name derived from the server is sanitized,
//! and never overwrites a file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::ShowArgs;
use crate::error::CommandError;
use crate::output::plural;

/// The highest number in a file name.
const MAX_TWINS: usize = 10_000;
/// The maximum length of a name.
const NAME_CHARS: usize = 80;

/// A file that was written.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) mime_type: String,
    pub(super) path: PathBuf,
}

fn cannot_write(file: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot write {}", file.display())).cause(reason(error))
}

/// The error for several parts and one file.
pub(super) fn too_many(count: usize, file: &Path) -> CommandError {
    let (files, file) = (plural(count, "file"), file.display());
    CommandError::failed(format!("cannot write {files} into {file}"))
        .hint("use `--save FOLDER` to write them all")
}

/// Checks where files are to be written. It runs before the call, so that no result is lost.
///
/// # Errors
/// If the folder or the file cannot be written.
pub(super) fn check(args: &ShowArgs) -> Result<(), CommandError> {
    if let Some(folder) = &args.save
        && let Some(there) = folder.ancestors().find(|it| it.exists() && !it.is_dir())
    {
        return Err(CommandError::usage(format!("{} is not a folder", there.display()))
            .hint("use `-o FILE` to write to a file"));
    }
    let Some(file) = &args.output else { return Ok(()) };
    if file.as_os_str() == "-" {
        return Err(CommandError::usage("`-o` takes the name of a file, not `-`")
            .hint("without `-o`, text goes to stdout"));
    }
    if file.is_dir() {
        return Err(CommandError::usage(format!("{} is a folder", file.display()))
            .hint("use `--save FOLDER` to write into a folder"));
    }
    match file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) if folder.exists() => Err(format!("{} is not a folder", folder.display())),
        Some(folder) => Err(format!("folder not found: {}", folder.display())),
        None => Ok(()),
    }
    .map_err(|why| CommandError::usage(format!("cannot write {}", file.display())).cause(why))
}

/// Writes base64 data to a new file in a folder.
///
/// # Errors
/// If the data is invalid, or the file cannot be written.
pub(super) fn save(
    folder: &Path,
    stem: &str,
    mime_type: &str,
    data: &str,
) -> Result<Saved, CommandError> {
    let bytes = decoded(mime_type, data)?;
    DirBuilder::new()
        .recursive(true)
        .create(folder)
        .and_then(|()| write_new(folder, &harmless(stem), ending(mime_type), &bytes))
        .map(|path| Saved { mime_type: mime_type.to_owned(), path })
        .map_err(|error| {
            CommandError::failed(format!("cannot save to {}", folder.display()))
                .cause(reason(&error))
        })
}

/// Writes base64 data to the file that the user named, and overwrites it.
///
/// # Errors
/// If the data is invalid, or the file cannot be written.
pub(super) fn save_as(file: &Path, mime_type: &str, data: &str) -> Result<Saved, CommandError> {
    let bytes = decoded(mime_type, data)?;
    std::fs::write(file, bytes)
        .map(|()| Saved { mime_type: mime_type.to_owned(), path: file.to_owned() })
        .map_err(|error| cannot_write(file, &error))
}

/// Writes a text to the file that the user named, and overwrites it.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn save_text(file: &Path, text: &str) -> Result<Saved, CommandError> {
    std::fs::write(file, text)
        .map(|()| Saved { mime_type: "text".to_owned(), path: file.to_owned() })
        .map_err(|error| cannot_write(file, &error))
}

/// Whether the data is valid base64.
pub(super) fn is_whole(data: &str) -> bool {
    STANDARD.decode(data).is_ok()
}

fn decoded(mime_type: &str, data: &str) -> Result<Vec<u8>, CommandError> {
    STANDARD.decode(data).map_err(|_| CommandError::failed(damaged(mime_type)))
}

/// The message for data that is not valid base64.
fn damaged(mime_type: &str) -> String {
    format!("cannot write {}: its data is damaged", named(mime_type))
}

/// Returns the MIME type, or "binary data" if it is unknown.
pub(super) fn named(mime_type: &str) -> &str {
    if mime_type.is_empty() { "binary data" } else { mime_type }
}

/// Describes an I/O error, without the error code of the system where possible.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "not a folder".to_owned(),
        io::ErrorKind::InvalidFilename => "invalid file name".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "read-only file system".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no space left".to_owned(),
        _ => error.to_string(),
    }
}

fn write_new(folder: &Path, stem: &str, ending: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    for number in 1..=MAX_TWINS {
        let path = folder.join(format!("{stem}-{number}.{ending}"));
        // Fails if the name exists, even as a symlink.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files of that name"))
}

/// Sanitizes a file name: names of servers and tools may contain anything.
fn harmless(stem: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let stem: String =
        stem.chars().take(NAME_CHARS).map(|c| if fits(c) { c } else { '_' }).collect();
    // A name with a leading dash would be taken for an option.
    let stem = stem.trim_start_matches('-');
    if stem.is_empty() { "answer".to_owned() } else { stem.to_owned() }
}

fn ending(mime_type: &str) -> &'static str {
    let kind = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        "image/avif" => "avif",
        "image/heic" => "heic",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        "audio/aac" => "aac",
        "audio/webm" | "video/webm" => "webm",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        "application/x-tar" => "tar",
        "application/json" => "json",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "text/markdown" => "md",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder_and_no_file_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("new");
        let first = save(&inner, "../x/\u{202e}y", "image/PNG; a=b", "aGk=").unwrap();
        let second = save(&inner, "../x/\u{202e}y", "image/png", "aG8=").unwrap();
        assert_eq!(first.path, inner.join("___x__y-1.png"));
        assert_eq!(second.path, inner.join("___x__y-2.png"));
        assert_eq!(std::fs::read(first.path).unwrap(), b"hi");
        assert_eq!(std::fs::read(second.path).unwrap(), b"ho");
    }

    #[test]
    fn unknown_types_get_a_neutral_extension() {
        let folder = tempfile::tempdir().unwrap();
        let saved = save(folder.path(), "--", "application/x-sh", "aGk=").unwrap();
        assert_eq!(saved.path, folder.path().join("answer-1.bin"));
        assert!(save(folder.path(), "x", "image/png", "not base64!").is_err());
    }

    #[test]
    fn targets_that_cannot_be_written_are_rejected_before_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let said = |output: Option<PathBuf>, save: Option<PathBuf>| {
            check(&ShowArgs { raw: false, save, output }).err().map(|it| it.to_string())
        };
        assert_eq!(said(Some("new".into()), None), None);
        assert_eq!(said(Some(file.clone()), None), None);
        assert_eq!(said(None, Some(folder.path().join("a/b"))), None);
        for (output, save, words) in [
            (Some("-".into()), None, "takes the name of a file"),
            (Some(folder.path().to_owned()), None, "is a folder"),
            (Some(folder.path().join("none/x")), None, "folder not found"),
            (Some(file.join("x")), None, "is not a folder"),
            (None, Some(file.clone()), "is not a folder"),
            (None, Some(file.join("x")), "is not a folder"),
        ] {
            let message = said(output, save).unwrap_or_default();
            assert!(message.contains(words), "{message}");
        }
    }
}
