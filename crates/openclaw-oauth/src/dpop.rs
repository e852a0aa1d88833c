//! Tokens that are bound to a key, so that a stolen token is useless (DPoP, RFC 9449).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use openclaw_secrets::SecretString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;
use zeroize::Zeroizing;

use crate::error::AuthError;
use crate::jwt::{self, encode};
use crate::server_hints::ServerHints;

/// The algorithm of our keys.
pub const ALGORITHM: &str = "ES256";
/// The header of a proof.
pub const PROOF_HEADER: &str = "dpop";

/// The key that a token is bound to: P-256, generated here.
///
/// It serializes as base64 of PKCS#8, for the encrypted store only.
#[derive(Clone)]
pub struct DpopKey {
    pair: Arc<EcdsaKeyPair>,
    pkcs8: SecretString,
}

impl DpopKey {
    /// Generates a key.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate() -> Result<Self, AuthError> {
        let failed = |_| AuthError::Crypto("cannot generate a DPoP key");
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
        let pkcs8 = STANDARD.encode(pair.to_pkcs8v1().map_err(failed)?).into();
        Ok(Self { pair: Arc::new(pair), pkcs8 })
    }

    /// Returns the proof for one request, to be sent in the [`PROOF_HEADER`]. A proof is used once.
    ///
    /// The access token is given for requests to an MCP server and omitted for token requests. Nonce
    /// and time are taken from what the server said before. Query and fragment of the URL are ignored.
    ///
    /// # Errors
    /// If the key cannot sign, or there is no randomness.
    pub fn proof(
        &self,
        method: &str,
        url: &Url,
        access_token: Option<&str>,
        hints: &ServerHints,
    ) -> Result<String, AuthError> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut claims = json!({
            "jti": jwt::random()?,
            "htm": method,
            "htu": target.as_str(),
            "iat": hints.now(url),
        });
        if let Some(token) = access_token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(Sha256::digest(token)).into();
        }
        if let Some(nonce) = hints.nonce(url) {
            claims["nonce"] = nonce.into();
        }
        let header = json!({"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.public_key()});
        encode(&header, &claims, |input| {
            Some(self.pair.sign(&SystemRandom::new(), input).ok()?.as_ref().to_vec())
        })
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        let key = self.public_key();
        // RFC 7638, section 3.2: the required members in lexicographic order, without spaces.
        let canonical =
            format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, key["x"], key["y"]);
        URL_SAFE_NO_PAD.encode(Sha256::digest(canonical))
    }

    fn public_key(&self) -> Value {
        // An uncompressed point: 4, then x and y with 32 bytes each.
        let point = self.pair.public_key().as_ref();
        let part = |from, to| URL_SAFE_NO_PAD.encode(point.get(from..to).unwrap_or_default());
        json!({"kty": "EC", "crv": "P-256", "x": part(1, 33), "y": part(33, 65)})
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("thumbprint", &self.thumbprint()).finish_non_exhaustive()
    }
}

impl PartialEq for DpopKey {
    fn eq(&self, other: &Self) -> bool {
        self.pkcs8 == other.pkcs8
    }
}

impl Eq for DpopKey {}

impl Serialize for DpopKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        crate::secret::serialize(&self.pkcs8, to)
    }
}

impl<'de> Deserialize<'de> for DpopKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let pkcs8 = crate::secret::deserialize(from)?;
        let der = STANDARD.decode(pkcs8.expose()).map(Zeroizing::new);
        let der = der.map_err(|_| D::Error::custom("a DPoP key that is not base64"))?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der)
            .map_err(|_| D::Error::custom("a DPoP key that is not PKCS#8 of P-256"))?;
        Ok(Self { pair: Arc::new(pair), pkcs8 })
    }
}

#[cfg(test)]
#[path = "dpop_tests.rs"]
pub(crate) mod tests;
