//! Tests of [`super`].

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, KeyPair as _,
    UnparsedPublicKey, VerificationAlgorithm,
};

use super::*;

fn pem(der: &[u8]) -> SecretString {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let body = lines.join("\n");
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n").into()
}

/// Returns header and claims of a token whose signature is valid.
fn verified(
    token: &SecretString,
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
) -> (Value, Value) {
    let parts: Vec<&str> = token.expose().split('.').collect();
    let decoded = |at: usize| URL_SAFE_NO_PAD.decode(parts[at]).unwrap();
    let input = format!("{}.{}", parts[0], parts[1]);
    UnparsedPublicKey::new(algorithm, key).verify(input.as_bytes(), &decoded(2)).unwrap();
    let json = |at| serde_json::from_slice(&decoded(at)).unwrap();
    (json(0), json(1))
}

#[test]
fn an_assertion_names_the_client_and_the_issuer() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let key = SigningKey::from_pem(&pem(pair.to_pkcs8v1().unwrap().as_ref()), None).unwrap();
    let token = key.client_assertion("me", "https://as.example", now()).unwrap();
    let public = pair.public_key().as_ref();
    let (header, claims) = verified(&token, &ECDSA_P256_SHA256_FIXED, public);
    assert_eq!(header, json!({"alg": "ES256", "typ": "JWT"}));
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!("me"), &json!("me")));
    assert_eq!(claims["aud"], "https://as.example");
    assert!(claims["exp"].as_u64().unwrap() > now() && claims["iat"].as_u64().unwrap() <= now());
    let again = key.client_assertion("me", "https://as.example", now()).unwrap();
    assert_ne!(verified(&again, &ECDSA_P256_SHA256_FIXED, public).1["jti"], claims["jti"]);
}

#[test]
fn every_kind_of_key_signs_with_its_algorithm() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
    let key = SigningKey::from_pem(&pem(pair.to_pkcs8v1().unwrap().as_ref()), None).unwrap();
    let token = key.sign("JWT", &json!({})).unwrap();
    let (header, _) = verified(&token, &ECDSA_P384_SHA384_FIXED, pair.public_key().as_ref());
    assert_eq!(header["alg"], "ES384");

    let pair = Ed25519KeyPair::generate().unwrap();
    // As OpenSSL and Node write it: without the public key.
    let key = SigningKey::from_pem(&pem(pair.to_pkcs8v1().unwrap().as_ref()), None).unwrap();
    let token = key.sign("JWT", &json!({})).unwrap();
    assert_eq!(verified(&token, &ED25519, pair.public_key().as_ref()).0["alg"], "EdDSA");

    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let key = SigningKey::from_pem(&pem(der.as_ref()), None).unwrap();
    let token = key.sign("JWT", &json!({})).unwrap();
    let public = pair.public_key().as_ref();
    let (header, _) = verified(&token, &signature::RSA_PKCS1_2048_8192_SHA256, public);
    assert_eq!(header["alg"], "RS256");
    let key = SigningKey::from_pem(&pem(der.as_ref()), Some(Algorithm::Ps256)).unwrap();
    let token = key.sign("JWT", &json!({})).unwrap();
    let (header, _) = verified(&token, &signature::RSA_PSS_2048_8192_SHA256, public);
    assert_eq!(header["alg"], "PS256");
}

#[test]
fn a_key_that_cannot_be_used_is_explained_without_showing_it() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let good = pem(pair.to_pkcs8v1().unwrap().as_ref());
    let old = good.expose().replace("PRIVATE KEY", "EC PRIVATE KEY");
    for (bad, algorithm, cause) in [
        ("hunter22".to_owned(), None, "not a private key in PEM"),
        (old, None, "openssl pkcs8"),
        ("-----BEGIN PRIVATE KEY-----\n?\n-----END PRIVATE KEY-----".into(), None, "base64"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA".into(), None, "no END line"),
        (pem(b"nonsense").expose().to_owned(), None, "not a P-256"),
        (good.expose().to_owned(), Some(Algorithm::Rs256), "not a key for RS256"),
    ] {
        let error = SigningKey::from_pem(&bad.into(), algorithm).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
        assert!(!error.contains("hunter22"), "{error}");
    }
    assert!("HS256".parse::<Algorithm>().is_err() && "none".parse::<Algorithm>().is_err());
    assert_eq!("PS256".parse::<Algorithm>().unwrap(), Algorithm::Ps256);
}
