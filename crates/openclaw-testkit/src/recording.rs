//! The messages that a server has received.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The file set by `Script::record`, read as messages.
#[derive(Debug, Clone)]
pub struct Recording {
    path: PathBuf,
}

impl Recording {
    /// Refers to the recording in this file, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns every line that is JSON: messages (stdio), or HTTP requests as
    /// `{"method", "path", "headers", "body"}`. `{"closed": ID}` means that the client has closed
    /// the stream of that call before the response.
    pub fn lines(&self) -> Vec<Value> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        bytes
            .split(|&byte| byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// Returns every JSON-RPC message, whatever the transport.
    pub fn messages(&self) -> Vec<Value> {
        self.lines()
            .into_iter()
            .map(|mut line| if line["path"].is_string() { line["body"].take() } else { line })
            .filter(|message| message["jsonrpc"].is_string())
            .collect()
    }

    /// Returns the messages with this method.
    pub fn of_method(&self, method: &str) -> Vec<Value> {
        let mut messages = self.messages();
        messages.retain(|message| message["method"] == method);
        messages
    }

    /// Returns the HTTP requests with this method, such as `DELETE`.
    pub fn http(&self, method: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["path"].is_string() && line["method"] == method);
        lines
    }

    /// Waits for a matching line, for messages that may still be in transit; `None` on timeout.
    pub fn wait_for(&self, time: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + time;
        loop {
            let found = self.lines().into_iter().find(|line| wanted(line));
            if found.is_some() || Instant::now() >= end {
                return found;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
