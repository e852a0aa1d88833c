//! Tests of [`super`].

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use http::HeaderValue;

use super::*;

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
    let proof = key.proof("POST", &url, Some("token"), Some("n-1")).unwrap();
    let (header, claims) = verified(&proof);
    assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
    assert_eq!(header["jwk"].get("d"), None);
    assert_eq!((&claims["htm"], &claims["nonce"]), (&json!("POST"), &json!("n-1")));
    assert_eq!(claims["htu"], "https://mcp.example/mcp");
    // SHA-256 of "token".
    assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
    let again = verified(&key.proof("POST", &url, None, None).unwrap()).1;
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

#[test]
fn the_latest_nonce_of_each_origin_is_kept() {
    let nonces = Nonces::default();
    let (one, other) = ("https://a.example/x", "https://a.example:444/x");
    let (one, other): (Url, Url) = (one.parse().unwrap(), other.parse().unwrap());
    assert!(nonces.remember(&one, &with_nonce("1")));
    assert!(!nonces.remember(&one, &with_nonce("1")));
    let shared = nonces.clone();
    assert!(shared.remember(&one, &with_nonce("2")));
    assert!(!nonces.remember(&one, &HeaderMap::new()));
    assert_eq!(nonces.get(&one.join("/y").unwrap()).as_deref(), Some("2"));
    assert_eq!(nonces.get(&other), None);
}

#[test]
fn nonces_are_bounded_and_valid() {
    let nonces = Nonces::default();
    let url = |port: usize| Url::parse(&format!("https://a.example:{port}/")).unwrap();
    for port in 1..=MAX_ORIGINS + 1 {
        nonces.remember(&url(port), &with_nonce("n"));
    }
    assert_eq!(nonces.get(&url(1)), None);
    assert!(nonces.get(&url(2)).is_some());
    for bad in ["", "a b", "a\"b", "a\\b"] {
        assert_eq!(nonce(&with_nonce(bad)), None, "{bad}");
    }
}
