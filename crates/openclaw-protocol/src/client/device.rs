//! The identity of this machine at a gateway that pairs devices.
//!
//! The Node gateway requires one of nodes, and from operators that are not on its own machine: a key that
//! signs the nonce of the handshake. An operator of the gateway approves it once. Our gateway ignores it.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::connect::{Challenge, ClientInfo};
use openclaw_secrets::SecretString;

/// A device key (Ed25519).
#[derive(Clone)]
pub struct DeviceKey {
    pair: Arc<Ed25519KeyPair>,
    pkcs8: SecretString,
}

/// The key cannot be generated or parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid device key")]
pub struct InvalidKey;

impl DeviceKey {
    /// Generates a key.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate() -> Result<Self, InvalidKey> {
        let pair = Ed25519KeyPair::generate().map_err(|_| InvalidKey)?;
        let document = pair.to_pkcs8().map_err(|_| InvalidKey)?;
        let pkcs8 = URL_SAFE_NO_PAD.encode(document.as_ref()).into();
        Ok(Self { pair: Arc::new(pair), pkcs8 })
    }

    /// Parses the text of a stored key.
    ///
    /// # Errors
    /// If it is not one.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| InvalidKey)?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes).map_err(|_| InvalidKey)?;
        Ok(Self { pair: Arc::new(pair), pkcs8: text.trim().to_owned().into() })
    }

    /// Returns the text to store.
    #[must_use]
    pub fn secret(&self) -> &SecretString {
        &self.pkcs8
    }

    /// Returns the id that the gateway knows the device by: the SHA-256 of its public key.
    #[must_use]
    pub fn id(&self) -> String {
        let digest = Sha256::digest(self.pair.public_key().as_ref());
        HEXLOWER.encode(&digest)
    }

    /// Signs the challenge of a gateway. What is signed is defined by protocol 4: the third version of
    /// the fields, separated by `|`.
    pub(super) fn sign(&self, handshake: &Handshake<'_>) -> Value {
        let Handshake { challenge, client, role, scopes, token } = handshake;
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let lower = |text: &str| text.trim().to_ascii_lowercase();
        let id = self.id();
        let signed = [
            "v3",
            &id,
            &word(json!(client.id)),
            &word(json!(client.mode)),
            role,
            &scopes.join(","),
            &challenge.ts.to_string(),
            token.map_or("", |token| token.expose()),
            &challenge.nonce,
            &lower(&client.platform),
            &lower(client.device_family.as_deref().unwrap_or_default()),
        ];
        let signature = self.pair.sign(signed.join("|").as_bytes());
        json!({
            "id": id,
            "publicKey": URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref()),
            "signature": URL_SAFE_NO_PAD.encode(signature.as_ref()),
            "signedAt": challenge.ts,
            "nonce": challenge.nonce,
        })
    }
}

/// What a device signs: the nonce, and what the client asks for.
pub(super) struct Handshake<'a> {
    pub(super) challenge: &'a Challenge,
    pub(super) client: &'a ClientInfo,
    pub(super) role: &'a str,
    pub(super) scopes: &'a [String],
    pub(super) token: Option<&'a SecretString>,
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceKey").field(&self.id()).finish()
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_stored_key_is_the_same_device_and_its_signature_is_valid() {
        let key = DeviceKey::generate().unwrap();
        let stored = DeviceKey::parse(key.secret().expose()).unwrap();
        assert_eq!(stored.id(), key.id());
        assert!(DeviceKey::parse("nonsense").is_err());
        let challenge = Challenge { nonce: "n".to_owned(), ts: 7 };
        let client = ClientInfo { platform: " Linux ".to_owned(), ..ClientInfo::default() };
        let token = SecretString::from("t");
        let device = stored.sign(&Handshake {
            challenge: &challenge,
            client: &client,
            role: "operator",
            scopes: &["a".to_owned(), "b".to_owned()],
            token: Some(&token),
        });
        let bytes = |field: &str| URL_SAFE_NO_PAD.decode(device[field].as_str().unwrap()).unwrap();
        let signed = format!("v3|{}|cli|cli|operator|a,b|7|t|n|linux|", key.id());
        let public = UnparsedPublicKey::new(&ED25519, bytes("publicKey"));
        public.verify(signed.as_bytes(), &bytes("signature")).unwrap();
    }
}
