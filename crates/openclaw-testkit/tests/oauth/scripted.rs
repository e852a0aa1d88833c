//! The server that misbehaves on command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use openclaw_testkit::oauth::{
    Browser, Endpoint, Fake, OAuthScript, OAuthTestServer, Parameter, RefreshTokens, form, wire,
};
use serde_json::json;

use super::client::{Client, parameter, rpc, text, token};

#[test]
fn by_default_a_login_works_and_every_request_is_recorded() {
    let server = OAuthTestServer::start(OAuthScript::new());
    for authentication in ["none", "client_secret_post"] {
        let client = Client::register(&server.url(), authentication);
        assert_eq!(client.secret.is_some(), authentication != "none");
        let tokens = client.login(&mut Browser::new(), "mcp");
        assert!(server.is_valid(token(&tokens, "access")));
        let body = json!({"name": "echo", "arguments": {"text": "hi"}});
        let answer = rpc(&server.url(), "tools/call", &body, Some(token(&tokens, "access")));
        assert_eq!(text(&answer), "hi");
    }
    let requests = server.requests(Endpoint::Token);
    assert_eq!((requests.len(), requests[0].status), (2, 200));
    assert_eq!(requests[0].form["resource"], server.url());
    assert_eq!(server.count(Endpoint::Register), 2);
    assert_eq!(server.requests(Endpoint::Mcp)[0].status, 401);
    assert_eq!(server.all_requests()[1].endpoint, Endpoint::ResourceMetadata);
}

#[test]
fn the_issuer_can_have_a_path() {
    let script = OAuthScript { issuer_path: "/tenant1".into(), ..OAuthScript::new() };
    let server = OAuthTestServer::start(script);
    assert!(server.issuer().ends_with("/tenant1"));
    let client = Client::register(&server.url(), "none");
    client.login(&mut Browser::new(), "mcp");
}

#[test]
fn codes_verifiers_resources_and_redirect_uris_are_checked() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server.url(), "none");
    let callback = Browser::new().approve(&client.authorization_url("mcp"));
    let code = &form::query(&callback)["code"];
    let exchange = |code: &str| {
        let code = [("grant_type", "authorization_code"), ("code", code)];
        client.post("token", &code).json()["error"].clone()
    };
    assert_eq!(exchange("another"), "invalid_grant");
    assert_eq!(exchange(code), "invalid_grant");
    assert_eq!(client.exchange(&callback).json()["error"], "invalid_grant", "a code is used once");

    let url = client.authorization_url("mcp");
    assert_eq!(wire::get(&url.replace("callback", "elsewhere")).status, 400);
    let plain = wire::get(&url.replace("S256", "plain"));
    assert!(plain.header("location").unwrap().contains("error=invalid_request"));

    let mut other = Client::register(&server.url(), "none");
    let callback = Browser::new().approve(&other.authorization_url("mcp"));
    other.resource = "http://127.0.0.1:9/mcp".into();
    assert_eq!(other.exchange(&callback).json()["error"], "invalid_target");

    server.forget_clients();
    assert_eq!(client.refresh("any").json()["error"], "invalid_client");
}

#[test]
fn metadata_can_be_missing_wrong_or_huge() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let url = format!("{}/.well-known/oauth-authorization-server", server.issuer());
    let with = |fake: Fake| {
        server.change(|script| script.faults = vec![(Endpoint::ServerMetadata, fake, 0)]);
        wire::get(&url)
    };
    assert_eq!(with(Fake::Status(404)).status, 404);
    assert!(with(Fake::Html).header("content-type").unwrap().starts_with("text/html"));
    assert!(with(Fake::Huge).body.len() > 10_000_000);
    let redirect = with(Fake::Redirect("http://127.0.0.1:9/".into()));
    assert_eq!((redirect.status, redirect.header("location")), (307, Some("http://127.0.0.1:9/")));
    assert_eq!(with(Fake::HangUp).status, 0);

    server.change(|script| {
        script.faults.clear();
        script.issuer = Some("https://other.example".into());
        script.pkce_methods = None;
        script.registration = false;
        script.announces_iss = false;
    });
    let metadata = wire::get(&url).json();
    assert_eq!(metadata["issuer"], "https://other.example");
    for key in [
        "code_challenge_methods_supported",
        "registration_endpoint",
        "authorization_response_iss_parameter_supported",
    ] {
        assert!(metadata[key].is_null(), "{key}");
    }
}

#[test]
fn the_redirect_to_the_client_can_be_wrong() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server.url(), "none");
    let callback = || form::query(&Browser::new().approve(&client.authorization_url("mcp")));
    assert_eq!(callback()["iss"], server.issuer());
    server.change(|script| {
        script.iss = Parameter::Other("https://other.example".into());
        script.state = Parameter::Missing;
    });
    assert_eq!(callback()["iss"], "https://other.example");
    assert!(!callback().contains_key("state"));
    server.change(|script| {
        script.iss = Parameter::Missing;
        script.state = Parameter::Other("wrong".into());
        script.authorize_error = Some("access_denied".into());
    });
    let answer = callback();
    assert_eq!((&*answer["state"], &*answer["error"]), ("wrong", "access_denied"));
    assert!(!answer.contains_key("iss"));
}

#[test]
fn token_responses_can_be_odd() {
    let script = OAuthScript {
        expires_in: Some(-1),
        token_type: "mac".into(),
        names_scope: false,
        ..OAuthScript::new()
    };
    let server = OAuthTestServer::start(script);
    let client = Client::register(&server.url(), "none");
    let tokens = client.login(&mut Browser::new(), "mcp");
    assert_eq!((&tokens["expires_in"], &tokens["token_type"]), (&json!(-1), &json!("mac")));
    assert!(tokens["scope"].is_null());
    server.change(|script| {
        script.expires_in = None;
        script.refresh_tokens = RefreshTokens::Never;
        script.lifetime = Duration::ZERO;
    });
    let tokens = client.login(&mut Browser::new(), "mcp");
    assert!(tokens["expires_in"].is_null() && tokens["refresh_token"].is_null());
    assert_eq!(client.call("echo", token(&tokens, "access")).status, 401);
}

#[test]
fn refresh_tokens_are_rotated_and_their_reuse_ends_the_login() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server.url(), "none");
    let first = client.login(&mut Browser::new(), "mcp");
    let second = client.refresh(token(&first, "refresh")).json();
    assert!(server.is_valid(token(&second, "access")));
    assert_eq!(client.refresh(token(&first, "refresh")).json()["error"], "invalid_grant");
    assert!(!server.is_valid(token(&second, "access")));
    assert_eq!(client.refresh(token(&second, "refresh")).json()["error"], "invalid_grant");

    server.change(|script| script.refresh_tokens = RefreshTokens::Reusable);
    let tokens = client.login(&mut Browser::new(), "mcp");
    for _ in 0..2 {
        let refreshed = client.refresh(token(&tokens, "refresh"));
        assert_eq!(refreshed.status, 200);
        assert!(refreshed.json()["refresh_token"].is_null());
    }
    client.post("revocation", &[("token", token(&tokens, "refresh"))]);
    assert_eq!(client.refresh(token(&tokens, "refresh")).status, 400);
}

#[test]
fn of_two_concurrent_refreshes_only_one_succeeds() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server.url(), "none");
    let tokens = client.login(&mut Browser::new(), "mcp");
    server.hold(Endpoint::Refresh);
    let mut statuses = thread::scope(|scope| {
        let refresh = || client.refresh(token(&tokens, "refresh")).status;
        let both = [scope.spawn(refresh), scope.spawn(refresh)];
        server.wait_for(Endpoint::Refresh, 2);
        server.release(Endpoint::Refresh);
        both.map(|thread| thread.join().unwrap())
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}

#[test]
fn a_response_can_be_held_after_the_token_was_replaced() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let client = Client::register(&server.url(), "none");
    let tokens = client.login(&mut Browser::new(), "mcp");
    server.hold_responses(Endpoint::Refresh);
    thread::scope(|scope| {
        let first = scope.spawn(|| client.refresh(token(&tokens, "refresh")).status);
        server.wait_for_processed(Endpoint::Refresh, 1);
        assert_eq!(server.requests(Endpoint::Refresh)[0].status, 200);
        assert!(!first.is_finished());
        server.release(Endpoint::Refresh);
        assert_eq!(first.join().unwrap(), 200);
    });
    assert_eq!(client.refresh(token(&tokens, "refresh")).status, 400);
}

#[test]
fn endpoints_fail_as_often_as_they_should() {
    let script = OAuthScript::new()
        .fault(Endpoint::Refresh, Fake::Status(500), 2)
        .fault(Endpoint::Refresh, Fake::error("temporarily_unavailable"), 1)
        .delay(Endpoint::Refresh, Duration::from_millis(1));
    let server = OAuthTestServer::start(script);
    let tokens = server.issue("mcp");
    let refresh = || {
        let refresh_token = tokens.refresh_token.as_deref().unwrap();
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &tokens.client_id),
            ("refresh_token", refresh_token),
        ];
        wire::post_form(&format!("{}/token", server.issuer()), &form).status
    };
    assert_eq!([refresh(), refresh(), refresh(), refresh()], [500, 500, 400, 200]);
}

#[test]
fn the_challenge_and_the_scopes_of_tools_are_configurable() {
    let script = OAuthScript { challenge: None, ..OAuthScript::new() };
    let server = OAuthTestServer::start(script.tool_scope("echo", "admin"));
    assert!(
        rpc(&server.url(), "tools/list", &json!({}), None).header("www-authenticate").is_none()
    );
    let call = |scope: &str| {
        let body = json!({"name": "echo", "arguments": {"text": "hi"}});
        let tokens = server.issue(scope);
        rpc(&server.url(), "tools/call", &body, Some(&tokens.access_token))
    };
    let refusal = call("mcp");
    let challenge = refusal.header("www-authenticate").unwrap();
    assert_eq!((refusal.status, parameter(challenge, "scope")), (403, Some("admin")));
    assert_eq!(call("mcp admin").status, 200);
    let tokens = server.issue("mcp");
    server.expire_access_tokens();
    assert!(!server.is_valid(&tokens.access_token));
    server.revoke_all();
}

#[test]
fn registered_clients_and_client_documents_are_accepted() {
    let script = OAuthScript {
        clients: vec![("known".into(), Some("its secret".into()))],
        client_id_documents: true,
        ..OAuthScript::new()
    };
    let server = OAuthTestServer::start(script);
    let mut client = Client::register(&server.url(), "none");
    client.id = "known".into();
    let callback = Browser::new().approve(&client.authorization_url("mcp"));
    assert_eq!(client.exchange(&callback).json()["error"], "invalid_client");
    client.secret = Some("its secret".into());
    client.login(&mut Browser::new(), "mcp");
    (client.id, client.secret) = ("https://client.example/metadata.json".into(), None);
    client.login(&mut Browser::new(), "mcp");
}

#[test]
fn the_browser_returns_to_a_client_that_waits_in_an_asynchronous_test() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let script =
            OAuthScript { clients: vec![("known".into(), None)], ..OAuthScript::default() };
        let server = OAuthTestServer::start(script);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let callback = format!("http://{}/callback", listener.local_addr().unwrap());
        let url = format!("{}/authorize", server.issuer());
        let query = form::encode(&[
            ("response_type", "code"),
            ("client_id", "known"),
            ("redirect_uri", &callback),
            ("code_challenge", "any"),
            ("code_challenge_method", "S256"),
        ]);
        let client = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = reader.by_ref().lines().map_while(Result::ok);
            let first = lines.next().unwrap();
            lines.find(String::is_empty);
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nSigned in").unwrap();
            first
        });
        let page = Browser::new().approve_in_background(&format!("{url}?{query}"));
        assert_eq!(page.join().unwrap().text(), "Signed in");
        let request = client.join().unwrap();
        assert!(request.starts_with("GET /callback?code="), "{request}");
    });
}
