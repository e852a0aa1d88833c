//! Tests of [`super`].

use std::collections::HashMap;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;
use crate::authorize::tests::{client, discovery};
use crate::challenge::Scheme;
use crate::dpop::tests::verified;
use crate::test_server::{Reply, Request, TestServer};

const ISSUER: &str = "https://as.example";
const RESOURCE: &str = "https://mcp.example";

fn good() -> Value {
    json!({"access_token": "at-1", "token_type": "Bearer", "expires_in": 3600})
}

fn with(name: &str, value: Value) -> Value {
    let mut response = good();
    response[name] = value;
    response
}

/// What one request is made with.
struct Setup {
    test: TestServer,
    http: AuthHttpClient,
    url: Url,
    client: ClientIdentity,
    dpop: Option<DpopKey>,
    hints: ServerHints,
}

impl Setup {
    fn of(test: TestServer, auth: TokenAuth) -> Self {
        let (http, url) = (test.http(), test.url("/token?tenant=1"));
        let client = client(ISSUER, auth);
        Self { test, http, url, client, dpop: None, hints: ServerHints::default() }
    }

    async fn new(auth: TokenAuth, reply: Reply) -> Self {
        Self::of(TestServer::fixed(reply).await, auth)
    }

    fn endpoint(&self) -> TokenEndpoint<'_> {
        TokenEndpoint {
            http: &self.http,
            url: &self.url,
            client: &self.client,
            resource: RESOURCE,
            dpop: self.dpop.as_ref(),
            hints: &self.hints,
        }
    }

    fn last(&self) -> Request {
        self.test.requests().last().unwrap().clone()
    }

    fn form(&self) -> HashMap<String, String> {
        self.last().form()
    }
}

fn form(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn a_code_is_exchanged_with_its_verifier_and_resource() {
    let setup = Setup::new(TokenAuth::None, Reply::json(200, &good())).await;
    let discovery = discovery(ISSUER);
    let redirect = "http://127.0.0.1:1/callback";
    let request = AuthorizationRequest::new(&discovery, setup.client.clone(), redirect).unwrap();
    let token = setup.endpoint().exchange_code(&request, &"c&d".into()).await.unwrap();
    assert_eq!(token.access_token.expose(), "at-1");
    assert_eq!((token.token_type, token.expires_in), (Scheme::Bearer, Some(3600)));
    assert!(token.refresh_token.is_none() && token.scopes.is_none());
    let expected = form(&[
        ("grant_type", "authorization_code"),
        ("code", "c&d"),
        ("redirect_uri", redirect),
        ("code_verifier", request.verifier().expose()),
        ("resource", RESOURCE),
        ("client_id", "client-1"),
    ]);
    assert_eq!(setup.form(), expected);
    assert_eq!(setup.last().path, "/token?tenant=1");
}

#[tokio::test]
async fn a_refresh_may_rotate_the_token_and_change_scopes() {
    let mut response = with("refresh_token", json!("rt-2"));
    response["scope"] = json!("a  b a");
    let setup = Setup::new(TokenAuth::Post, Reply::json(200, &response)).await;
    let scopes = ["a".to_owned(), "b".to_owned()];
    let token = setup.endpoint().refresh(&"rt-1".into(), &scopes).await.unwrap();
    assert_eq!(token.refresh_token, Some("rt-2".into()));
    assert_eq!(token.scopes, Some(scopes.to_vec()));
    let expected = form(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", "rt-1"),
        ("scope", "a b"),
        ("resource", RESOURCE),
        ("client_id", "client-1"),
        ("client_secret", "s3cret value:"),
    ]);
    assert_eq!(setup.form(), expected);
    assert!(!setup.last().headers.contains_key("authorization"));
}

#[tokio::test]
async fn basic_authentication_encodes_id_and_secret() {
    let setup = Setup::new(TokenAuth::Basic, Reply::json(200, &good())).await;
    setup.endpoint().client_credentials(&[]).await.unwrap();
    let header = setup.last().headers["authorization"].clone();
    let credentials = STANDARD.decode(header.strip_prefix("Basic ").unwrap()).unwrap();
    assert_eq!(String::from_utf8(credentials).unwrap(), "client-1:s3cret+value%3A");
    let expected = form(&[("grant_type", "client_credentials"), ("resource", RESOURCE)]);
    assert_eq!(setup.form(), expected);
}

fn key() -> SecretString {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let body = STANDARD.encode(pair.to_pkcs8v1().unwrap());
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----").into()
}

#[tokio::test]
async fn a_private_key_signs_an_assertion_for_the_issuer() {
    let mut setup = Setup::new(TokenAuth::PrivateKeyJwt, Reply::json(200, &good())).await;
    let error = setup.endpoint().client_credentials(&[]).await.unwrap_err();
    assert!(matches!(error, AuthError::Setting { .. }), "{error}");
    setup.client.private_key = Some(key());
    setup.endpoint().client_credentials(&[]).await.unwrap();
    let form = setup.form();
    assert_eq!(form["client_assertion_type"], CLIENT_ASSERTION);
    let claims = form["client_assertion"].split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(ISSUER), &json!("client-1")));
    assert!(!form.contains_key("client_secret"));
}

#[tokio::test]
async fn an_assertion_is_sent_once_whatever_the_answer() {
    for (status, code) in [(400, "invalid_grant"), (400, "invalid_scope"), (401, "x"), (200, "y")] {
        let body = json!({"error": code, "error_description": "why\nnot"});
        let setup = Setup::new(TokenAuth::None, Reply::json(status, &body)).await;
        let error = setup.endpoint().jwt_bearer(&"a.b.c".into(), &[]).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the token request was rejected: {code} (why not)"));
        assert_eq!(setup.test.requests().len(), 1);
        assert_eq!(setup.form()["assertion"], "a.b.c");
        assert_eq!(setup.form()["grant_type"], JWT_BEARER);
    }
}

#[tokio::test]
async fn outages_are_temporary_and_other_failures_are_not() {
    let rejected = json!({"error": "invalid_grant"});
    let unavailable = json!({"error": "temporarily_unavailable"});
    for (reply, is_temporary) in [
        (Reply::json(500, &rejected), true),
        (Reply::json(429, &json!({})), true),
        (Reply::json(400, &unavailable), true),
        (Reply::json(400, &rejected), false),
        (Reply::missing(), false),
        (Reply::html(), false),
    ] {
        let setup = Setup::new(TokenAuth::None, reply).await;
        let error = setup.endpoint().refresh(&"hunter22".into(), &[]).await.unwrap_err();
        assert_eq!(error.is_temporary(), is_temporary, "{error}");
        assert!(!error.to_string().contains("hunter22"));
    }
}

#[tokio::test]
async fn bad_responses_are_refused_without_quoting_them() {
    for (response, cause) in [
        (with("token_type", json!("mac")), "an unsupported token_type"),
        (with("token_type", json!(null)), "no token_type"),
        (with("token_type", json!("DPoP")), "a token bound to a key that was not sent"),
        (with("access_token", json!("hunter22\r\nX: y")), "does not fit in a header"),
        (with("access_token", json!("hunter22\u{e9}")), "does not fit in a header"),
        (with("access_token", json!("h".repeat(20_000))), "does not fit in a header"),
        (with("access_token", json!("")), "no access_token"),
        (with("access_token", json!(["hunter22"])), "no access_token"),
        (with("expires_in", json!(-1)), "already expired"),
        (with("expires_in", json!("soon")), "an invalid expires_in"),
    ] {
        let setup = Setup::new(TokenAuth::None, Reply::json(200, &response)).await;
        let error = setup.endpoint().client_credentials(&[]).await.unwrap_err().to_string();
        assert!(error.contains(cause) && !error.contains("hunter22"), "{error}");
    }
}

#[tokio::test]
async fn lifetimes_are_read_safely() {
    for (value, expected) in [
        (json!(null), None),
        (json!(0), None),
        (json!("3600"), Some(3600)),
        (json!(59.9), Some(59)),
        (json!(u64::MAX), Some(315_360_000)),
        (json!(1e300), Some(315_360_000)),
    ] {
        let response = with("expires_in", value.clone());
        let setup = Setup::new(TokenAuth::None, Reply::json(200, &response)).await;
        let token = setup.endpoint().client_credentials(&[]).await.unwrap();
        assert_eq!(token.expires_in, expected, "{value}");
    }
}

/// Issues DPoP tokens for proofs with a nonce.
fn with_nonce(request: &Request) -> Reply {
    let (_, claims) = verified(&request.headers["dpop"]);
    let reply = match claims["nonce"].as_str() {
        Some("n-1") => {
            let token = json!({"access_token": "at", "token_type": "dpop"});
            Reply::json(200, &token)
        }
        _ => Reply::json(400, &json!({"error": "use_dpop_nonce"})),
    };
    reply.with_header("DPoP-Nonce", "n-1")
}

#[tokio::test]
async fn a_required_nonce_leads_to_one_retry_and_is_remembered() {
    let mut setup = Setup::of(TestServer::start(|_| with_nonce).await, TokenAuth::None);
    setup.dpop = Some(DpopKey::generate().unwrap());
    let token = setup.endpoint().client_credentials(&[]).await.unwrap();
    assert_eq!(token.token_type, Scheme::Dpop);
    assert_eq!(setup.test.requests().len(), 2);
    let (_, claims) = verified(&setup.last().headers["dpop"]);
    let target = format!("http://{}/token", setup.test.address);
    assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!(target)));
    setup.endpoint().client_credentials(&[]).await.unwrap();
    assert_eq!(setup.test.requests().len(), 3);
}

#[tokio::test]
async fn a_nonce_that_is_never_accepted_does_not_loop() {
    let reply =
        Reply::json(400, &json!({"error": "use_dpop_nonce"})).with_header("DPoP-Nonce", "x");
    let mut setup = Setup::new(TokenAuth::None, reply).await;
    setup.dpop = Some(DpopKey::generate().unwrap());
    let error = setup.endpoint().client_credentials(&[]).await.unwrap_err();
    assert!(error.to_string().contains("use_dpop_nonce"), "{error}");
    assert_eq!(setup.test.requests().len(), 2);
    // A bearer token is accepted where the server does not bind tokens.
    let mut setup = Setup::new(TokenAuth::None, Reply::json(200, &good())).await;
    setup.dpop = Some(DpopKey::generate().unwrap());
    let token = setup.endpoint().client_credentials(&[]).await.unwrap();
    assert_eq!(token.token_type, Scheme::Bearer);
}

#[tokio::test]
async fn an_id_token_is_exchanged_at_the_provider_and_the_grant_here() {
    let test = TestServer::start(|_| {
        |request: &Request| match request.path.as_str() {
            "/idp" => Reply::json(
                200,
                &json!({"access_token": "jag",
                "issued_token_type": ID_JAG, "token_type": "N_A"}),
            ),
            "/idp-bad" => Reply::json(200, &good()),
            _ => Reply::json(200, &good()),
        }
    })
    .await;
    let setup = Setup::of(test, TokenAuth::Basic);
    let mut provider = Enterprise {
        token_endpoint: setup.test.url("/idp"),
        client_id: "idp-client".to_owned(),
        client_secret: None,
        id_token: "id".into(),
    };
    setup.endpoint().enterprise(&provider, &["a".to_owned()]).await.unwrap();
    let requests = setup.test.requests();
    let expected = form(&[
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("audience", ISSUER),
        ("resource", RESOURCE),
        ("subject_token", "id"),
        ("subject_token_type", ID_TOKEN),
        ("scope", "a"),
        ("client_id", "idp-client"),
    ]);
    assert_eq!(requests[0].form(), expected);
    assert!(!requests[0].headers.contains_key("authorization"));
    assert_eq!(requests[1].form()["assertion"], "jag");
    assert!(requests[1].headers.contains_key("authorization"));
    provider.token_endpoint = setup.test.url("/idp-bad");
    let error = setup.endpoint().enterprise(&provider, &[]).await.unwrap_err();
    assert!(error.to_string().contains("ID-JAG"), "{error}");
}

#[tokio::test]
async fn a_token_is_revoked_with_the_clients_authentication() {
    let empty = Reply { status: 200, headers: Vec::new(), body: Vec::new() };
    let setup = Setup::new(TokenAuth::Post, empty).await;
    revoke(&setup.http, &setup.url, &setup.client, &"rt".into(), true).await.unwrap();
    assert_eq!(setup.form()["token"], "rt");
    assert_eq!(setup.form()["token_type_hint"], "refresh_token");
    assert_eq!(setup.form()["client_secret"], "s3cret value:");
    let rejected = Reply::json(400, &json!({"error": "unsupported_token_type"}));
    let setup = Setup::new(TokenAuth::None, rejected).await;
    let error = revoke(&setup.http, &setup.url, &setup.client, &"at".into(), false).await;
    assert!(matches!(error, Err(AuthError::Rejected { .. })));
}

/// Checks the time in the payload of a JWT, by a clock that is an hour ahead.
fn is_timely(jwt: &str) -> bool {
    let claims = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["iat"].as_u64().unwrap().abs_diff(an_hour_ahead()) < 60
}

fn an_hour_ahead() -> u64 {
    jwt::now() + 3600
}

fn by_its_clock(error: &str, is_good: bool) -> Reply {
    let reply = match is_good {
        true => Reply::json(200, &good()),
        false => Reply::json(400, &json!({ "error": error })),
    };
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(an_hour_ahead());
    reply.with_header("Date", &httpdate::fmt_http_date(now))
}

#[tokio::test]
async fn a_signature_is_repeated_with_the_time_of_the_server_if_the_clocks_differ() {
    let test = TestServer::start(|_| {
        |request: &Request| {
            by_its_clock("invalid_client", is_timely(&request.form()["client_assertion"]))
        }
    });
    let mut setup = Setup::of(test.await, TokenAuth::PrivateKeyJwt);
    setup.client.private_key = Some(key());
    for (call, requests) in [(1, 2), (2, 3)] {
        setup.endpoint().client_credentials(&[]).await.unwrap();
        assert_eq!(setup.test.requests().len(), requests, "request {call}");
    }
    let test = TestServer::start(|_| {
        |request: &Request| by_its_clock("invalid_dpop_proof", is_timely(&request.headers["dpop"]))
    });
    let mut setup = Setup::of(test.await, TokenAuth::None);
    setup.dpop = Some(DpopKey::generate().unwrap());
    setup.endpoint().client_credentials(&[]).await.unwrap();
    assert_eq!(setup.test.requests().len(), 2);
}

#[tokio::test]
async fn a_signature_that_is_rejected_for_another_reason_is_not_repeated() {
    let test = TestServer::start(|_| |_: &Request| by_its_clock("invalid_client", false));
    let mut setup = Setup::of(test.await, TokenAuth::PrivateKeyJwt);
    setup.client.private_key = Some(key());
    for requests in [2, 3] {
        setup.endpoint().client_credentials(&[]).await.unwrap_err();
        assert_eq!(setup.test.requests().len(), requests, "the time is learned once");
    }
    let rejected = Reply::json(401, &json!({"error": "invalid_client"}));
    let mut setup = Setup::new(TokenAuth::PrivateKeyJwt, rejected).await;
    setup.client.private_key = Some(key());
    setup.endpoint().client_credentials(&[]).await.unwrap_err();
    assert_eq!(setup.test.requests().len(), 1);
}

#[tokio::test]
async fn a_configured_secret_is_sent_in_the_other_way_if_the_first_is_rejected() {
    for (auth, other) in [(TokenAuth::Basic, TokenAuth::Post), (TokenAuth::Post, TokenAuth::Basic)]
    {
        let test = TestServer::start(|_| {
            move |request: &Request| {
                let is_basic = request.headers.contains_key("authorization");
                match is_basic == (other == TokenAuth::Basic) {
                    true => Reply::json(200, &good()),
                    false => Reply::json(401, &json!({"error": "invalid_client"})),
                }
            }
        });
        let mut setup = Setup::of(test.await, auth);
        setup.client.registration = Registration::Configured;
        let token = setup.endpoint().refresh(&"rt".into(), &[]).await.unwrap();
        assert_eq!((token.client_auth, setup.test.requests().len()), (other, 2));
        // The server itself has chosen the method of a dynamic registration.
        setup.client.registration = Registration::Dynamic;
        setup.endpoint().refresh(&"rt".into(), &[]).await.unwrap_err();
        assert_eq!(setup.test.requests().len(), 3);
        // The assertion of a workload is sent once.
        setup.client.registration = Registration::Configured;
        setup.endpoint().jwt_bearer(&"jwt".into(), &[]).await.unwrap_err();
        assert_eq!(setup.test.requests().len(), 4);
    }
}
