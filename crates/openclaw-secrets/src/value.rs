//! [`SecretString`]: text that cannot be printed by accident.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Replaces a secret in all output.
pub const REDACTED: &str = "[REDACTED]";

/// A secret value, plain or resolved.
///
/// It has no `Display` and no `Serialize`, its `Debug` prints `[REDACTED]`, values of equal length
/// are compared in constant time, and the memory is overwritten on drop.
///
/// ```
/// use openclaw_secrets::SecretString;
///
/// let secret = SecretString::from("hunter22");
/// assert_eq!(format!("{secret:?}"), "[REDACTED]");
/// assert_eq!(secret.expose(), "hunter22");
/// ```
#[derive(Clone)]
pub struct SecretString(Zeroizing<String>);

impl SecretString {
    /// Returns the value. Call it only where a header is set or a process is spawned.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the value is this text. Texts of equal length are compared in constant time.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// Whether the value is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for SecretString {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl From<&str> for SecretString {
    fn from(value: &str) -> Self {
        Self::from(value.to_owned())
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl PartialEq for SecretString {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.expose())
    }
}

impl Eq for SecretString {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_never_shows_the_value() {
        let secret = SecretString::from("hunter22");
        assert_eq!(format!("{secret:?} {secret:#?}"), "[REDACTED] [REDACTED]");
        assert_eq!(format!("{:?}", Some(&secret)), "Some([REDACTED])");
    }

    #[test]
    fn equality_compares_the_values() {
        assert_eq!(SecretString::from("a"), SecretString::from("a"));
        assert_ne!(SecretString::from("a"), SecretString::from("b"));
        assert_ne!(SecretString::from("a"), SecretString::from("ab"));
        assert!(SecretString::from("a").is("a") && !SecretString::from("a").is("ab"));
    }
}
