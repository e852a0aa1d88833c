//! Random ids.

use data_encoding::HEXLOWER;

/// Returns a new id. It need not be secret.
pub(crate) fn fresh_id() -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.unwrap_or_default().as_nanos().to_be_bytes();
        bytes.copy_from_slice(&nanos[8..]);
    }
    HEXLOWER.encode(&bytes)
}
