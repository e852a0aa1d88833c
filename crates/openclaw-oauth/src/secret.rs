//! Serialization of [`SecretString`]s for the encrypted store, which is the only place for them.
//!
//! Use it with `#[serde(with = "crate::secret")]`, or `crate::secret::option` for optional ones.

use openclaw_secrets::SecretString;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Serializes the value of a secret.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<S: Serializer>(secret: &SecretString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(secret.expose())
}

/// Deserializes a secret.
///
/// # Errors
/// If the deserializer fails, or the value is not a string.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    String::deserialize(from).map(SecretString::from)
}

/// Like the parent module, for `Option<SecretString>`.
pub mod option {
    use super::{Deserializer, SecretString, Serializer};
    use serde::Deserialize as _;

    /// Serializes the value of a secret, if there is one.
    ///
    /// # Errors
    /// If the serializer fails.
    pub fn serialize<S: Serializer>(
        secret: &Option<SecretString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => to.serialize_some(secret.expose()),
            None => to.serialize_none(),
        }
    }

    /// Deserializes an optional secret.
    ///
    /// # Errors
    /// If the deserializer fails, or the value is neither a string nor null.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SecretString>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(SecretString::from))
    }
}
