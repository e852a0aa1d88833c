//! Signs JSON Web Tokens with the client's private key (RFC 7515, RFC 7523).

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::error::AuthError;

/// How long a client assertion is valid, in seconds.
const ASSERTION_LIFETIME: u64 = 120;

/// A JWS algorithm (RFC 7518).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// ECDSA with P-384 and SHA-384.
    #[serde(rename = "ES384")]
    Es384,
    /// RSA PKCS#1 v1.5 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// RSA PSS with SHA-256.
    #[serde(rename = "PS256")]
    Ps256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// Returns its JWS name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl FromStr for Algorithm {
    type Err = AuthError;

    fn from_str(text: &str) -> Result<Self, AuthError> {
        [Self::Es256, Self::Es384, Self::Rs256, Self::Ps256, Self::EdDsa]
            .into_iter()
            .find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| AuthError::Setting {
                setting: "signingAlgorithm",
                cause: "supported: ES256, ES384, RS256, PS256, EdDSA".to_owned(),
            })
    }
}

enum KeyPair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A private key, with the algorithm that it signs with.
pub struct SigningKey {
    algorithm: Algorithm,
    pair: KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads a PKCS#8 PEM. Without an algorithm, the key's usual one is taken: ES256, ES384, RS256
    /// or EdDSA.
    ///
    /// # Errors
    /// If it is not a PKCS#8 private key, or not one for the algorithm.
    pub fn from_pem(pem: &SecretString, algorithm: Option<Algorithm>) -> Result<Self, AuthError> {
        let der = read_pem(pem.expose())?;
        let choices: &[Algorithm] = match &algorithm {
            Some(algorithm) => std::slice::from_ref(algorithm),
            None => &[Algorithm::Es256, Algorithm::Es384, Algorithm::Rs256, Algorithm::EdDsa],
        };
        let found = choices.iter().find_map(|choice| Some((*choice, parse(&der, *choice)?)));
        let (algorithm, pair) = found.ok_or_else(|| {
            bad_key(match algorithm {
                Some(algorithm) => format!("it is not a key for {}", algorithm.name()),
                None => "it is not a P-256, P-384, RSA or Ed25519 key".to_owned(),
            })
        })?;
        Ok(Self { algorithm, pair })
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns a signed JWT with the given header type and claims.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn sign(&self, typ: &str, claims: &Value) -> Result<SecretString, AuthError> {
        let header = json!({"alg": self.algorithm.name(), "typ": typ});
        encode(&header, claims, |input| self.raw_signature(input)).map(SecretString::from)
    }

    /// Returns the assertion with which a client authenticates at an authorization server
    /// (RFC 7523, section 2.2). Its audience is the issuer, and `now` its Unix time in seconds.
    ///
    /// # Errors
    /// If the key cannot sign, or there is no randomness.
    pub fn client_assertion(
        &self,
        client: &str,
        issuer: &str,
        now: u64,
    ) -> Result<SecretString, AuthError> {
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": issuer,
            "iat": now,
            "exp": now + ASSERTION_LIFETIME,
            "jti": random()?,
        });
        self.sign("JWT", &claims)
    }

    fn raw_signature(&self, input: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            KeyPair::Ec(pair) => Some(pair.sign(&random, input).ok()?.as_ref().to_vec()),
            KeyPair::Ed25519(pair) => Some(pair.try_sign(input).ok()?.as_ref().to_vec()),
            KeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding: &dyn aws_lc_rs::signature::RsaEncoding = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, &random, input, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

fn parse(der: &[u8], algorithm: Algorithm) -> Option<KeyPair> {
    let ec = |kind| EcdsaKeyPair::from_pkcs8(kind, der).ok().map(KeyPair::Ec);
    match algorithm {
        Algorithm::Es256 => ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
        Algorithm::Es384 => ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
        Algorithm::Rs256 | Algorithm::Ps256 => RsaKeyPair::from_pkcs8(der).ok().map(KeyPair::Rsa),
        Algorithm::EdDsa => {
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(KeyPair::Ed25519)
        }
    }
}

fn read_pem(pem: &str) -> Result<Zeroizing<Vec<u8>>, AuthError> {
    const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
    let Some((_, rest)) = pem.split_once(BEGIN) else {
        return Err(bad_key(match pem.contains("PRIVATE KEY-----") {
            true => "it is not PKCS#8; convert it with `openssl pkcs8 -topk8 -nocrypt`",
            false => "it is not a private key in PEM",
        }));
    };
    let (body, _) =
        rest.split_once("-----END").ok_or_else(|| bad_key("the PEM has no END line"))?;
    let body: Zeroizing<String> =
        Zeroizing::new(body.chars().filter(|c| !c.is_ascii_whitespace()).collect());
    let der = STANDARD.decode(body.as_bytes()).map_err(|_| bad_key("the PEM is not base64"))?;
    Ok(Zeroizing::new(der))
}

fn bad_key(cause: impl Into<String>) -> AuthError {
    AuthError::Setting { setting: "privateKey", cause: cause.into() }
}

/// Returns `header.claims.signature`.
pub(crate) fn encode(
    header: &Value,
    claims: &Value,
    sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Result<String, AuthError> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let input = format!("{}.{}", part(header), part(claims));
    let signature = sign(input.as_bytes()).ok_or(AuthError::Crypto("the key cannot sign"))?;
    Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Returns 256 random bits as base64url: a state, a verifier, or the id of a token.
pub(crate) fn random() -> Result<String, AuthError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice())
        .map_err(|_| AuthError::Crypto("no random numbers are available"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}

/// Returns the current Unix time in seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Like [`now`], as the signed number that grants are stored with.
pub(crate) fn now_signed() -> i64 {
    i64::try_from(now()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
