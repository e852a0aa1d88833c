//! What happened with a server, in a file that `openclaw mcp logs` shows: its standard error and its
//! changes of state. Bounded: the file and one older one. No secret that is known stands in it.

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
use openclaw_tools::private;

/// A file that would grow beyond this becomes the older one.
const MAX_BYTES: u64 = 1024 * 1024;
/// How long other programs are waited for that log the same server. A server may be waiting meanwhile.
const PATIENCE: Duration = Duration::from_millis(100);

/// The log of one server. A clone writes to the same file.
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
    /// A log in this folder, for a server of this name. The file is made when something is written.
    pub fn at(folder: &Path, server: &str) -> Self {
        let state = State { path: path(folder, server), file: None };
        Self { shared: Some(Arc::new(Mutex::new(state))), redactor: Redactor::new() }
    }

    /// No log.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same, without the secrets that this filter knows, now or later.
    #[must_use]
    pub fn without_secrets(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// A text as it may be kept and shown: without the secrets that are known by now.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact(text)
    }

    /// What somebody else said as one clean line of at most so many characters. Secrets go first: one
    /// that is cut in half would not be found any more.
    pub(crate) fn clean(&self, text: &str, max_chars: usize) -> String {
        clean_line(Untrusted::new(&self.redact(text)), max_chars)
    }

    /// The filter that knows the secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Adds a line, with the time before it. A log that cannot be written is no reason to stop.
    pub fn line(&self, text: &str) {
        let Some(shared) = &self.shared else { return };
        let line = format!("{} {}\n", Rfc3339(SystemTime::now()), self.redact(text));
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = state.write(line.as_bytes());
    }

    /// The last lines of a server's log, oldest first; none if there is no log.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn tail(folder: &Path, server: &str, lines: usize) -> std::io::Result<Vec<String>> {
        Self::follow(folder, server, lines).map(|(tail, _)| tail)
    }

    /// The same, and where to find those that are added later.
    ///
    /// # Errors
    /// If there is a log that cannot be read.
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

/// Reads what is added to a log.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// The file, read so far. None if there was none.
    file: Option<(File, u64)>,
    /// The beginning of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl Follower {
    fn at(path: PathBuf) -> Self {
        Self { path, file: None, begun: Vec::new() }
    }

    /// The lines that were added since the last time.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn added(&mut self) -> std::io::Result<Vec<String>> {
        self.read_on()?;
        // A file that has become shorter is another one: the one before was put aside when it was full.
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
            self.file = match File::open(&self.path) {
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
        private::make_folder(folder)?;
    }
    Appended::open(path.to_owned(), older(path), MAX_BYTES, PATIENCE)
}

/// A server's name is made of letters, digits and few signs: it is a file name, too, once dots at its
/// beginning are out of the way.
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
    fn what_is_added_later_is_read_once_also_from_the_next_file() {
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
    fn several_programs_that_log_one_server_keep_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let logs: Vec<ServerLog> = (0..4).map(|_| ServerLog::at(folder.path(), "x")).collect();
        let long = "y".repeat(1_000);
        let count = MAX_BYTES as usize / 1_026 - 1;
        (0..count).for_each(|_| logs[0].line(&long));
        // All of them have the file open before it is full.
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
