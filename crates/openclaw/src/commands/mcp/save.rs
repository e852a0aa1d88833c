//! Pictures, sounds and whatever else is binary into files. Where the name follows from the server, it is
//! harmless, and never that of another file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

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

/// Writes what is given in base64 into a folder.
///
/// # Errors
/// Why that cannot be.
pub(super) fn save(
    folder: &Path,
    stem: &str,
    mime_type: &str,
    data: &str,
) -> Result<Saved, String> {
    let bytes = decoded(data)?;
    DirBuilder::new()
        .recursive(true)
        .create(folder)
        .and_then(|()| write_new(folder, &harmless(stem), ending(mime_type), &bytes))
        .map(|path| Saved { mime_type: mime_type.to_owned(), path })
        .map_err(|error| format!("nothing can be saved in {}: {error}", folder.display()))
}

/// Writes what is given in base64 to the file that somebody named, be there one or not.
///
/// # Errors
/// Why that cannot be.
pub(super) fn save_as(file: &Path, mime_type: &str, data: &str) -> Result<Saved, String> {
    let bytes = decoded(data)?;
    std::fs::write(file, bytes)
        .map(|()| Saved { mime_type: mime_type.to_owned(), path: file.to_owned() })
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

/// Whether what is given in base64 can be written at all.
pub(super) fn is_whole(data: &str) -> bool {
    decoded(data).is_ok()
}

fn decoded(data: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(data).map_err(|error| format!("what the server sent is damaged: {error}"))
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
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many files of that name"))
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
}
