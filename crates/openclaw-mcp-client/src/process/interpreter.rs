//! Finds out why an existing program is "not found": its interpreter is missing.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Launch;

/// The kernel reads no more of the first line of a script.
const FIRST_LINE: u64 = 256;

/// Returns the interpreter in the first line of a script if it does not exist. With CRLF line
/// endings, the CR is part of its name.
pub fn missing_interpreter(program: &Path, cwd: Option<&Path>) -> Option<String> {
    let mut beginning = Vec::new();
    openclaw_files::open(program).ok()?.take(FIRST_LINE).read_to_end(&mut beginning).ok()?;
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = String::from_utf8_lossy(words.into_iter().find(|word| !word.is_empty())?);
    let is_there = cwd.unwrap_or(Path::new("")).join(&*interpreter).exists();
    (!is_there).then(|| interpreter.into_owned())
}

/// Returns the path that the program was found at.
pub(super) fn found(launch: &Launch) -> Option<PathBuf> {
    // On Windows, extensions are implied and scripts name no interpreter.
    if !cfg!(unix) {
        return None;
    }
    let cwd = launch.cwd.as_deref().unwrap_or(Path::new(""));
    if launch.program.contains(std::path::is_separator) {
        return Some(cwd.join(&launch.program)).filter(|path| path.is_file());
    }
    let folders = launch.env.get("PATH")?.expose();
    let mut paths = std::env::split_paths(folders).map(|it| cwd.join(it).join(&launch.program));
    paths.find(|path| path.is_file())
}
