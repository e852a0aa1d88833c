//! Tests of [`super`].

use serde_json::{Value, json};

use super::*;
use crate::authorize::tests::client;
use crate::client::TokenAuth;

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
    IssuerPin::Issuer(ConfirmedIssuer::new(issuer))
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
        // A login at its own origin has not confirmed another one.
        for pin in [pin(ISSUER), pin("https://before.example"), IssuerPin::Unreadable] {
            assert!(doubt(&elsewhere, &settings, &pin).is_some());
        }
        let confirmed = IssuerPin::Issuer(error.proposed);
        assert_eq!(doubt(&elsewhere, &settings, &confirmed), None);
        let third = server(&json!({ name: "https://third.example" }));
        assert!(doubt(&third, &settings, &confirmed).is_some());
        let names = json!({ name: url, "authorization_response_iss_parameter_supported": true });
        assert_eq!(doubt(&server(&names), &settings, &IssuerPin::None), None);
    }
    assert_eq!(doubt(&server(&json!({})), &settings, &IssuerPin::None), None);
}

#[test]
fn secrets_of_a_login_go_to_the_confirmed_issuer_only() {
    let server = server(&json!({ "authorization_response_iss_parameter_supported": true }));
    let [with_secret, with_key] = [true, false].map(|is_secret| AuthSettings {
        client_secret: is_secret.then(|| "secret".into()),
        private_key: (!is_secret).then(|| "key".into()),
        ..configured_client()
    });
    for settings in [with_secret, with_key] {
        assert_eq!(doubt(&server, &settings, &IssuerPin::None), Some(IssuerDoubt::First));
        assert_eq!(doubt(&server, &settings, &pin(ISSUER)), None);
        let url = Some(ISSUER.parse().unwrap());
        let settings = AuthSettings { authorization_server: url, ..settings };
        assert_eq!(doubt(&server, &settings, &IssuerPin::None), None);
    }
}

#[test]
fn a_confirmation_of_the_issuer_does_not_confirm_its_endpoints_elsewhere() {
    let elsewhere = server(&json!({
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "https://honest.example/token",
    }));
    let settings = AuthSettings { client_secret: Some("secret".into()), ..configured_client() };
    let mut pin = IssuerPin::None;
    let mut shown = Vec::new();
    while let Err(unconfirmed) = check(&elsewhere, &settings, &pin) {
        shown.push(unconfirmed.to_string());
        pin = IssuerPin::Issuer(unconfirmed.proposed);
    }
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[1].contains("https://login.example"), "{shown:?}");
    assert!(shown[2].contains("https://honest.example"), "{shown:?}");
    // Nothing is passed on without a login.
    assert_eq!(doubt(&elsewhere, &machine(), &self::pin(ISSUER)), None);
}

#[test]
fn a_client_id_of_another_issuer_must_be_confirmed_unless_this_issuer_had_it_before() {
    let ours = client(ISSUER, TokenAuth::None);
    let plain = server(&json!({}));
    let pin = pin(ISSUER);
    let check = |known: &[(&str, &str)]| {
        let known = known
            .iter()
            .map(|(issuer, id)| KnownClient { issuer: (*issuer).to_owned(), id: (*id).to_owned() });
        check_client(&plain, &ours, &pin, &known.collect::<Vec<_>>()).err()
    };
    let (honest, id) = ("https://honest.example", ours.id.as_str());
    assert_eq!(check(&[]), None);
    assert_eq!(check(&[(honest, "another")]), None);
    assert_eq!(check(&[(honest, id), (ISSUER, id)]), None);
    for known in [&[(honest, id)][..], &[(ISSUER, "another"), (honest, id)]] {
        let error = check(known).unwrap();
        assert_eq!(error.doubt, IssuerDoubt::SharedClient(honest.to_owned()));
        assert_eq!(error.proposed.client_id.as_deref(), Some(id));
    }
    let settings = AuthSettings::default();
    assert!(!is_unmistakable(&plain, &settings));
    let names = server(&json!({ "authorization_response_iss_parameter_supported": true }));
    assert!(is_unmistakable(&names, &settings));
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
