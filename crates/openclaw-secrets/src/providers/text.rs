//! Reads the bytes of a file or a command as a value.

use std::{io, path::Path};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use zeroize::Zeroizing;

use crate::{ResolveErrorKind, SecretString, resolve_error::ProviderFailure};

/// The maximum size of a secret. Anything larger is most likely the wrong file.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

/// Reads `source` to its end, as text without the final line break.
///
/// `expected` is the estimated size: a buffer that grows leaves copies behind in memory.
pub(super) async fn read_value(
    source: impl AsyncRead + Unpin,
    expected: usize,
) -> Result<SecretString, ProviderFailure> {
    let mut bytes = buffer(expected);
    read_to_end(source, &mut bytes).await?;
    value(bytes)
}

/// Opens a file without blocking a task: it must be a regular file.
pub(super) async fn open(path: &Path) -> io::Result<tokio::fs::File> {
    let path = path.to_owned();
    let opening = tokio::task::spawn_blocking(move || openclaw_files::open(&path));
    opening.await.map_err(io::Error::other).flatten().map(tokio::fs::File::from_std)
}

/// Reads a file of at most 1 MiB.
#[cfg(any(feature = "gcp", feature = "vault"))]
pub(super) async fn read_file(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let path = path.to_owned();
    let max = MAX_SIZE as u64;
    let reading = tokio::task::spawn_blocking(move || openclaw_files::read(&path, max));
    reading.await.map_err(io::Error::other).flatten().map(Zeroizing::new)
}

/// Creates a buffer for this many bytes, plus one to detect a larger source.
pub(super) fn buffer(expected: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(Vec::with_capacity(expected.min(MAX_SIZE) + 1))
}

/// Appends the rest of `source` to `bytes`. On cancellation, `bytes` contains what was read so far.
pub(super) async fn read_to_end(
    mut source: impl AsyncRead + Unpin,
    bytes: &mut Vec<u8>,
) -> Result<(), ProviderFailure> {
    loop {
        let read = source.read_buf(bytes).await.map_err(|error| {
            ProviderFailure::new(ResolveErrorKind::Failed, format!("read failed: {}", error.kind()))
        })?;
        if bytes.len() > MAX_SIZE {
            return Err(ProviderFailure::new(ResolveErrorKind::Failed, "larger than 1 MiB"));
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Converts bytes to text without the final line break.
pub(super) fn value(mut bytes: Zeroizing<Vec<u8>>) -> Result<SecretString, ProviderFailure> {
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    into_text(std::mem::take(&mut *bytes))
}

/// Converts bytes to text without copying.
pub(super) fn into_text(bytes: Vec<u8>) -> Result<SecretString, ProviderFailure> {
    String::from_utf8(bytes).map(SecretString::from).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        ProviderFailure::new(ResolveErrorKind::NotText, "the secret is not UTF-8 text")
    })
}
