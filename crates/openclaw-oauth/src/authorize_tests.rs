//! Tests of [`super`].

use std::collections::HashMap;

use super::*;
use crate::client::{Registration, TokenAuth};

pub(crate) fn discovery(issuer: &str) -> Discovery {
    let server = serde_json::json!({
        "issuer": issuer,
        "authorization_endpoint": "https://as.example/authorize?tenant=1",
        "token_endpoint": "https://as.example/token",
        "authorization_response_iss_parameter_supported": true,
    });
    Discovery {
        resource: "https://mcp.example/mcp".to_owned(),
        server: serde_json::from_value(server).unwrap(),
        scopes: Some(vec!["a".to_owned(), "b:c".to_owned()]),
        dpop: false,
    }
}

pub(crate) fn client(issuer: &str, auth: TokenAuth) -> ClientIdentity {
    ClientIdentity {
        issuer: issuer.to_owned(),
        id: "client-1".to_owned(),
        secret: (auth != TokenAuth::None).then(|| "s3cret value:".into()),
        auth,
        private_key: None,
        signing_algorithm: None,
        registration: Registration::Configured,
        redirect_uri: None,
        secret_expires_at: None,
    }
}

const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:4711/callback";

fn request(discovery: &Discovery) -> AuthorizationRequest {
    let client = client(&discovery.server.issuer, TokenAuth::None);
    AuthorizationRequest::new(discovery, client, REDIRECT).unwrap()
}

fn callback(request: &AuthorizationRequest, rest: &str) -> Result<SecretString, AuthError> {
    let text = format!("{REDIRECT}?state={}{rest}", request.state().expose());
    request.check(&CallbackParams::parse(&text).unwrap())
}

#[test]
fn the_url_has_everything_and_keeps_the_query_of_the_endpoint() {
    let request = request(&discovery(ISSUER));
    let url = request.url();
    let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(request.verifier().expose()));
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "client-1"),
        ("redirect_uri", REDIRECT),
        ("state", request.state().expose()),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("resource", "https://mcp.example/mcp"),
        ("scope", "a b:c"),
    ] {
        assert_eq!(query.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!query.contains_key("prompt") && !query.contains_key("dpop_jkt"));
    assert!((43..=128).contains(&request.verifier().expose().len()));
}

#[test]
fn scopes_are_left_out_or_ask_for_consent_and_a_key_is_announced() {
    let mut discovery = discovery(ISSUER);
    discovery.scopes = None;
    assert!(!request(&discovery).url().as_str().contains("scope="));
    discovery.scopes = Some(vec!["offline_access".to_owned()]);
    discovery.dpop = true;
    let request = request(&discovery);
    let url = request.url();
    assert!(url.as_str().contains("prompt=consent"));
    assert!(url.as_str().contains(&request.dpop.as_ref().unwrap().thumbprint()));
}

#[test]
fn a_matching_response_has_a_code() {
    let request = request(&discovery(ISSUER));
    let code = callback(&request, "&code=the%2Fcode&iss=https%3A%2F%2Fas.example").unwrap();
    assert_eq!(code.expose(), "the/code");
}

#[test]
fn the_issuer_is_compared_byte_by_byte_whether_advertised_or_not() {
    let mut discovery = discovery(ISSUER);
    for advertised in [true, false] {
        discovery.server.authorization_response_iss_parameter_supported = advertised;
        let request = request(&discovery);
        for bad in ["https://evil.example", "https://as.example/", "HTTPS://as.example", ""] {
            for kind in ["code=c", "error=access_denied"] {
                let found = callback(&request, &format!("&{kind}&iss={bad}"));
                assert!(matches!(found, Err(AuthError::Mismatch(_))), "{bad} {kind}");
            }
        }
        assert_eq!(callback(&request, "&code=c").is_ok(), !advertised);
    }
}

#[test]
fn another_state_is_a_mismatch_also_for_errors() {
    let request = request(&discovery(ISSUER));
    for text in ["code=c&iss=https://as.example", "error=x&state=no", "code=c&state="] {
        let found = request.check(&CallbackParams::parse(text).unwrap());
        assert!(matches!(found, Err(AuthError::Mismatch(_))), "{text}");
    }
}

#[test]
fn an_error_is_a_rejection_in_clean_words() {
    let request = request(&discovery(ISSUER));
    let rest = "&iss=https://as.example&error=access_denied&error_description=No%0A%1b[31mway";
    let error = callback(&request, rest).unwrap_err();
    assert_eq!(error.to_string(), "the login was rejected: access_denied (No [31mway)");
    // An error is never ignored in favour of a code.
    assert!(callback(&request, &format!("{rest}&code=c")).is_err());
}

#[test]
fn a_bare_code_is_accepted_only_where_the_user_pasted_it() {
    let request = request(&discovery(ISSUER));
    let bare = CallbackParams::parse(" 4/abc==\n").unwrap();
    assert!(bare.is_bare && request.check(&bare).is_err());
    // It could be the code of another authorization server, where responses say whose they are.
    let error = request.check_pasted(&bare).unwrap_err();
    assert!(matches!(&error, AuthError::Mismatch(cause) if cause == "the issuer is missing"));
    let mut discovery = discovery(ISSUER);
    discovery.server.authorization_response_iss_parameter_supported = false;
    let request = self::request(&discovery);
    assert_eq!(request.check_pasted(&bare).unwrap().expose(), "4/abc==");
    let whole = CallbackParams::parse("?code=c&state=wrong").unwrap();
    assert!(request.check_pasted(&whole).is_err());
}

#[test]
fn callbacks_are_read_in_every_form() {
    for text in [
        "http://127.0.0.1:1/callback?code=c&state=s",
        "/callback?code=c&state=s#fragment",
        "?state=s&code=c&unknown=1&unknown=2",
        "code=c&state=s",
    ] {
        let params = CallbackParams::parse(text).unwrap();
        assert_eq!(params.state.as_ref().unwrap().expose(), "s", "{text}");
        assert_eq!(params.code().unwrap().expose(), "c", "{text}");
    }
    for bad in ["", "  ", "two words", "https://x.example/callback", "?state=s", "code=a&code=b"] {
        assert!(CallbackParams::parse(bad).is_err(), "{bad}");
    }
    let empty = CallbackParams::parse("code=&state=s").unwrap();
    assert!(empty.code().is_err());
}

#[test]
fn a_login_survives_storage_and_is_not_printed() {
    let mut discovery = discovery(ISSUER);
    discovery.dpop = true;
    let request = request(&discovery);
    let stored = serde_json::to_string(&request).unwrap();
    assert_eq!(serde_json::from_str::<AuthorizationRequest>(&stored).unwrap(), request);
    let printed = format!("{request:?} {:?}", CallbackParams::parse("code=hunter22"));
    for secret in [request.state().expose(), request.verifier().expose(), "hunter22"] {
        assert!(!printed.contains(secret));
    }
}

#[test]
fn a_client_of_another_server_is_refused() {
    let client = client("https://other.example", TokenAuth::None);
    let refused = AuthorizationRequest::new(&discovery(ISSUER), client, REDIRECT);
    assert!(matches!(refused, Err(AuthError::NotRegistered { .. })));
}
