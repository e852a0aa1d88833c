//! Pictures, sounds and whatever else is binary into files. Where the name follows from the server, it is
//! harmless, and never that of another file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::ShowArgs;
use crate::error::CommandError;
use crate::output::plural;

/// How many files of one name there may be.
const MAX_TWINS: usize = 10_000;
/// How long a name may be.
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

/// There are too many for one file.
pub(super) fn too_many(count: usize, file: &Path) -> CommandError {
    let (files, file) = (plural(count, "file"), file.display());
    CommandError::failed(format!("cannot write {files} into {file}"))
        .hint("use `--save FOLDER` to write them all")
}

/// Whether there is a place for what is to be written. It is looked at before anything is called: then
/// nothing is lost.
///
/// # Errors
/// Why there is none.
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
        Some(folder) => Err(format!("no folder {}", folder.display())),
        None => Ok(()),
    }
    .map_err(|why| CommandError::usage(format!("cannot write {}", file.display())).cause(why))
}

/// Writes what is given in base64 into a folder.
///
/// # Errors
/// Why that cannot be.
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

/// Writes what is given in base64 to the file that somebody named, be there one or not.
///
/// # Errors
/// Why that cannot be.
pub(super) fn save_as(file: &Path, mime_type: &str, data: &str) -> Result<Saved, CommandError> {
    let bytes = decoded(mime_type, data)?;
    std::fs::write(file, bytes)
        .map(|()| Saved { mime_type: mime_type.to_owned(), path: file.to_owned() })
        .map_err(|error| cannot_write(file, &error))
}

/// Writes a text to the file that somebody named.
///
/// # Errors
/// Why that cannot be.
pub(super) fn save_text(file: &Path, text: &str) -> Result<Saved, CommandError> {
    std::fs::write(file, text)
        .map(|()| Saved { mime_type: "text".to_owned(), path: file.to_owned() })
        .map_err(|error| cannot_write(file, &error))
}

/// Whether what is given in base64 can be written at all.
pub(super) fn is_whole(data: &str) -> bool {
    STANDARD.decode(data).is_ok()
}

fn decoded(mime_type: &str, data: &str) -> Result<Vec<u8>, CommandError> {
    STANDARD.decode(data).map_err(|_| CommandError::failed(damaged(mime_type)))
}

/// What is said about something that nobody can read.
pub(super) fn damaged(mime_type: &str) -> String {
    format!("cannot write {}: its data is damaged", named(mime_type))
}

/// What something is, where perhaps nobody says.
pub(super) fn named(mime_type: &str) -> &str {
    if mime_type.is_empty() { "binary data" } else { mime_type }
}

/// Why something cannot be written, in words of ours where there are better ones.
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
        // It fails if there is anything of that name, a link among it.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files of that name"))
}

/// The names of servers and tools may hold anything.
fn harmless(stem: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let stem: String =
        stem.chars().take(NAME_CHARS).map(|c| if fits(c) { c } else { '_' }).collect();
    // A name that begins with a dash would be taken for an option.
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
    fn what_is_unknown_gets_a_neutral_ending_and_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let saved = save(folder.path(), "--", "application/x-sh", "aGk=").unwrap();
        assert_eq!(saved.path, folder.path().join("answer-1.bin"));
        assert!(save(folder.path(), "x", "image/png", "not base64!").is_err());
    }

    #[test]
    fn where_nothing_can_be_written_is_known_before() {
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
            (Some(folder.path().join("none/x")), None, "no folder"),
            (Some(file.join("x")), None, "is not a folder"),
            (None, Some(file.clone()), "is not a folder"),
            (None, Some(file.join("x")), "is not a folder"),
        ] {
            let message = said(output, save).unwrap_or_default();
            assert!(message.contains(words), "{message}");
        }
    }
}
