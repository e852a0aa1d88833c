//! What a session is called.

use std::fmt;
use std::str::FromStr;

/// A longer key is refused.
pub const MAX_KEY_BYTES: usize = 512;

/// What a session is called: 1 to 512 bytes without control characters or line breaks. It is data in
/// a table, never a path or part of a command.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(String);

/// Why a text is no session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSessionKey {
    /// There is nothing.
    #[error("a session key must not be empty")]
    Empty,
    /// There is too much.
    #[error("a session key has at most {MAX_KEY_BYTES} bytes; this one has {bytes}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A control character, NUL or a line break.
    #[error("a session key must not hold control characters or line breaks; at byte {at} is U+{:04X}", u32::from(*.character))]
    Control {
        /// Where it stands, in bytes.
        at: usize,
        /// Which it is.
        character: char,
    },
}

impl SessionKey {
    /// Checks a key.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(key: impl Into<String>) -> Result<Self, BadSessionKey> {
        let key = key.into();
        if key.is_empty() {
            return Err(BadSessionKey::Empty);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(BadSessionKey::TooLong { bytes: key.len() });
        }
        let breaks_lines = |character| matches!(character, '\u{2028}' | '\u{2029}');
        match key.char_indices().find(|(_, it)| it.is_control() || breaks_lines(*it)) {
            Some((at, character)) => Err(BadSessionKey::Control { at, character }),
            None => Ok(Self(key)),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionKey {
    type Err = BadSessionKey;

    fn from_str(key: &str) -> Result<Self, BadSessionKey> {
        Self::new(key)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_look_like_a_path_and_hold_any_script() {
        for key in ["a", "agent:main:main", "../../etc/passwd", "C:\\x", "カギ 🔑", "' OR 1=1 --"]
        {
            assert_eq!(SessionKey::new(key).unwrap().as_str(), key);
        }
        assert!(SessionKey::new("x".repeat(MAX_KEY_BYTES)).is_ok());
    }

    #[test]
    fn a_bad_key_is_told_what_is_wrong_with_it() {
        assert_eq!(SessionKey::new(""), Err(BadSessionKey::Empty));
        assert_eq!(
            SessionKey::new("é".repeat(257)).unwrap_err().to_string(),
            "a session key has at most 512 bytes; this one has 514"
        );
        for bad in ["a\0b", "a\nb", "a\rb", "a\tb", "a\u{1b}b", "a\u{85}b", "a\u{2028}b"] {
            let error = SessionKey::new(bad).unwrap_err();
            assert!(matches!(error, BadSessionKey::Control { at: 1, .. }), "{bad:?}: {error}");
        }
        assert_eq!(
            SessionKey::new("a\nb").unwrap_err().to_string(),
            "a session key must not hold control characters or line breaks; at byte 1 is U+000A"
        );
    }
}
