//! Which authorization servers get credentials and codes: asserted on what arrives there.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use openclaw_oauth::authorizer::{Authorizer, AuthorizerOptions};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::issuer::IssuerDoubt;
use openclaw_oauth::login::{LoginPrompt, LoginRequest, PromptResponse};
use openclaw_oauth::settings::{AuthSettings, Enterprise, GrantType};
use openclaw_oauth::store::GrantStore as _;
use openclaw_testkit::oauth::{Browser, Endpoint, Fake, OAuthScript, OAuthTestServer, Parameter};
use serde_json::{Value, json};

use crate::support::{call, client, folder, key, login, options_with, serve, store, within};

const SECRET: &str = "the-secret-of-the-machine";
const ASSERTION: &str = "the.platform.assertion";

/// The settings of the machines, without an authorization server.
fn machines(identity_provider: &OAuthTestServer) -> Vec<AuthSettings> {
    let provider = Enterprise {
        token_endpoint: format!("{}/token", identity_provider.issuer()).parse().unwrap(),
        client_id: "desk".into(),
        client_secret: Some(SECRET.into()),
        id_token: ASSERTION.into(),
    };
    let credentials = AuthSettings {
        client_id: Some("known".into()),
        client_secret: Some(SECRET.into()),
        grant: GrantType::ClientCredentials,
        ..AuthSettings::default()
    };
    let assertion = GrantType::JwtBearer { assertion: ASSERTION.into() };
    vec![
        credentials.clone(),
        AuthSettings { grant: assertion, ..AuthSettings::default() },
        AuthSettings { grant: GrantType::Enterprise(Box::new(provider)), ..credentials },
    ]
}

fn machine(server: &OAuthTestServer, state: &Path, settings: &AuthSettings) -> Authorizer {
    Authorizer::new(options_with(&server.url(), state, settings.clone()))
}

fn with_client() -> OAuthScript {
    OAuthScript { clients: vec![("known".into(), Some(SECRET.into()))], ..OAuthScript::new() }
}

/// The MCP server names another authorization server.
fn name_another(server: &OAuthTestServer, other: &OAuthTestServer) {
    server.change(|script| {
        script.resource_metadata = json!({ "authorization_servers": [other.issuer()] });
    });
}

/// Asserts that nothing but its metadata was requested from a server.
fn assert_nothing_sent(server: &OAuthTestServer) {
    let requests = server.all_requests();
    let is_metadata = |endpoint| endpoint == Endpoint::ServerMetadata;
    assert!(requests.iter().all(|request| is_metadata(request.endpoint)), "{requests:?}");
    let shown = format!("{requests:?}");
    assert!(!shown.contains(SECRET) && !shown.contains(ASSERTION), "{shown}");
}

fn doubt(error: &AuthError) -> &IssuerDoubt {
    let AuthError::Unconfirmed(unconfirmed) = error else { panic!("{error:?}") };
    &unconfirmed.doubt
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_the_first_issuer_until_it_is_confirmed() {
    let other = OAuthTestServer::start(OAuthScript::new());
    for settings in machines(&other) {
        let server = OAuthTestServer::start(with_client());
        name_another(&server, &other);
        let state = folder();
        let client = machine(&server, state.path(), &settings);
        for _ in 0..2 {
            let error = call(&client, &server.url()).await.unwrap_err();
            assert_eq!(doubt(&error), &IssuerDoubt::First);
            assert!(error.to_string().contains(&other.issuer()), "{error}");
        }
        let unconfirmed = client.unconfirmed_issuer().await.unwrap().unwrap();
        assert_eq!(unconfirmed.issuer, other.issuer());
        assert_nothing_sent(&other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_issuer_stays_the_only_one_after_a_logout_and_a_restart() {
    let (server, state) = serve(with_client());
    let other = OAuthTestServer::start(with_client());
    let settings = &machines(&other)[0];
    let client = machine(&server, state.path(), settings);
    client.confirm_issuer(&server.issuer()).await.unwrap();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);

    name_another(&server, &other);
    let changed = IssuerDoubt::Changed(server.issuer());
    server.expire_access_tokens();
    let error = call(&client, &server.url()).await.unwrap_err();
    assert_eq!(doubt(&error), &changed);
    client.logout().await.unwrap();
    for client in [client, machine(&server, state.path(), settings)] {
        let error = call(&client, &server.url()).await.unwrap_err();
        assert_eq!(doubt(&error), &changed);
        let text = error.to_string();
        assert!(text.contains(&server.issuer()) && text.contains(&other.issuer()), "{text}");
    }
    assert_nothing_sent(&other);

    let client = machine(&server, state.path(), settings);
    other.change(|script| script.resource = Some(server.url()));
    // What is confirmed must be what the server names.
    let wrong = client.confirm_issuer("https://as.example").await.unwrap_err();
    assert_eq!(doubt(&wrong), &IssuerDoubt::NotNamed("https://as.example".into()));
    assert_eq!(doubt(&call(&client, &server.url()).await.unwrap_err()), &changed);
    client.confirm_issuer(&other.issuer()).await.unwrap();
    let _ = call(&client, &server.url()).await;
    assert_eq!(other.count(Endpoint::Token), 1);
    assert_eq!(client.in_use().unwrap().issuer, other.issuer());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_of_a_user_does_not_begin_at_another_issuer_than_the_one_that_was_confirmed() {
    let (server, state) = serve(OAuthScript::new());
    let client = client(&server, state.path());
    let wrong = client.confirm_issuer("https://as.example").await.unwrap_err();
    assert!(wrong.to_string().contains("not https://as.example"), "{wrong}");
    client.confirm_issuer(&server.issuer()).await.unwrap();
    login(&client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_issuer_needs_no_confirmation_and_is_kept_when_the_setting_is_removed() {
    let (server, state) = serve(with_client());
    let other = OAuthTestServer::start(with_client());
    let settings = machines(&other)[0].clone();
    let configured = AuthSettings {
        authorization_server: Some(server.issuer().parse().unwrap()),
        ..settings.clone()
    };
    name_another(&server, &other);
    let client = machine(&server, state.path(), &configured);
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    client.logout().await.unwrap();
    let client = machine(&server, state.path(), &settings);
    let error = call(&client, &server.url()).await.unwrap_err();
    assert_eq!(doubt(&error), &IssuerDoubt::Changed(server.issuer()));
    server.change(|script| script.resource_metadata = Value::Null);
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    assert_nothing_sent(&other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_of_an_older_version_confirms_its_issuer() {
    let (server, state) = serve(with_client());
    let other = OAuthTestServer::start(with_client());
    let settings = &machines(&other)[0];
    let client = machine(&server, state.path(), settings);
    client.confirm_issuer(&server.issuer()).await.unwrap();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    let folder = state.path().join("mcp/tokens");
    let is_pin = |path: &Path| path.to_string_lossy().ends_with(".issuer.json");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pins: Vec<_> = files.filter(|path| is_pin(path)).collect();
    assert_eq!(pins.len(), 1);
    std::fs::remove_file(&pins[0]).unwrap();

    server.expire_access_tokens();
    let client = machine(&server, state.path(), settings);
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
    let pinned = store(state.path()).issuer(&key(&server)).await.unwrap();
    assert_eq!(pinned.unwrap().confirmed.unwrap().issuer, server.issuer());
    // A pin that cannot be read confirms nothing, and can be replaced.
    std::fs::write(&pins[0], "{}").unwrap();
    server.expire_access_tokens();
    let client = machine(&server, state.path(), settings);
    let error = call(&client, &server.url()).await.unwrap_err();
    assert_eq!(doubt(&error), &IssuerDoubt::First);
    client.confirm_issuer(&server.issuer()).await.unwrap();
    assert_eq!(call(&client, &server.url()).await.unwrap(), 200);
}

/// A user who is asked about authorization servers, and logs in.
#[derive(Debug, Default)]
struct User {
    agrees: bool,
    asked: Mutex<Vec<String>>,
}

impl LoginPrompt for User {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        drop(Browser::new().approve_in_background(login.url.as_str()));
        Box::pin(async { PromptResponse::Shown })
    }

    fn confirm<'a>(
        &'a self,
        unconfirmed: &'a openclaw_oauth::issuer::UnconfirmedIssuer,
    ) -> BoxFuture<'a, bool> {
        self.asked.lock().unwrap().push(unconfirmed.to_string());
        Box::pin(async { self.agrees })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_user_asks_once() {
    let (server, state) = serve(with_client());
    let settings = &machines(&server)[0];
    for (agrees, expected) in [(false, None), (true, Some(200))] {
        let user = Arc::new(User { agrees, ..User::default() });
        let options = AuthorizerOptions {
            prompt: Some(user.clone()),
            ..options_with(&server.url(), state.path(), settings.clone())
        };
        let client = Authorizer::new(options);
        assert_eq!(call(&client, &server.url()).await.ok(), expected);
        server.expire_access_tokens();
        let _ = call(&client, &server.url()).await;
        assert_eq!(user.asked.lock().unwrap().len(), if agrees { 1 } else { 2 });
    }
}

/// Lets responses to logins not say whose they are.
fn without_iss(script: &mut OAuthScript) {
    script.iss = Parameter::Missing;
    script.server_metadata["authorization_response_iss_parameter_supported"] = Value::Null;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_sends_users_to_another_one_must_be_confirmed() {
    let (server, state) = serve(OAuthScript::new());
    let honest = OAuthTestServer::start(OAuthScript::new());
    let page = format!("{}/authorize", honest.issuer());
    server.change(|script| {
        script.server_metadata = json!({ "authorization_endpoint": page });
        without_iss(script);
    });
    let ours = client(&server, state.path());
    let error = login(&ours).await.unwrap_err();
    assert!(matches!(doubt(&error), IssuerDoubt::Elsewhere { .. }));
    let text = error.to_string();
    assert!(text.contains(&honest.issuer()) && text.contains(&server.issuer()), "{text}");
    assert_eq!(server.count(Endpoint::Register), 0);
    assert!(honest.all_requests().is_empty());
    // The user confirms it: authorization servers with several origins keep working.
    let token = format!("http://localhost:{}/token", server.issuer().rsplit(':').next().unwrap());
    server.change(|script| script.server_metadata = json!({ "token_endpoint": token }));
    server.change(without_iss);
    let user = User { agrees: true, ..User::default() };
    let scopes = std::collections::BTreeSet::new();
    within(ours.login(&user, &scopes)).await.unwrap();
    assert_eq!(user.asked.lock().unwrap().len(), 1);
    assert_eq!(call(&ours, &server.url()).await.unwrap(), 200);
    within(ours.login(&user, &scopes)).await.unwrap();
    assert_eq!(user.asked.lock().unwrap().len(), 1, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_issuer_with_the_client_id_of_another_one_must_be_confirmed() {
    let (honest, state) = serve(OAuthScript::new());
    login(&client(&honest, state.path())).await.unwrap();
    let stored = store(state.path()).load(&key(&honest)).await.unwrap().unwrap();
    let id = stored.grant.client.id;
    let evil = OAuthTestServer::start(OAuthScript::new());
    let registered = Fake::Json(201, json!({ "client_id": id }));
    evil.change(|script| script.faults = vec![(Endpoint::Register, registered, 0)]);
    evil.change(without_iss);
    let error = login(&client(&evil, state.path())).await.unwrap_err();
    assert_eq!(doubt(&error), &IssuerDoubt::SharedClient(honest.issuer()));
    assert_eq!((evil.count(Endpoint::Authorize), evil.count(Endpoint::Token)), (0, 0));
}

/// Settings with a client id that all authorization servers know.
fn document_client() -> AuthSettings {
    AuthSettings {
        client_metadata_url: Some("https://claw.example/id.json".parse().unwrap()),
        ..AuthSettings::default()
    }
}

/// Returns a client with the name of an entry, as a new process would create it.
fn entry(name: &str, server: &OAuthTestServer, state: &Path, settings: AuthSettings) -> Authorizer {
    let options = options_with(&server.url(), state, settings);
    Authorizer::new(AuthorizerOptions { server: name.to_owned(), ..options })
}

/// Starts a server with an issuer that takes client metadata documents and sends no `iss`.
fn with_documents() -> OAuthTestServer {
    let server = OAuthTestServer::start(OAuthScript { client_id_documents: true, ..with_client() });
    server.change(without_iss);
    server
}

/// Asserts that an issuer has got no code and no user.
fn assert_no_login(server: &OAuthTestServer, logins: usize) {
    assert_eq!(
        (server.count(Endpoint::Authorize), server.count(Endpoint::Token)),
        (logins, logins)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_issuer_that_takes_the_client_id_of_another_one_must_be_confirmed() {
    let (honest, evil, state) = (with_documents(), with_documents(), folder());
    evil.change(|script| script.client_id_documents = false);
    let ours = |name: &str, server| entry(name, server, state.path(), document_client());
    login(&ours("one", &honest)).await.unwrap();
    login(&ours("two", &evil)).await.unwrap();
    assert_eq!((evil.count(Endpoint::Register), evil.count(Endpoint::Token)), (1, 1));

    evil.change(|script| script.client_id_documents = true);
    let shared = IssuerDoubt::SharedClient(honest.issuer());
    for name in ["two", "three"] {
        let error = login(&ours(name, &evil)).await.unwrap_err();
        assert_eq!(doubt(&error), &shared, "{name}");
    }
    // Nor is a configured client id taken for that of the other issuer.
    let id = Some("https://claw.example/id.json".to_owned());
    let configured = AuthSettings { client_id: id, ..AuthSettings::default() };
    let four = entry("four", &evil, state.path(), configured);
    assert_eq!(doubt(&login(&four).await.unwrap_err()), &shared);
    assert_no_login(&evil, 1);
    // The user confirms it, in another process.
    ours("two", &evil).confirm_issuer(&evil.issuer()).await.unwrap();
    login(&ours("two", &evil)).await.unwrap();
    login(&ours("two", &evil)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_id_of_an_issuer_is_known_after_a_logout() {
    for is_of_older_version in [false, true] {
        let (honest, evil, state) = (with_documents(), with_documents(), folder());
        let ours = entry("one", &honest, state.path(), document_client());
        login(&ours).await.unwrap();
        if is_of_older_version {
            let files = std::fs::read_dir(state.path().join("mcp/tokens")).unwrap();
            let files = files.map(|file| file.unwrap().path());
            let is_pin =
                |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".issuer.json");
            files.filter(is_pin).for_each(|path| std::fs::remove_file(path).unwrap());
        }
        ours.logout().await.unwrap();
        let theirs = entry("two", &evil, state.path(), document_client());
        let error = login(&theirs).await.unwrap_err();
        assert_eq!(doubt(&error), &IssuerDoubt::SharedClient(honest.issuer()));
        assert_no_login(&evil, 0);
        // The honest one is asked about no more than before.
        login(&entry("one", &honest, state.path(), document_client())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_issuer_whose_endpoints_move_must_be_confirmed_again() {
    let (evil, state) = serve(OAuthScript::new());
    let honest = OAuthTestServer::start(OAuthScript::new());
    evil.change(without_iss);
    let ours = || client(&evil, state.path());
    login(&ours()).await.unwrap();
    let move_to = |name: &str, url: &str| {
        evil.change(|script| script.server_metadata = json!({ name: url }));
        evil.change(without_iss);
    };
    let other_name = evil.issuer().replace("127.0.0.1", "localhost");
    move_to("token_endpoint", &format!("{other_name}/token"));
    let error = login(&ours()).await.unwrap_err();
    assert!(error.to_string().contains(&other_name), "{error}");
    // What is confirmed is what was shown, whatever the server names meanwhile.
    let page = format!("{}/authorize", honest.issuer());
    move_to("authorization_endpoint", &page);
    ours().confirm_issuer(&evil.issuer()).await.unwrap();
    for _ in 0..2 {
        let error = login(&ours()).await.unwrap_err();
        let origin = honest.issuer();
        assert!(
            matches!(doubt(&error), IssuerDoubt::Elsewhere { origin: it, .. } if *it == origin)
        );
    }
    assert!(honest.all_requests().is_empty());
    assert_no_login(&evil, 1);
    move_to("token_endpoint", &format!("{other_name}/token"));
    login(&ours()).await.unwrap();
    login(&ours()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_code_is_sent_nowhere_where_responses_name_their_issuer() {
    let (evil, state) = serve(OAuthScript::new());
    let honest = with_documents();
    let page = format!("{}/authorize", honest.issuer());
    evil.change(|script| {
        script.client_id_documents = true;
        script.server_metadata = json!({ "authorization_endpoint": page });
    });
    let ours = entry("one", &evil, state.path(), document_client());
    let scopes = std::collections::BTreeSet::new();
    let request = ours.begin_login("http://127.0.0.1:9/callback", &scopes).await.unwrap();
    let url = request.url().to_string();
    let back = tokio::task::spawn_blocking(move || Browser::new().approve(&url)).await.unwrap();
    let back: url::Url = back.parse().unwrap();
    let code = back.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    for pasted in [code.as_str(), back.as_str()] {
        let error = ours.finish_pasted(&pasted.into()).await.unwrap_err();
        assert!(matches!(error, AuthError::Mismatch(_)), "{error}");
        assert!(error.to_string().contains("the issuer is missing"), "{error}");
    }
    assert_eq!(evil.count(Endpoint::Token), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_a_login_is_not_sent_to_the_first_issuer_until_it_is_confirmed() {
    let (server, state) = serve(OAuthScript::new());
    let other = OAuthTestServer::start(with_client());
    name_another(&server, &other);
    other.change(|script| script.resource = Some(server.url()));
    let settings =
        AuthSettings { grant: GrantType::AuthorizationCode, ..machines(&other)[0].clone() };
    let ours = || machine(&server, state.path(), &settings);
    for _ in 0..2 {
        let error = login(&ours()).await.unwrap_err();
        assert_eq!(doubt(&error), &IssuerDoubt::First);
    }
    assert_nothing_sent(&other);
    ours().confirm_issuer(&other.issuer()).await.unwrap();
    login(&ours()).await.unwrap();
    assert_eq!(other.count(Endpoint::Token), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_at_the_redirect_uri_of_another_issuer_is_sent_nowhere() {
    let (server, state) = serve(OAuthScript::new());
    server.change(without_iss);
    let ours = client(&server, state.path());
    let callback = "http://127.0.0.1:9/callback";
    let request = ours.begin_login(callback, &std::collections::BTreeSet::new()).await.unwrap();
    assert_eq!(request.redirect_uri.strip_prefix(callback).unwrap().len(), 33);
    let registered = &server.requests(Endpoint::Register)[0].json["redirect_uris"];
    assert_eq!(registered, &json!([request.redirect_uri]));
    let url = request.url().to_string();
    let back = tokio::task::spawn_blocking(move || Browser::new().approve(&url)).await.unwrap();
    assert!(back.starts_with(&request.redirect_uri), "{back}");
    let query = back.split_once('?').unwrap().1;
    for wrong in [format!("{callback}?{query}"), format!("{callback}/00?{query}")] {
        let error = ours.finish_pasted(&wrong.as_str().into()).await.unwrap_err();
        assert!(matches!(error, AuthError::Mismatch(_)), "{error}");
    }
    assert_eq!(server.count(Endpoint::Token), 0);
    ours.finish_pasted(&back.as_str().into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_whose_redirect_uri_is_fixed_keep_it() {
    let script = OAuthScript { client_id_documents: true, ..with_client() };
    let (server, state) = serve(script);
    let callback = "http://127.0.0.1:9/callback";
    let configured = AuthSettings { client_id: Some("known".into()), ..AuthSettings::default() };
    let document = document_client();
    let configured = options_with(&server.url(), state.path(), configured);
    let document = options_with(&server.url(), state.path(), document);
    let fixed_port = AuthorizerOptions {
        redirect_port: Some(9),
        ..options_with(&server.url(), state.path(), AuthSettings::default())
    };
    for options in [configured, document, fixed_port] {
        let client = Authorizer::new(options);
        let scopes = std::collections::BTreeSet::new();
        let request = client.begin_login(callback, &scopes).await.unwrap();
        assert_eq!(request.redirect_uri, callback);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn assertions_are_for_the_confirmed_issuer() {
    use base64::Engine as _;
    let (server, state) = serve(with_client());
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let settings = AuthSettings {
        client_id: Some("known".into()),
        private_key: Some(key.as_str().into()),
        grant: GrantType::ClientCredentials,
        ..AuthSettings::default()
    };
    let client = machine(&server, state.path(), &settings);
    client.confirm_issuer(&server.issuer()).await.unwrap();
    let _ = call(&client, &server.url()).await;
    let assertion = server.requests(Endpoint::Token)[0].form["client_assertion"].clone();
    let claims = assertion.split('.').nth(1).unwrap();
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["aud"], json!(server.issuer()));
}
