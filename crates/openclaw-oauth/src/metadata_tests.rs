//! Tests of [`super`].

use std::collections::HashMap;

use serde_json::{Value, json};

use super::*;
use crate::http::HttpOptions;
use crate::test_server::{Reply, Request, TestServer};

/// A server with documents by path; `BASE` in them is its URL.
async fn serving(documents: &[(&str, Value)]) -> TestServer {
    let documents: HashMap<String, Value> =
        documents.iter().map(|(path, document)| ((*path).to_owned(), document.clone())).collect();
    TestServer::start(|base| {
        move |request: &Request| match documents.get(&request.path) {
            Some(Value::String(kind)) if kind == "html" => Reply::html(),
            Some(Value::Number(status)) => {
                let status = u16::try_from(status.as_u64().unwrap()).unwrap();
                Reply { status, headers: Vec::new(), body: Vec::new() }
            }
            Some(document) => {
                let text = document.to_string().replace("BASE", &base);
                Reply::json(200, &serde_json::from_str(&text).unwrap())
            }
            None => Reply::missing(),
        }
    })
    .await
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": "BASE/authorize",
        "token_endpoint": "BASE/token",
        "code_challenge_methods_supported": ["S256"],
    })
}

fn with(mut document: Value, name: &str, value: Value) -> Value {
    document[name] = value;
    document
}

fn resource(path: &str, issuer: &str) -> Value {
    json!({"resource": format!("BASE{path}"), "authorization_servers": [issuer]})
}

async fn found(
    server: &TestServer,
    challenge: Option<&AuthChallenge>,
) -> Result<Discovery, AuthError> {
    let settings = AuthSettings::default();
    discover(&server.http(), &server.url("/mcp"), challenge, &settings, None).await
}

fn challenge(metadata: Option<Url>, scope: Option<&str>) -> AuthChallenge {
    AuthChallenge {
        scheme: Scheme::Bearer,
        takes_bearer: true,
        resource_metadata: metadata,
        scope: scope.map(scopes),
        error: None,
        dpop_nonce: None,
    }
}

fn paths(server: &TestServer) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const AS: &str = "/.well-known/oauth-authorization-server";

#[tokio::test]
async fn the_url_in_the_challenge_is_used_first_and_no_other() {
    let server = serving(&[
        ("/custom.json", resource("/mcp", "BASE/tenant1")),
        ("/tenant1/.well-known/openid-configuration", metadata("BASE/tenant1")),
    ])
    .await;
    let challenge = challenge(Some(server.url("/custom.json")), None);
    let discovery = found(&server, Some(&challenge)).await.unwrap();
    assert_eq!(discovery.resource, server.url("/mcp").as_str());
    assert_eq!(discovery.server.issuer, server.url("/tenant1").as_str());
    assert_eq!((discovery.scopes, discovery.dpop), (None, false));
    assert_eq!(
        paths(&server),
        [
            "/custom.json",
            "/.well-known/oauth-authorization-server/tenant1",
            "/.well-known/openid-configuration/tenant1",
            "/tenant1/.well-known/openid-configuration",
        ]
    );
}

#[tokio::test]
async fn well_known_places_are_tried_with_the_path_and_at_the_root() {
    let server = serving(&[
        (PRM, json!("html")),
        ("/.well-known/oauth-protected-resource", resource("", "BASE")),
        ("/.well-known/openid-configuration", metadata("BASE")),
    ])
    .await;
    let discovery = found(&server, None).await.unwrap();
    // Exactly as published, without a slash.
    assert_eq!(discovery.resource, format!("http://{}", server.address));
    let expected =
        [PRM, "/.well-known/oauth-protected-resource", AS, "/.well-known/openid-configuration"];
    assert_eq!(paths(&server), expected);
}

#[tokio::test]
async fn metadata_of_another_resource_is_refused() {
    for other in ["https://evil.example/mcp", "BASE/mc", "BASE/mcp/x", "BASE/mcp#x", "mcp"] {
        let document = json!({"resource": other, "authorization_servers": ["BASE"]});
        let server = serving(&[(PRM, document), (AS, metadata("BASE"))]).await;
        let error = found(&server, None).await.unwrap_err();
        assert!(error.to_string().contains("another resource"), "{error}");
        assert_eq!(paths(&server), [PRM]);
    }
}

#[tokio::test]
async fn the_issuer_must_be_identical() {
    for other in ["https://attacker.example", "BASE/", "http://LOCALHOST", ""] {
        let server = serving(&[(PRM, resource("/mcp", "BASE")), (AS, metadata(other))]).await;
        let error = found(&server, None).await.unwrap_err();
        assert!(error.to_string().contains("another issuer"), "{error}");
    }
    let document = with(metadata("BASE/"), "registration_endpoint", json!("BASE/register"));
    let server = serving(&[(PRM, resource("/mcp", "BASE/")), (AS, document)]).await;
    let discovery = found(&server, None).await.unwrap();
    assert_eq!(discovery.server.issuer, format!("http://{}/", server.address));
    assert_eq!(discovery.server.registration_endpoint, Some(server.url("/register")));
}

#[tokio::test]
async fn a_server_without_s256_is_refused_for_logins_only() {
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let document = with(metadata("BASE"), "code_challenge_methods_supported", methods);
        let server = serving(&[(PRM, resource("/mcp", "BASE")), (AS, document)]).await;
        let error = found(&server, None).await.unwrap_err();
        assert!(error.to_string().ends_with("does not support PKCE with S256"), "{error}");
        let settings =
            AuthSettings { grant: GrantType::ClientCredentials, ..AuthSettings::default() };
        discover(&server.http(), &server.url("/mcp"), None, &settings, None).await.unwrap();
    }
}

#[tokio::test]
async fn an_authorization_server_in_the_clear_is_refused() {
    let server = serving(&[(PRM, resource("/mcp", "http://as.example"))]).await;
    let error = found(&server, None).await.unwrap_err();
    assert!(matches!(error, AuthError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_public_server_cannot_name_metadata_on_this_machine() {
    let server = serving(&[("/custom.json", resource("/mcp", "BASE"))]).await;
    let trusted = vec!["https://1.1.1.1:1/".parse().unwrap()];
    let http = AuthHttpClient::new(HttpOptions { trusted, ..HttpOptions::default() }).unwrap();
    let error = fetch(&http, RESOURCE, &server.url("/custom.json")).await.unwrap_err();
    assert!(matches!(error, AuthError::Refused { .. }), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_metadata_of_the_resource_the_origin_is_the_issuer() {
    let server = serving(&[(AS, metadata("BASE"))]).await;
    let discovery = found(&server, None).await.unwrap();
    assert_eq!(discovery.resource, server.url("/mcp").as_str());
    assert_eq!(discovery.server.token_endpoint, server.url("/token"));
    assert_eq!(discovery.server.registration_endpoint, None);
}

#[tokio::test]
async fn without_any_metadata_the_default_endpoints_are_used() {
    let server = serving(&[]).await;
    let discovery = found(&server, None).await.unwrap().server;
    assert_eq!(discovery.issuer, format!("http://{}", server.address));
    assert_eq!(discovery.authorization_endpoint, Some(server.url("/authorize")));
    assert_eq!(discovery.token_endpoint, server.url("/token"));
    assert_eq!(discovery.registration_endpoint, Some(server.url("/register")));
}

#[tokio::test]
async fn an_outage_or_a_bad_issuer_does_not_lead_to_the_default_endpoints() {
    let server = serving(&[(PRM, json!(503))]).await;
    assert!(found(&server, None).await.unwrap_err().is_temporary());
    let server = serving(&[(AS, json!(500))]).await;
    assert!(found(&server, None).await.unwrap_err().is_temporary());
    let server = serving(&[(AS, metadata("https://attacker.example"))]).await;
    assert!(found(&server, None).await.is_err());
    let server = serving(&[(PRM, resource("/mcp", "BASE"))]).await;
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().ends_with("HTTP 404"), "{error}");
}

#[tokio::test]
async fn what_arrives_in_the_place_of_metadata_is_named() {
    for (body, cause) in [
        (json!("html"), "HTML instead of JSON"),
        (json!(["x"]), "not a JSON object"),
        (json!(403), "HTTP 403"),
    ] {
        let server = serving(&[(PRM, resource("/mcp", "BASE")), (AS, body)]).await;
        let error = found(&server, None).await.unwrap_err();
        assert!(error.to_string().ends_with(cause), "{error}");
        assert!(!error.is_temporary(), "{error}");
    }
    // A website that answers every path with a page may still be an old server.
    let server = serving(&[(PRM, json!("html")), (AS, json!("html"))]).await;
    assert_eq!(found(&server, None).await.unwrap().server.token_endpoint, server.url("/token"));
}

#[tokio::test]
async fn an_issuer_or_resource_with_a_line_break_is_refused() {
    let document = resource("/mcp", "BASE\nx");
    let server = serving(&[(PRM, document), (AS, metadata("BASE\nx"))]).await;
    let error = found(&server, None).await.unwrap_err();
    assert!(error.to_string().contains("has an invalid URL"), "{error}");
    let server = serving(&[(PRM, resource("/m\ncp", "BASE"))]).await;
    assert!(found(&server, None).await.unwrap_err().to_string().contains("another resource"));
}

#[tokio::test]
async fn a_configured_authorization_server_is_preferred() {
    let server = serving(&[
        (PRM, resource("/mcp", "https://named.example")),
        (AS, metadata("BASE")),
        ("/.well-known/oauth-authorization-server/t", metadata("BASE/t")),
    ])
    .await;
    for path in ["/", "/t"] {
        let settings = AuthSettings {
            authorization_server: Some(server.url(path)),
            ..AuthSettings::default()
        };
        let found =
            discover(&server.http(), &server.url("/mcp"), None, &settings, None).await.unwrap();
        assert_eq!(found.server.issuer, server.url(path).as_str().trim_end_matches('/'));
    }
}

#[tokio::test]
async fn scopes_come_from_the_settings_the_challenge_or_the_metadata() {
    let offline = json!(["a", "offline_access"]);
    let of = |list: &[&str]| Some(list.iter().map(|scope| (*scope).to_owned()).collect());
    let document = with(resource("/mcp", "BASE"), "scopes_supported", json!(["a", "b"]));
    let server =
        serving(&[(PRM, document), (AS, with(metadata("BASE"), "scopes_supported", offline))])
            .await;
    let settings = |scopes, grant| AuthSettings { scopes, grant, ..AuthSettings::default() };
    let login = || GrantType::AuthorizationCode;
    for (settings, challenged, expected) in [
        (settings(None, login()), None, of(&["a", "b", "offline_access"])),
        (settings(None, login()), Some("c"), of(&["c", "offline_access"])),
        (settings(of(&["d"]), login()), Some("c"), of(&["d"])),
        (settings(of(&[]), login()), Some("c"), None),
        (settings(None, GrantType::ClientCredentials), None, of(&["a", "b"])),
    ] {
        let challenge = challenge(None, challenged);
        let url = server.url("/mcp");
        let found =
            discover(&server.http(), &url, Some(&challenge), &settings, None).await.unwrap();
        assert_eq!(found.scopes, expected);
    }
}

#[tokio::test]
async fn tokens_are_bound_where_the_resource_asks_for_it_and_not_where_the_issuer_offers_it() {
    let offering = with(metadata("BASE"), "dpop_signing_alg_values_supported", json!(["ES256"]));
    let requires = |required: Value| {
        with(resource("/mcp", "BASE"), "dpop_bound_access_tokens_required", required)
    };
    let dpop = AuthChallenge { scheme: Scheme::Dpop, ..challenge(None, None) };
    let bearer = challenge(None, None);
    for (document, challenge, expected) in [
        (resource("/mcp", "BASE"), None, [false, true, false]),
        (resource("/mcp", "BASE"), Some(&bearer), [false, true, false]),
        (resource("/mcp", "BASE"), Some(&dpop), [true, true, false]),
        (requires(json!(true)), Some(&bearer), [true, true, false]),
        (requires(json!(false)), None, [false, true, false]),
        (requires(json!(null)), None, [false, true, false]),
    ] {
        let server = serving(&[(PRM, document), (AS, offering.clone())]).await;
        let settings = [DpopUse::Auto, DpopUse::Always, DpopUse::Never];
        for (dpop, expected) in settings.into_iter().zip(expected) {
            let settings = AuthSettings { dpop, ..AuthSettings::default() };
            let url = server.url("/mcp");
            let found = discover(&server.http(), &url, challenge, &settings, None).await.unwrap();
            assert_eq!(found.dpop, expected, "{dpop:?} {challenge:?}");
        }
    }
}

#[tokio::test]
async fn the_pinned_issuer_is_preferred_over_others_that_are_named() {
    let other = with(metadata("BASE/other"), "token_endpoint", json!("BASE/other/token"));
    let mut document = resource("/mcp", "BASE/other");
    document["authorization_servers"] = json!(["BASE/other", "BASE"]);
    let server = serving(&[
        (PRM, document),
        (AS, metadata("BASE")),
        ("/.well-known/oauth-authorization-server/other", other),
    ])
    .await;
    let base = server.url("/").to_string().trim_end_matches('/').to_owned();
    let other = format!("{base}/other");
    for (pinned, expected) in [
        (None, &other),
        (Some(base.as_str()), &base),
        (Some(other.as_str()), &other),
        (Some("https://gone.example"), &other),
    ] {
        let settings = AuthSettings::default();
        let url = server.url("/mcp");
        let found = discover(&server.http(), &url, None, &settings, pinned).await.unwrap();
        assert_eq!(found.server.issuer, *expected);
    }
}

#[test]
fn places_follow_the_specifications() {
    let shown = |places: Vec<Url>| places.iter().map(Url::to_string).collect::<Vec<_>>();
    let url = |text: &str| Url::parse(text).unwrap();
    assert_eq!(
        shown(resource_places(&url("https://u:p@x.example/a/b/?k=v#f"))),
        [
            "https://x.example/.well-known/oauth-protected-resource/a/b?k=v",
            "https://x.example/.well-known/oauth-protected-resource",
        ]
    );
    assert_eq!(shown(resource_places(&url("https://x.example"))).len(), 1);
    assert_eq!(shown(server_places(&url("https://x.example/"))).len(), 2);
    assert_eq!(canonical(&url("https://x.example/?k=v")), "https://x.example");
    assert_eq!(canonical(&url("https://u:p@x.example/a?k=v")), "https://x.example/a");
}

#[test]
fn a_server_survives_storage() {
    let document = json!({"issuer": "i", "token_endpoint": "https://x.example/t",
        "client_id_metadata_document_supported": null});
    let server: AuthorizationServer = serde_json::from_value(document).unwrap();
    let stored = serde_json::to_string(&server).unwrap();
    assert_eq!(serde_json::from_str::<AuthorizationServer>(&stored).unwrap(), server);
}
