//! From the bytes of a file or a command to a value.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use zeroize::Zeroizing;

use crate::{ResolveErrorKind, SecretString, resolve_error::Failure};

/// No secret is larger. What is, is most likely the wrong file.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

/// Everything that `source` has to give, as text without its last line break.
///
/// `expected` is a guess at the size: a buffer that grows leaves copies behind in memory.
pub(super) async fn read_value(
    source: impl AsyncRead + Unpin,
    expected: usize,
) -> Result<SecretString, Failure> {
    let mut bytes = buffer(expected);
    read_to_end(source, &mut bytes).await?;
    value(bytes)
}

/// A buffer for so many bytes, and one more by which a larger source is noticed.
pub(super) fn buffer(expected: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(Vec::with_capacity(expected.min(MAX_SIZE) + 1))
}

/// Adds everything that `source` has to give. If it is cancelled, what was read is in `bytes`.
pub(super) async fn read_to_end(
    mut source: impl AsyncRead + Unpin,
    bytes: &mut Vec<u8>,
) -> Result<(), Failure> {
    loop {
        let read = source.read_buf(bytes).await.map_err(|error| {
            Failure::new(ResolveErrorKind::Failed, format!("it cannot be read: {}", error.kind()))
        })?;
        if bytes.len() > MAX_SIZE {
            return Err(Failure::new(ResolveErrorKind::Failed, "it is larger than 1 MiB"));
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// The text that these bytes are, without its last line break.
pub(super) fn value(mut bytes: Zeroizing<Vec<u8>>) -> Result<SecretString, Failure> {
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    into_text(std::mem::take(&mut *bytes))
}

/// Bytes as text, without a copy.
pub(super) fn into_text(bytes: Vec<u8>) -> Result<SecretString, Failure> {
    String::from_utf8(bytes).map(SecretString::from).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        Failure::new(ResolveErrorKind::NotText, "it is not UTF-8 text")
    })
}
