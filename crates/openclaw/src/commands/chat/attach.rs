//! Files that a message refers to: `@path`, and pictures whose path was dropped into the prompt.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::chat::Attachment;
use serde_json::value::to_raw_value;
use url::Url;

use super::paths::PathRoots;

/// The maximum size of a file, in bytes; the gateway limits all of them together.
const MAX_BYTES: u64 = 14 * 1024 * 1024;
/// The maximum number of files of a message.
pub(super) const MAX_FILES: usize = 20;
/// The maximum length of a path in a note.
const PATH_CHARS: usize = 200;

/// The types of files that are not text, by their extension.
const TYPES: [(&str, &str); 12] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
];

/// The files of a message, and notes about them for the user.
#[derive(Debug, Default)]
pub(super) struct AttachedFiles {
    pub(super) files: Vec<Attachment>,
    pub(super) notes: Vec<String>,
}

/// Reads the files that a message refers to. The message itself stays as it is.
pub(super) fn read(message: &str, roots: &PathRoots) -> AttachedFiles {
    let mut attached = AttachedFiles::default();
    for word in words(message) {
        let (named, is_asked) = match word.strip_prefix('@') {
            Some(named) => (named, true),
            None => (word.as_str(), false),
        };
        // Some terminals write a file that is dropped into them as a URL.
        let url = Url::parse(named).ok().filter(|url| url.scheme() == "file");
        let path = match url.and_then(|url| url.to_file_path().ok()) {
            Some(path) => path,
            None => roots.resolve(named),
        };
        let is_whole = named.starts_with("file://") || Path::new(named).is_absolute();
        let is_dropped = is_whole && type_of(&path).is_some();
        // `@name` may also be a person.
        if named.is_empty() || !(is_asked || is_dropped) || !path.is_file() {
            if is_asked && named.contains(['/', '.']) {
                attached.notes.push(format!("no file `{}`; sent as text", clean(named)));
            }
            continue;
        }
        if attached.files.len() >= MAX_FILES {
            attached.notes.push(format!("only the first {MAX_FILES} files are attached"));
            break;
        }
        match open(&path) {
            Ok(file) => {
                attached.notes.push(format!("attached {}", clean(named)));
                attached.files.push(file);
            }
            Err(why) => attached.notes.push(format!("cannot attach `{}`: {why}", clean(named))),
        }
    }
    attached
}

fn clean(path: &str) -> String {
    clean_line(Untrusted::new(path), PATH_CHARS)
}

fn type_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == extension).map(|(_, kind)| *kind)
}

fn open(path: &Path) -> Result<Attachment, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {} MB", MAX_BYTES / 1024 / 1024));
    }
    let kind = type_of(path);
    if kind.is_none() && std::str::from_utf8(&bytes).is_err() {
        return Err("not text, an image, audio, video or a PDF".to_owned());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    attachment(&bytes, kind, name)
}

/// Returns a file as an attachment; without a type, it is text.
pub(super) fn attachment(
    bytes: &[u8],
    mime_type: Option<&str>,
    name: String,
) -> Result<Attachment, String> {
    let content = to_raw_value(&STANDARD.encode(bytes)).map_err(|error| error.to_string())?;
    let kind = mime_type.and_then(|it| it.split('/').next()).unwrap_or("file");
    Ok(Attachment {
        kind: Some(kind.to_owned()),
        mime_type: Some(mime_type.unwrap_or("text/plain").to_owned()),
        file_name: Some(name),
        content: Some(content),
        ..Attachment::default()
    })
}

/// Splits a message into words. Quotes, and a backslash before a space, keep a path together: this is
/// how terminals write a file that is dropped into them.
fn words(message: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None) if chars.peek() == Some(&' ') => word.extend(chars.next()),
            ('"' | '\'', None) if word.is_empty() || word == "@" => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_attached_by_name_and_pictures_also_by_their_path_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("notes.txt"), "hello").unwrap();
        fs::write(path("my picture.png"), b"\x89PNG").unwrap();
        fs::write(path("blob"), b"\xff\xfe\x00").unwrap();
        let dropped = path("my picture.png").to_str().unwrap().replace(' ', "\\ ");
        let message = format!("see @notes.txt and {dropped} and '{}'", path("notes.txt").display());
        let roots = PathRoots { folder: folder.path().to_owned(), home: None };
        let attached = read(&message, &roots);
        let names: Vec<_> = attached.files.iter().map(|it| it.file_name.clone().unwrap()).collect();
        assert_eq!(names, ["notes.txt", "my picture.png"], "{attached:?}");
        assert_eq!(attached.files[0].content.as_ref().unwrap().get(), "\"aGVsbG8=\"");
        assert_eq!(attached.files[1].mime_type.as_deref(), Some("image/png"));
        let url = Url::from_file_path(path("my picture.png")).unwrap();
        assert_eq!(read(&format!("{url} @{url}"), &roots).files.len(), 2, "{url}");
        let attached = read("@'my picture.png' @ada @missing.txt @blob", &roots);
        assert_eq!(attached.files.len(), 1);
        assert_eq!(
            attached.notes[1..],
            [
                "no file `missing.txt`; sent as text".to_owned(),
                "cannot attach `blob`: not text, an image, audio, video or a PDF".to_owned()
            ]
        );
    }

    #[test]
    fn a_home_folder_is_known_and_folders_are_not_attached() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("a.txt"), "a").unwrap();
        let roots = PathRoots { folder: "/".into(), home: Some(home.path().to_owned()) };
        let attached = read("@~/a.txt @~/", &roots);
        assert_eq!(attached.files.len(), 1, "{attached:?}");
        assert!(read("an apostrophe isn't a quote @", &roots).files.is_empty());
    }
}
