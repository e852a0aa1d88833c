//! Tests of [`super`].

use super::*;
use crate::settings::GrantType;
use crate::test_server::{Reply, TestServer};

const REDIRECT: &str = "http://127.0.0.1:4711/callback";

fn server_of(test: &TestServer, extra: &Value) -> AuthorizationServer {
    let mut document = json!({
        "issuer": format!("http://{}", test.address),
        "token_endpoint": test.url("/token"),
        "registration_endpoint": test.url("/register"),
    });
    document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(document).unwrap()
}

async fn identified(
    test: &TestServer,
    server: &AuthorizationServer,
    settings: &AuthSettings,
    known: Option<&ClientIdentity>,
) -> Result<ClientIdentity, AuthError> {
    identify(&test.http(), server, settings, REDIRECT, known).await
}

fn sent(test: &TestServer) -> Value {
    serde_json::from_str(&test.requests().last().unwrap().body).unwrap()
}

fn configured_settings(secret: Option<&str>) -> AuthSettings {
    AuthSettings {
        client_id: Some("me".to_owned()),
        client_secret: secret.map(SecretString::from),
        client_metadata_url: Some("https://me.example/client.json".parse().unwrap()),
        ..AuthSettings::default()
    }
}

#[tokio::test]
async fn a_configured_client_is_used_first_with_a_method_of_the_server() {
    let test = TestServer::fixed(Reply::missing()).await;
    let methods = |list: Value| {
        let extra = json!({"token_endpoint_auth_methods_supported": list,
            "client_id_metadata_document_supported": true});
        server_of(&test, &extra)
    };
    for (list, secret, expected) in [
        (json!(null), Some("s"), TokenAuth::Basic),
        (json!(["client_secret_post", "client_secret_basic"]), Some("s"), TokenAuth::Basic),
        (json!(["none", "client_secret_post"]), Some("s"), TokenAuth::Post),
        (json!(["none"]), Some("s"), TokenAuth::Basic),
        (json!(["client_secret_basic"]), None, TokenAuth::None),
    ] {
        let settings = configured_settings(secret);
        let client = identified(&test, &methods(list), &settings, None).await.unwrap();
        assert_eq!((client.id.as_str(), client.auth), ("me", expected));
        assert_eq!(client.registration, Registration::Configured);
        assert_eq!(client.secret, secret.map(SecretString::from));
    }
    assert!(test.requests().is_empty());
}

#[tokio::test]
async fn a_metadata_document_is_used_where_the_server_supports_it() {
    let test = TestServer::fixed(Reply::json(201, &json!({"client_id": "x"}))).await;
    let settings = AuthSettings {
        client_metadata_url: Some("https://me.example/client.json".parse().unwrap()),
        ..AuthSettings::default()
    };
    let server = server_of(&test, &json!({"client_id_metadata_document_supported": true}));
    let client = identified(&test, &server, &settings, None).await.unwrap();
    assert_eq!(client.id, "https://me.example/client.json");
    assert_eq!(
        (client.registration, client.auth),
        (Registration::MetadataDocument, TokenAuth::None)
    );
    let server = server_of(&test, &json!({}));
    let client = identified(&test, &server, &settings, None).await.unwrap();
    assert_eq!(client.registration, Registration::Dynamic);
    let bad = AuthSettings {
        client_metadata_url: Some("https://me.example/".parse().unwrap()),
        ..AuthSettings::default()
    };
    let server = server_of(&test, &json!({"client_id_metadata_document_supported": true}));
    assert!(identified(&test, &server, &bad, None).await.is_err());
}

#[tokio::test]
async fn a_registration_says_what_we_are() {
    let test = TestServer::fixed(Reply::json(201, &json!({"client_id": "x"}))).await;
    let extra = json!({"grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "none"]});
    let settings =
        AuthSettings { scopes: Some(vec!["a".into(), "b".into()]), ..AuthSettings::default() };
    identified(&test, &server_of(&test, &extra), &settings, None).await.unwrap();
    let expected = json!({
        "client_name": "OpenClaw",
        "application_type": "native",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "a b",
    });
    assert_eq!(sent(&test), expected);
    let extra = json!({"grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_post"]});
    let settings = AuthSettings { grant: GrantType::ClientCredentials, ..AuthSettings::default() };
    identified(&test, &server_of(&test, &extra), &settings, None).await.unwrap();
    assert_eq!(sent(&test)["grant_types"], json!(["client_credentials"]));
    assert_eq!(sent(&test)["token_endpoint_auth_method"], "client_secret_post");
}

#[tokio::test]
async fn the_method_of_a_registration_is_what_the_server_answers_or_was_asked() {
    for (supported, response, expected) in [
        (json!(["none"]), json!({"client_id": "x", "client_secret": "s"}), Ok(TokenAuth::None)),
        (json!(null), json!({"client_id": "x", "client_secret": "s"}), Ok(TokenAuth::Basic)),
        (json!(null), json!({"client_id": "x"}), Ok(TokenAuth::None)),
        (
            json!(["client_secret_basic", "client_secret_post"]),
            json!({"client_id": "x", "client_secret": "s"}),
            Ok(TokenAuth::Post),
        ),
        (
            json!(["client_secret_post"]),
            json!({"client_id": "x", "client_secret": "s",
                "token_endpoint_auth_method": "client_secret_post"}),
            Ok(TokenAuth::Post),
        ),
        (
            json!(["client_secret_basic"]),
            json!({"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"}),
            Err("no client_secret"),
        ),
        (json!(["private_key_jwt"]), json!({}), Err("no authentication method")),
        (json!(["none"]), json!({"client_id": ""}), Err("no valid client_id")),
        (json!(["none"]), json!({"client_id": "a\nb"}), Err("no valid client_id")),
    ] {
        let test = TestServer::fixed(Reply::json(201, &response)).await;
        let extra = json!({"token_endpoint_auth_methods_supported": supported});
        let settings = AuthSettings::default();
        let found = identified(&test, &server_of(&test, &extra), &settings, None).await;
        match expected {
            Ok(auth) => {
                let client = found.unwrap();
                assert_eq!(client.auth, auth);
                assert_eq!(client.secret.is_some(), auth != TokenAuth::None);
            }
            Err(words) => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(words), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_known_registration_is_used_until_it_expires_and_only_where_it_belongs() {
    let response = json!({"client_id": "new", "client_secret": "s",
        "client_secret_expires_at": 4_000_000_000_u64});
    let test = TestServer::fixed(Reply::json(201, &response)).await;
    let (server, settings) = (server_of(&test, &json!({})), AuthSettings::default());
    let first = identified(&test, &server, &settings, None).await.unwrap();
    assert_eq!(first.secret_expires_at, Some(4_000_000_000));
    let stored = serde_json::to_string(&first).unwrap();
    let known: ClientIdentity = serde_json::from_str(&stored).unwrap();
    assert_eq!(known, first);
    let old = |change: &dyn Fn(&mut ClientIdentity)| {
        let mut known = ClientIdentity { id: "old".to_owned(), ..known.clone() };
        change(&mut known);
        known
    };
    for (known, expected) in [
        (old(&|_| {}), "old"),
        (old(&|it| it.redirect_uri = Some("http://127.0.0.1:9/callback".into())), "new"),
        (old(&|it| it.redirect_uri = Some("http://localhost:4711/callback".into())), "new"),
        (old(&|it| it.redirect_uri = Some("https://x.example/callback".into())), "new"),
        (old(&|it| it.redirect_uri = None), "new"),
        (old(&|it| it.issuer = "https://other.example".into()), "new"),
        (old(&|it| it.secret_expires_at = Some(jwt::now() + 60)), "new"),
        (old(&|it| it.registration = Registration::Configured), "new"),
    ] {
        let found = identified(&test, &server, &settings, Some(&known)).await.unwrap();
        assert_eq!(found.id, expected, "{known:?}");
    }
}

#[tokio::test]
async fn a_failed_registration_says_why() {
    let rejected = json!({"error": "invalid_redirect_uri", "error_description": "not\nallowed"});
    for (reply, words) in [
        (Reply::json(400, &rejected), "invalid_redirect_uri (not allowed)"),
        (Reply::missing(), "HTTP 404"),
        (Reply::json(503, &json!({})), "HTTP 503"),
        (Reply::html(), "HTML instead of JSON"),
    ] {
        let test = TestServer::fixed(reply).await;
        let server = server_of(&test, &json!({}));
        let error = identified(&test, &server, &AuthSettings::default(), None).await.unwrap_err();
        assert!(error.to_string().ends_with(words), "{error}");
        assert_eq!(error.is_temporary(), words == "HTTP 503");
    }
    let test = TestServer::fixed(Reply::missing()).await;
    let server = server_of(&test, &json!({"registration_endpoint": null}));
    let error = identified(&test, &server, &AuthSettings::default(), None).await.unwrap_err();
    assert!(error.to_string().contains("does not register clients"), "{error}");
}
