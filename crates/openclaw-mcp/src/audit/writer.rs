//! The thread that writes the audit log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tokio::sync::mpsc;

use super::Message;
use super::entry::Rfc3339;

/// Owns the file.
pub(super) struct Writer {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    lost: Arc<AtomicU64>,
    /// Whether the last write failed: one message is enough.
    is_failing: bool,
}

impl Writer {
    pub(super) fn open(path: PathBuf, max_bytes: u64, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = open(&path)?;
        let size = file.metadata()?.len();
        Ok(Self { path, file, size, max_bytes, lost, is_failing: false })
    }

    /// Writes what comes until nobody can send any more.
    pub(super) fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        while let Some(message) = messages.blocking_recv() {
            match message {
                Message::Line(line) => self.line(&line),
                Message::Flush(done) => {
                    self.say_what_was_lost();
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
            }
        }
        self.say_what_was_lost();
    }

    fn line(&mut self, line: &str) {
        self.say_what_was_lost();
        if !self.write(line) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn say_what_was_lost(&mut self) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            if !self.is_failing {
                tracing::warn!(lost, "lines of the audit log were lost");
            }
            let time = Rfc3339(SystemTime::now());
            if !self.write(&format!("{{\"time\":\"{time}\",\"lost\":{lost}}}\n")) {
                self.lost.fetch_add(lost, Ordering::Relaxed);
            }
        }
    }

    /// One write for a line, so that lines of two programs do not mix. Returns whether it worked.
    fn write(&mut self, line: &str) -> bool {
        let length = line.len() as u64;
        let written = self.rotate(length).and_then(|()| self.file.write_all(line.as_bytes()));
        match &written {
            Ok(()) => {
                self.size += length;
                self.is_failing = false;
            }
            Err(error) => {
                if !self.is_failing {
                    tracing::error!(file = %self.path.display(), %error, "cannot write the audit log");
                }
                self.is_failing = true;
            }
        }
        written.is_ok()
    }

    /// Puts a full file aside, over the one that was put aside before.
    fn rotate(&mut self, length: u64) -> io::Result<()> {
        if self.size == 0 || self.size + length <= self.max_bytes {
            return Ok(());
        }
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        self.file = open(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // It may have been there before, open to others.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}
