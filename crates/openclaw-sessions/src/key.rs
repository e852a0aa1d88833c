//! Session keys.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a session key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// A session key: 1 to 512 bytes without control characters or line breaks. It is stored as data in
/// a table, never used as a path or part of a command.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(String);

/// Why a text is not a valid session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSessionKey {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is too long.
    #[error("it has {bytes} bytes; at most {MAX_KEY_BYTES} are allowed")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It contains a control character, NUL or a line break.
    #[error("it contains a control character or line break, U+{:04X} at byte {at}", u32::from(*.character))]
    Control {
        /// Byte offset.
        at: usize,
        /// The character.
        character: char,
    },
}

impl SessionKey {
    /// Validates a key.
    ///
    /// # Errors
    /// If the key is invalid.
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

    /// Returns the key as a string.
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
    fn an_invalid_key_is_rejected_with_the_reason() {
        assert_eq!(SessionKey::new(""), Err(BadSessionKey::Empty));
        assert_eq!(
            SessionKey::new("é".repeat(257)).unwrap_err().to_string(),
            "it has 514 bytes; at most 512 are allowed"
        );
        for bad in ["a\0b", "a\nb", "a\rb", "a\tb", "a\u{1b}b", "a\u{85}b", "a\u{2028}b"] {
            let error = SessionKey::new(bad).unwrap_err();
            assert!(matches!(error, BadSessionKey::Control { at: 1, .. }), "{bad:?}: {error}");
        }
        assert_eq!(
            SessionKey::new("a\nb").unwrap_err().to_string(),
            "it contains a control character or line break, U+000A at byte 1"
        );
    }
}
