//! Completion of paths after `@`.

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of entries of a folder that are read.
const MAX_ENTRIES: usize = 5_000;
/// The maximum number of paths that are offered.
const MAX_OFFERED: usize = 100;

/// Where relative paths begin.
#[derive(Debug, Clone, Default)]
pub(super) struct PathRoots {
    /// The current folder.
    pub(super) folder: PathBuf,
    /// The folder of `~/`.
    pub(super) home: Option<PathBuf>,
}

impl PathRoots {
    /// Returns the path that was typed.
    pub(super) fn resolve(&self, typed: &str) -> PathBuf {
        match (typed.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.folder.join(typed),
        }
    }

    /// Completes the path after the last `@` of a text. Returns the offset of the word and the words
    /// to complete to; those of folders end with a slash. `None` if the last word has no `@`.
    pub(super) fn complete(&self, text: &str) -> Option<(usize, Vec<String>)> {
        let (start, typed) = last_word(text)?;
        let (folder, begun) = match typed.rfind('/') {
            Some(at) => typed.split_at(at + 1),
            None => ("", typed.as_str()),
        };
        let mut names = entries(&self.resolve(folder), begun);
        names.sort_unstable();
        names.truncate(MAX_OFFERED);
        let word = |name: &String| format!("@{}", format!("{folder}{name}").replace(' ', "\\ "));
        Some((start, names.iter().map(word).collect()))
    }
}

/// Returns the names in a folder that begin with a text. Hidden ones only if the text begins with a
/// dot, and none that cannot be typed as a word.
fn entries(folder: &Path, begun: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: fs::DirEntry| {
        let mut name = entry.file_name().into_string().ok()?;
        let is_plain = !name.contains(|c: char| c.is_control() || matches!(c, '\\' | '"' | '\''));
        let is_meant =
            name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.'));
        if !is_plain || !is_meant {
            return None;
        }
        if entry.path().is_dir() {
            name.push('/');
        }
        Some(name)
    };
    entries.take(MAX_ENTRIES).flatten().filter_map(named).collect()
}

/// Returns the offset of the last word, and its text after the `@`, without the backslashes before
/// spaces.
fn last_word(text: &str) -> Option<(usize, String)> {
    let (mut start, mut word) = (0, String::new());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.next_if(|(_, next)| *next == ' ').is_some() => word.push(' '),
            c if c.is_whitespace() => (start, word) = (at + c.len_utf8(), String::new()),
            c => word.push(c),
        }
    }
    word.strip_prefix('@').map(|path| (start, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_after_an_at_sign() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pictures")).unwrap();
        for file in ["plan.md", "pictures/a cat.png", "pictures/it's.png", ".hidden", "notes"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let home = Some(folder.path().join("pictures"));
        let roots = PathRoots { folder: folder.path().to_owned(), home };
        let complete = |text: &str| roots.complete(text);
        let words = |start: usize, words: &[&str]| {
            Some((start, words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()))
        };
        assert_eq!(complete("see @p"), words(4, &["@pictures/", "@plan.md"]));
        assert_eq!(complete("@"), words(0, &["@notes", "@pictures/", "@plan.md"]));
        assert_eq!(complete("@.h"), words(0, &["@.hidden"]));
        assert_eq!(complete("@pictures/"), words(0, &["@pictures/a\\ cat.png"]));
        assert_eq!(complete("@pictures/a\\ c"), words(0, &["@pictures/a\\ cat.png"]));
        assert_eq!(complete("é @~/a"), words(3, &["@~/a\\ cat.png"]));
        let absolute = format!("@{}/no", folder.path().display());
        assert_eq!(complete(&absolute), words(0, &[&format!("{absolute}tes")]));
        assert_eq!(complete("@missing/x"), words(0, &[]));
        for text in ["", "plan", "me@p", "@plan.md "] {
            assert_eq!(complete(text), None, "{text}");
        }
    }
}
