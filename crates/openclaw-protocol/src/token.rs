//! [`SecretToken`]: what a client shows to be let in.

use std::fmt;

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A token. It cannot be printed by accident, is compared in constant time, and is overwritten on drop.
#[derive(Clone)]
pub struct SecretToken(Zeroizing<String>);

impl SecretToken {
    /// The token itself. Call it where it is sent or stored, and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is the same. Where they differ cannot be told from the time it takes.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl From<String> for SecretToken {
    fn from(token: String) -> Self {
        Self(Zeroizing::new(token))
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}
