//! The log file of a server, for `openclaw mcp logs`: its stderr and its state changes. At most two
//! files are kept, the current and the previous one. Known secrets are redacted.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use openclaw_content::{Untrusted, clean_line};
use openclaw_secrets::Redactor;

use openclaw_tools::appended::Appended;
use openclaw_tools::clock::Rfc3339;

/// A file that would grow beyond this is rotated.
const MAX_BYTES: u64 = 1024 * 1024;
/// How long to wait for other programs that log the same server. Short, because the server may be
/// blocked meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// The log of one server. Clones write to the same file.
#[derive(Debug, Clone, Default)]
pub struct ServerLog {
    shared: Option<Arc<Mutex<State>>>,
    redactor: Redactor,
}

#[derive(Debug)]
struct State {
    path: PathBuf,
    /// The open file, once something was written.
    file: Option<Appended>,
}

impl ServerLog {
    /// Creates the log of a server in this folder. The file is created on the first write.
    pub fn at(folder: &Path, server: &str) -> Self {
        let state = State { path: path(folder, server), file: None };
        Self { shared: Some(Arc::new(Mutex::new(state))), redactor: Redactor::new() }
    }

    /// Creates a log that discards everything.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the redactor. Secrets that are added to it later are redacted as well.
    #[must_use]
    pub fn without_secrets(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Redacts the secrets that are known so far.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact(text)
    }

    /// Sanitizes untrusted text to one line of at most `max_chars` characters. Secrets are redacted
    /// first: a truncated one would not be recognized.
    pub fn clean(&self, text: &str, max_chars: usize) -> String {
        clean_line(Untrusted::new(&self.redact(text)), max_chars)
    }

    /// The redactor.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Appends a line with a timestamp. Write errors are ignored.
    pub fn line(&self, text: &str) {
        let Some(shared) = &self.shared else { return };
        let line = format!("{} {}\n", Rfc3339(SystemTime::now()), self.redact(text));
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = state.write(line.as_bytes());
    }

    /// Returns the last lines of a server's log, oldest first; none if there is no log.
    ///
    /// # Errors
    /// If the log exists but cannot be read.
    pub fn tail(folder: &Path, server: &str, lines: usize) -> std::io::Result<Vec<String>> {
        Self::follow(folder, server, lines).map(|(tail, _)| tail)
    }

    /// Like [`tail`](Self::tail), but also returns a [`Follower`] for the lines that are added
    /// later.
    ///
    /// # Errors
    /// If the log exists but cannot be read.
    pub fn follow(
        folder: &Path,
        server: &str,
        lines: usize,
    ) -> std::io::Result<(Vec<String>, Follower)> {
        let path = path(folder, server);
        let mut earlier = Follower::at(older(&path));
        let mut follower = Follower::at(path);
        let mut all = earlier.added()?;
        all.append(&mut follower.added()?);
        Ok((all.split_off(all.len().saturating_sub(lines)), follower))
    }
}

/// Reads the lines that are added to a log.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// The file and the position in it; `None` if it does not exist yet.
    file: Option<(File, u64)>,
    /// An incomplete last line.
    begun: Vec<u8>,
}

impl Follower {
    fn at(path: PathBuf) -> Self {
        Self { path, file: None, begun: Vec::new() }
    }

    /// Returns the lines that were added since the last call.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn added(&mut self) -> std::io::Result<Vec<String>> {
        self.read_on()?;
        // A file that is shorter than the position is a new one: the old one was rotated.
        let length = fs::metadata(&self.path).map_or(0, |about| about.len());
        if self.file.as_ref().is_some_and(|(_, position)| length < *position) {
            self.file = None;
            self.read_on()?;
        }
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text: Vec<u8> = self.begun.drain(..whole).collect();
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    fn read_on(&mut self) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = match openclaw_files::open(&self.path) {
                Ok(file) => Some((file, 0)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        if let Some((file, position)) = &mut self.file {
            *position += file.read_to_end(&mut self.begun)? as u64;
        }
        Ok(())
    }
}

impl State {
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        let mut file = match self.file.take() {
            Some(open) => open,
            None => open(&self.path)?,
        };
        file.add(line)?;
        self.file = Some(file);
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<Appended> {
    if let Some(folder) = path.parent() {
        openclaw_files::make_folder(folder)?;
    }
    Appended::open(path.to_owned(), older(path), MAX_BYTES, PATIENCE)
}

/// The file name of a server's log. The prefix keeps a name with leading dots harmless.
fn path(folder: &Path, server: &str) -> PathBuf {
    let safe = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = server.chars().map(safe).collect();
    folder.join(format!("mcp-{name}.log"))
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_written_even_if_it_becomes_known_later() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::new();
        let log = ServerLog::at(folder.path(), "x").without_secrets(redactor.clone());
        redactor.add(&"hunter22".to_owned().into());
        log.line("the key is hunter22");
        let tail = ServerLog::tail(folder.path(), "x", 1).unwrap();
        assert!(tail[0].ends_with("the key is [REDACTED]"), "{tail:?}");
    }

    #[test]
    fn added_lines_are_read_once_also_across_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let (tail, mut follower) = ServerLog::follow(folder.path(), "x", 10).unwrap();
        assert!(tail.is_empty() && follower.added().unwrap().is_empty());
        let log = ServerLog::at(folder.path(), "x");
        let long = "y".repeat(1_000);
        let mut seen = 0;
        for number in 0..3_000 {
            log.line(&format!("{number} {long}"));
            if number % 100 == 7 {
                for line in follower.added().unwrap() {
                    assert!(line.contains(&format!(" {seen} y")), "{seen}: {line}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen + follower.added().unwrap().len(), 3_000);
        let (tail, mut follower) = ServerLog::follow(folder.path(), "x", 1).unwrap();
        assert!(tail[0].contains(" 2999 y") && follower.added().unwrap().is_empty());
    }

    #[test]
    fn several_programs_that_log_one_server_lose_no_lines() {
        let folder = tempfile::tempdir().unwrap();
        let logs: Vec<ServerLog> = (0..4).map(|_| ServerLog::at(folder.path(), "x")).collect();
        let long = "y".repeat(1_000);
        let count = MAX_BYTES as usize / 1_026 - 1;
        (0..count).for_each(|_| logs[0].line(&long));
        // All have the file open before it is full.
        logs.iter().for_each(|log| log.line("hello"));
        for round in 0..10 {
            for (at, log) in logs.iter().enumerate() {
                log.line(&format!("{round} of {at} {long}"));
            }
        }
        let tail = ServerLog::tail(folder.path(), "x", usize::MAX).unwrap();
        assert_eq!(tail.len(), 4 + count + 40);
        assert!(tail.last().unwrap().contains(" 9 of 3 "));
    }

    #[test]
    fn lines_are_kept_in_order_and_the_file_stays_bounded() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ServerLog::tail(folder.path(), "../x", 10).unwrap().is_empty());
        let log = ServerLog::at(folder.path(), "../x");
        let long = "y".repeat(1_000);
        for number in 0..3_000 {
            log.line(&format!("{number} {long}"));
        }
        let tail = ServerLog::tail(folder.path(), "../x", 1_500).unwrap();
        assert_eq!(tail.len(), 1_500, "both files are read");
        assert!(tail.last().unwrap().contains(" 2999 y"));
        let bytes: u64 = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes < 2 * MAX_BYTES + 4_096, "{bytes}");
    }
}
