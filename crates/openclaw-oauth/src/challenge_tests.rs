//! Tests of [`super`].

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn parsed(values: &[&str]) -> Option<AuthChallenge> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
    }
    AuthChallenge::parse(&headers)
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn a_bearer_challenge_is_read_with_all_parameters() {
    let value = r#"Bearer scope="mcp:read mcp:write", resource_metadata="https://x.example/m?a=b", error="insufficient_scope""#;
    let challenge = parsed(&[value]).unwrap();
    assert_eq!(challenge.scheme, Scheme::Bearer);
    assert_eq!(challenge.resource_metadata.as_ref().unwrap().as_str(), "https://x.example/m?a=b");
    assert_eq!(challenge.scope, words(&["mcp:read", "mcp:write"]));
    assert!(challenge.is_insufficient_scope());
}

#[test]
fn names_are_case_insensitive_and_a_challenge_may_be_empty() {
    let challenge = parsed(&["bEARER SCOPE = \"a\" , ERROR=invalid_token"]).unwrap();
    assert_eq!(challenge.scope, words(&["a"]));
    assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
    assert_eq!(parsed(&["Bearer"]).unwrap().scope, None);
    assert_eq!(parsed(&["Bearer scope=\"\""]).unwrap().scope, None);
    assert_eq!(parsed(&[]), None);
}

#[test]
fn several_challenges_in_one_or_more_headers_are_told_apart() {
    let one = r#"Negotiate abc==, Basic realm="a, Bearer scope=\"no\"", Bearer scope="yes""#;
    assert_eq!(parsed(&[one]).unwrap().scope, words(&["yes"]));
    let challenge = parsed(&["Basic realm=x", "Bearer realm=\"y\",scope=\"s\""]).unwrap();
    assert_eq!(challenge.scope, words(&["s"]));
    assert_eq!(parsed(&["Basic realm=\"x\"", "Digest a=b"]), None);
}

#[test]
fn dpop_is_preferred_and_completed_from_bearer() {
    let value = r#"Bearer resource_metadata="https://x.example/", DPoP algs="ES256", scope="a""#;
    let challenge = parsed(&[value]).unwrap();
    assert_eq!(challenge.scheme, Scheme::Dpop);
    assert!(challenge.takes_bearer && !parsed(&["DPoP"]).unwrap().takes_bearer);
    assert_eq!(challenge.scope, words(&["a"]));
    assert!(challenge.resource_metadata.is_some());
}

#[test]
fn a_nonce_is_taken_from_its_header() {
    let mut headers = HeaderMap::new();
    headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("DPoP error=\"use_dpop_nonce\""));
    assert!(!AuthChallenge::parse(&headers).unwrap().is_use_dpop_nonce());
    headers.append("DPoP-Nonce", HeaderValue::from_static("n-1"));
    let challenge = AuthChallenge::parse(&headers).unwrap();
    assert!(challenge.is_use_dpop_nonce());
    assert_eq!(challenge.dpop_nonce.as_deref(), Some("n-1"));
}

#[test]
fn quoted_strings_have_escapes_and_unquoted_urls_are_tolerated() {
    let challenge = parsed(&[r#"Bearer error="a\bc", resource_metadata=https://x.example/y"#]);
    let challenge = challenge.unwrap();
    assert_eq!(challenge.error.as_deref(), Some("abc"));
    assert_eq!(challenge.resource_metadata.unwrap().path(), "/y");
}

#[test]
fn bad_values_are_left_out() {
    for value in [
        "Bearer resource_metadata=\"/relative\"",
        "Bearer resource_metadata=\"https://x.exa",
        "Bearer resource_metadata=",
        "Bearer error=\"two words\", scope=\"\\\"\"",
    ] {
        let challenge = parsed(&[value]).unwrap();
        assert_eq!(challenge.resource_metadata, None, "{value}");
        assert_eq!((challenge.error, challenge.scope), (None, None), "{value}");
    }
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4)) {
        let mut headers = HeaderMap::new();
        for value in values {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(WWW_AUTHENTICATE, value);
            }
        }
        AuthChallenge::parse(&headers);
    }

    #[test]
    fn nothing_that_looks_like_a_challenge_makes_it_panic(value in "(Bearer|DPoP|Basic|[ ,=\"\\\\]|scope|error|a){0,30}") {
        parsed(&[&value]);
    }

    #[test]
    fn what_is_written_is_read(scope in "[!#-\\[\\]-~]{1,20}", error in "[a-z_]{1,20}") {
        let challenge = parsed(&[&format!("Bearer scope=\"{scope}\", error={error}")]).unwrap();
        prop_assert_eq!(challenge.scope, Some(vec![scope]));
        prop_assert_eq!(challenge.error, Some(error));
    }
}
