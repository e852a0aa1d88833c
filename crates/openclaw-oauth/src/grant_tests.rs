use super::*;
use crate::authorize::tests::client;
use crate::client::TokenAuth;

pub(crate) fn grant(access_token: &str) -> Grant {
    Grant {
        issuer: "https://login.example".to_owned(),
        token_endpoint: "https://login.example/token".parse().unwrap(),
        revocation_endpoint: None,
        resource: "https://notes.example/mcp".to_owned(),
        client: ClientIdentity {
            secret: Some("client-secret".into()),
            ..client("https://login.example", TokenAuth::Basic)
        },
        scopes: ["notes.read".to_owned()].into(),
        access_token: access_token.into(),
        dpop: Some(DpopKey::generate().unwrap()),
        bearer_only: false,
        issued_at: 1000,
        expires_at: Some(4600),
        refresh_token: Some(format!("{access_token}-refresh").into()),
        logged_in_at: 1000,
    }
}

#[test]
fn a_grant_is_read_back_as_written_and_unknown_fields_are_ignored() {
    let written = grant("access");
    let mut json = serde_json::to_value(&written).unwrap();
    json["added_later"] = 1.into();
    let read: Grant = serde_json::from_value(json).unwrap();
    assert_eq!(read.access_token, written.access_token);
    assert_eq!(read.refresh_token, written.refresh_token);
    assert_eq!((read.client, read.dpop), (written.client, written.dpop));
    assert_eq!((read.scopes, read.expires_at), (written.scopes, written.expires_at));
}

#[test]
fn a_grant_without_optional_fields_is_read() {
    let mut json = serde_json::to_value(grant("access")).unwrap();
    for name in ["revocation_endpoint", "dpop", "expires_at", "refresh_token"] {
        json.as_object_mut().unwrap().remove(name);
    }
    let read: Grant = serde_json::from_value(json).unwrap();
    assert!(read.refresh_token.is_none() && read.dpop.is_none() && read.expires_at.is_none());
}

#[test]
fn debug_output_shows_no_secret() {
    let text = format!("{:?}", grant("the-token"));
    assert!(!text.contains("the-token") && !text.contains("client-secret"), "{text}");
}

#[test]
fn a_token_is_renewed_a_minute_before_it_expires() {
    let grant = grant("access");
    assert!(!grant.needs_refresh(4539));
    assert!(grant.needs_refresh(4540) && !grant.is_expired(4540));
    assert!(grant.is_expired(4600));
}

#[test]
fn a_short_lived_token_is_renewed_after_nine_tenths_of_its_life() {
    let lives = |seconds: i64| Grant { expires_at: Some(1000 + seconds), ..grant("access") };
    assert!(!lives(30).needs_refresh(1026) && lives(30).needs_refresh(1027));
    assert!(!lives(119).needs_refresh(1107) && lives(119).needs_refresh(1108));
    assert!(!lives(120).needs_refresh(1059) && lives(120).needs_refresh(1060));
    assert!(lives(0).needs_refresh(1000) && lives(-5).needs_refresh(1000));
}

#[test]
fn a_token_without_expiry_is_used_until_it_is_rejected() {
    let grant = Grant { expires_at: None, ..grant("access") };
    assert!(!grant.needs_refresh(i64::MAX) && !grant.is_expired(i64::MAX));
}

#[test]
fn a_key_has_no_credentials_and_no_query() {
    let url = "https://me:secret@Notes.Example:443/mcp?token=1#part".parse().unwrap();
    let key = GrantKey::new("notes", &url);
    assert_eq!(key.url.as_str(), "https://notes.example/mcp");
}
