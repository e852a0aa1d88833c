//! Tests of [`super`].

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use http::{HeaderMap, HeaderValue};

use super::*;
use crate::server_hints::NONCE_HEADER;

/// Returns header and claims of a proof whose signature fits the key in its header.
pub(crate) fn verified(proof: &str) -> (Value, Value) {
    let parts: Vec<&str> = proof.split('.').collect();
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let header: Value = serde_json::from_slice(&decoded(parts[0])).unwrap();
    let part = |name: &str| decoded(header["jwk"][name].as_str().unwrap());
    let point = [vec![4], part("x"), part("y")].concat();
    let input = format!("{}.{}", parts[0], parts[1]);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(input.as_bytes(), &decoded(parts[2]))
        .unwrap();
    let claims = serde_json::from_slice(&decoded(parts[1])).unwrap();
    (header, claims)
}

fn with_nonce(nonce: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(NONCE_HEADER.parse().unwrap(), HeaderValue::from_static(nonce))])
}

#[test]
fn a_proof_is_for_one_request_and_fresh() {
    let key = DpopKey::generate().unwrap();
    let url = Url::parse("https://mcp.example/mcp?key=secret#x").unwrap();
    let hints = ServerHints::default();
    hints.note_nonce(&url, &with_nonce("n-1"));
    let proof = key.proof("POST", &url, Some("token"), &hints).unwrap();
    let (header, claims) = verified(&proof);
    assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
    assert_eq!(header["jwk"].get("d"), None);
    assert_eq!((&claims["htm"], &claims["nonce"]), (&json!("POST"), &json!("n-1")));
    assert_eq!(claims["htu"], "https://mcp.example/mcp");
    // SHA-256 of "token".
    assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
    let again = verified(&key.proof("POST", &url, None, &ServerHints::default()).unwrap()).1;
    assert_ne!(again["jti"], claims["jti"]);
    assert_eq!((again.get("ath"), again.get("nonce")), (None, None));
}

#[test]
fn a_key_survives_storage_and_is_not_printed() {
    let key = DpopKey::generate().unwrap();
    let stored = serde_json::to_string(&key).unwrap();
    let read: DpopKey = serde_json::from_str(&stored).unwrap();
    assert_eq!((read.thumbprint(), &read), (key.thumbprint(), &key));
    assert_eq!(key.thumbprint().len(), 43);
    assert_ne!(DpopKey::generate().unwrap(), key);
    assert!(!format!("{key:?}").contains(stored.trim_matches('"')));
    for bad in [r#""AAAA""#, r#""?""#, "3"] {
        assert!(serde_json::from_str::<DpopKey>(bad).is_err(), "{bad}");
    }
}
