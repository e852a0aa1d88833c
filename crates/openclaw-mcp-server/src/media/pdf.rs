//! The text of a PDF, for models that cannot read one.
//!
//! A document may be hostile, so it is parsed in a process of its own, with limits on time, memory
//! and output: [`extract`] is what that process does.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lopdf::{Document, LoadOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// The time for a document.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a document, in bytes.
const MAX_INPUT: u64 = 32 * 1024 * 1024;
/// Maximum size of a decompressed stream, in bytes.
const MAX_STREAM: usize = 64 * 1024 * 1024;
/// Maximum size of the text, in bytes. What exceeds it is cut off.
const MAX_TEXT: usize = 1024 * 1024;
/// Maximum number of pages whose text is read.
const MAX_PAGES: usize = 2_000;

/// A program that reads a PDF from stdin and writes its text to stdout, as [`extract`] does.
#[derive(Debug, Clone)]
pub struct PdfReader {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl PdfReader {
    /// Returns the text of a document.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn text(&self, pdf: &[u8]) -> Result<String, String> {
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start the reader: {error}"))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("cannot start the reader".to_owned());
        };
        let mut text = Vec::new();
        let limit = u64::try_from(MAX_TEXT).unwrap_or(u64::MAX);
        let reading = async {
            let writing = async {
                // It stops reading if it fails.
                let _ = input.write_all(pdf).await;
                drop(input);
            };
            let mut output = output.take(limit);
            let (read, ()) = tokio::join!(output.read_to_end(&mut text), writing);
            read?;
            child.wait().await
        };
        match timeout(TIMEOUT, reading).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(_)) => return Err("it is damaged, encrypted or too complex".to_owned()),
            Ok(Err(error)) => return Err(format!("cannot run the reader: {error}")),
            Err(_) => return Err(format!("timed out after {} s", TIMEOUT.as_secs())),
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        match text.trim() {
            "" => Err("it has no text, perhaps only scanned pages".to_owned()),
            text => Ok(text.to_owned()),
        }
    }
}

/// Reads a PDF, and writes the text of its pages. Returns whether it could be read.
pub fn extract(input: impl Read, mut output: impl Write) -> bool {
    let mut pdf = Vec::new();
    if input.take(MAX_INPUT).read_to_end(&mut pdf).is_err() {
        return false;
    }
    let options = LoadOptions { max_decompressed_size: Some(MAX_STREAM), ..LoadOptions::default() };
    let Ok(document) = Document::load_mem_with_options(&pdf, options) else { return false };
    let mut left = MAX_TEXT;
    for number in document.get_pages().into_keys().take(MAX_PAGES) {
        // A page that cannot be read does not hide the others.
        let Ok(page) = document.extract_text_with_limit(&[number], MAX_STREAM) else { continue };
        let page = &page[..page.floor_char_boundary(left)];
        if output.write_all(page.as_bytes()).and_then(|()| output.write_all(b"\n")).is_err() {
            return false;
        }
        left = left.saturating_sub(page.len() + 1);
        if left == 0 {
            break;
        }
    }
    output.flush().is_ok()
}
