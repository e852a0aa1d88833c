//! Tests of [`super`].

use serde_json::{Value, json};

use super::*;
use crate::authorize::tests::client;
use crate::client::TokenAuth;
use crate::grant::{Grant, GrantKey, tests::grant};
use crate::store::{StoredGrant, Version};

const ISSUER: &str = "https://as.example/tenant";

fn server(extra: &Value) -> AuthorizationServer {
    let mut document = json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
    });
    document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

fn pin(issuer: &str) -> IssuerPin {
    IssuerPin::Issuer(issuer.to_owned())
}

fn machine() -> AuthSettings {
    AuthSettings { grant: GrantType::ClientCredentials, ..AuthSettings::default() }
}

fn configured_client() -> AuthSettings {
    AuthSettings { client_id: Some("me".to_owned()), ..AuthSettings::default() }
}

fn doubt(
    server: &AuthorizationServer,
    settings: &AuthSettings,
    pin: &IssuerPin,
) -> Option<IssuerDoubt> {
    check(server, settings, pin).err().map(|unconfirmed| unconfirmed.doubt)
}

#[test]
fn credentials_of_a_machine_go_to_the_confirmed_issuer_only() {
    let (server, settings) = (server(&json!({})), machine());
    assert_eq!(doubt(&server, &settings, &IssuerPin::None), Some(IssuerDoubt::First));
    assert_eq!(doubt(&server, &settings, &IssuerPin::Unreadable), Some(IssuerDoubt::First));
    assert_eq!(doubt(&server, &settings, &pin(ISSUER)), None);
    for other in ["https://as.example", "https://as.example/tenant/", "https://AS.example/tenant"] {
        let changed = Some(IssuerDoubt::Changed(other.to_owned()));
        assert_eq!(doubt(&server, &settings, &pin(other)), changed);
    }
    let url = Some("https://as.example/tenant".parse().unwrap());
    let settings = AuthSettings { authorization_server: url, ..settings };
    assert_eq!(doubt(&server, &settings, &IssuerPin::None), None);
    assert_eq!(doubt(&server, &settings, &pin("https://before.example")), None);
}

#[test]
fn a_configured_client_is_not_taken_to_another_issuer() {
    let (server, settings) = (server(&json!({})), configured_client());
    assert_eq!(doubt(&server, &settings, &IssuerPin::None), None);
    assert_eq!(doubt(&server, &settings, &pin(ISSUER)), None);
    assert_eq!(doubt(&server, &settings, &IssuerPin::Unreadable), Some(IssuerDoubt::First));
    let before = "https://before.example";
    let error = check(&server, &settings, &pin(before)).unwrap_err();
    assert_eq!(error.doubt, IssuerDoubt::Changed(before.to_owned()));
    assert!(error.to_string().contains(before) && error.to_string().contains(ISSUER), "{error}");
    // A client that registers itself gets another id there.
    assert_eq!(doubt(&server, &AuthSettings::default(), &pin(before)), None);
}

#[test]
fn endpoints_at_another_origin_must_be_confirmed_unless_responses_name_their_issuer() {
    let settings = AuthSettings::default();
    for (name, url) in [
        ("authorization_endpoint", "https://honest.example/authorize"),
        ("token_endpoint", "https://as.example:8443/token"),
        ("token_endpoint", "https://evil.as.example/token"),
    ] {
        let elsewhere = server(&json!({ name: url }));
        let error = check(&elsewhere, &settings, &IssuerPin::None).unwrap_err();
        let origin = url.parse::<Url>().unwrap().origin().ascii_serialization();
        let text = error.to_string();
        assert!(text.contains(&origin) && text.contains(ISSUER), "{text}");
        assert_eq!(doubt(&elsewhere, &settings, &pin(ISSUER)), None);
        assert!(doubt(&elsewhere, &settings, &pin("https://before.example")).is_some());
        let names = json!({ name: url, "authorization_response_iss_parameter_supported": true });
        assert_eq!(doubt(&server(&names), &settings, &IssuerPin::None), None);
    }
    assert_eq!(doubt(&server(&json!({})), &settings, &IssuerPin::None), None);
}

#[test]
fn a_client_id_of_another_issuer_must_be_confirmed_unless_this_issuer_is_known() {
    let ours = client(ISSUER, TokenAuth::None);
    let stored = |issuer: &str| {
        let client = client(issuer, TokenAuth::None);
        let grant = Grant { issuer: issuer.to_owned(), client, ..grant("x") };
        let key = GrantKey::new(issuer, &"https://mcp.example/mcp".parse().unwrap());
        (key, Ok(StoredGrant { grant, refreshing_since: None, version: Version::new(0) }))
    };
    let plain = server(&json!({}));
    let check = |issuers: &[&str]| {
        let grants = issuers.iter().map(|issuer| stored(issuer)).collect();
        let known = GrantList { grants, ..GrantList::default() };
        check_client(&plain, &ours, &known).err().map(|it| it.doubt)
    };
    let honest = "https://honest.example";
    assert_eq!(check(&[]), None);
    assert_eq!(check(&[honest]), Some(IssuerDoubt::SharedClient(honest.to_owned())));
    assert_eq!(check(&[honest, ISSUER]), None);
    let settings = AuthSettings::default();
    assert!(!is_unmistakable(&plain, &settings, &IssuerPin::None));
    assert!(!is_unmistakable(&plain, &settings, &pin(honest)));
    assert!(is_unmistakable(&plain, &settings, &pin(ISSUER)));
    let names = server(&json!({ "authorization_response_iss_parameter_supported": true }));
    assert!(is_unmistakable(&names, &settings, &IssuerPin::None));
}

#[test]
fn the_hint_is_safe_to_paste_into_a_shell() {
    let hint = confirmation_hint("box", "https://as.example:8443/a_b%20c");
    assert!(hint.contains("`openclaw mcp login box --issuer https://as.example:8443/a_b%20c`"));
    for odd in ["https://as.example/$(id)", "https://as.example/;id", "https://as.example/`id`"] {
        let hint = confirmation_hint("box", odd);
        assert!(hint.contains("--issuer URL`") && !hint.contains("id"), "{hint}");
    }
}

#[test]
fn every_issuer_has_its_own_redirect_uri() {
    let uri = |issuer| redirect_uri("http://127.0.0.1:4711/callback", issuer);
    assert_eq!(uri(ISSUER), uri(ISSUER));
    assert_ne!(uri(ISSUER), uri("https://as.example/tenant/"));
    let (path, hash) = uri(ISSUER).rsplit_once('/').map(|(a, b)| (a.to_owned(), b.len())).unwrap();
    assert_eq!((path.as_str(), hash), ("http://127.0.0.1:4711/callback", 32));
}
