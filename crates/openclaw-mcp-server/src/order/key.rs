//! Session keys of callers.

use data_encoding::HEXLOWER;
use openclaw_protocol::keys::agent_of;

/// Maximum length of a key, in bytes.
const MAX_BYTES: usize = 256;

/// Returns a key that is not in use.
pub(crate) fn fresh(agent: Option<&str>) -> String {
    let name = format!("mcp-{}", random());
    match agent {
        Some(agent) => format!("agent:{agent}:{name}"),
        None => name,
    }
}

/// Returns 32 random hexadecimal digits.
pub(crate) fn random() -> String {
    let mut bytes = [0; 16];
    // Without random numbers, the time is good enough: the key need not be secret.
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes = since.unwrap_or_default().as_nanos().to_be_bytes();
    }
    HEXLOWER.encode(&bytes)
}

/// Checks the key of a caller. It is stricter than the gateway: what looks like a path is a mistake.
///
/// # Errors
/// What is wrong, for the caller.
pub(crate) fn check(key: &str, agent: Option<&str>) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("invalid `sessionKey`: {why}"));
    if key.is_empty() || key.trim() != key {
        return wrong("it is empty, or begins or ends with a space");
    }
    if key.len() > MAX_BYTES {
        return wrong(&format!("{} bytes; at most {MAX_BYTES} are allowed", key.len()));
    }
    if key.contains(['/', '\\']) || key.contains("..") {
        return wrong("`/`, `\\` and `..` are not allowed");
    }
    if key.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return wrong("control characters are not allowed");
    }
    match (agent_of(key), agent) {
        (Some(of_key), Some(agent)) if of_key != agent => {
            wrong(&format!("the session belongs to agent `{of_key}`, not to `{agent}`"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_looks_like_a_path_or_is_too_long_is_rejected() {
        let long = "x".repeat(10_000);
        for bad in ["", " a", "a/b", "..", "a..b", "c:\\x", "a\0b", "a\nb", "a\u{2028}", &long] {
            assert!(check(bad, None).is_err(), "{bad:?}");
        }
        for good in ["a", "agent:main:main", "カギ 🔑", "mcp-1.2"] {
            assert_eq!(check(good, None), Ok(()), "{good:?}");
        }
        assert!(check("agent:main:x", Some("other")).is_err());
    }

    #[test]
    fn a_fresh_key_is_valid_and_unique() {
        let keys = [fresh(None), fresh(None), fresh(Some("main"))];
        for key in &keys {
            assert_eq!(check(key, None), Ok(()));
        }
        assert_ne!(keys[0], keys[1]);
        assert_eq!(agent_of(&keys[2]), Some("main"));
    }
}
