//! Google Cloud Secret Manager: credentials, names and errors.

#![cfg(feature = "gcp")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use aws_lc_rs::{
    encoding::AsDer as _,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use openclaw_secrets::{GcpSettings, ResolveErrorKind, SecretSettings};
use serde_json::{Value, json};
use support::{
    Asker, Server, environment,
    gcp::{METADATA_TOKEN, USER_TOKEN, start},
    settings,
};

fn at(server: &Server) -> SecretSettings {
    let gcp = GcpSettings { endpoint: Some(server.url()), project: None };
    SecretSettings { gcp, ..settings() }
}

/// A Google Cloud machine: credentials and project come from its metadata server.
fn on_google(server: &Server) -> Asker {
    Asker::new(at(server), environment([("GCE_METADATA_HOST", &server.address)]))
}

fn with_key(server: &Server, key: &Value) -> (tempfile::TempDir, Asker) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("key.json");
    std::fs::write(&path, key.to_string()).expect("key");
    let path = path.to_str().expect("path");
    let asker = Asker::new(at(server), environment([("GOOGLE_APPLICATION_CREDENTIALS", path)]));
    (folder, asker)
}

fn user_key(server: &Server, refresh_token: &str) -> Value {
    json!({
        "type": "authorized_user", "client_id": "id.apps.googleusercontent.com",
        "client_secret": "client-secret", "refresh_token": refresh_token,
        "quota_project_id": "quota-project", "token_uri": format!("{}/token", server.url()),
    })
}

#[tokio::test]
async fn the_metadata_server_gives_credentials_and_project() {
    let (server, shared) = start().await;
    let gcp = on_google(&server);
    assert_eq!(gcp.value("secret://gcp/digits").await, "123456789");
    assert_eq!(gcp.value("secret://gcp/project").await, "metadata-project");
    assert_eq!(shared.lock().expect("seen").bearer, METADATA_TOKEN);
    assert_eq!(gcp.redactor.redact(METADATA_TOKEN), "[REDACTED]");
}

#[tokio::test]
async fn the_metadata_server_is_queried_without_the_proxy() {
    // The proxy is read from the environment of the process, so the test needs its own process.
    if std::env::var_os("OPENCLAW_TEST_PROXY").is_none() {
        let this = std::env::current_exe().expect("test executable");
        let mut child = tokio::process::Command::new(this);
        child.args(["--exact", "the_metadata_server_is_queried_without_the_proxy"]);
        child.env("OPENCLAW_TEST_PROXY", "1").env_remove("NO_PROXY").env_remove("no_proxy");
        for variable in ["HTTP_PROXY", "http_proxy"] {
            child.env(variable, "http://127.0.0.1:1");
        }
        let output = child.output().await.expect("output");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let (server, _) = start().await;
    let gcp = on_google(&server);
    let error = gcp.error("secret://gcp/project").await;
    // The token was fetched; the next request goes through the proxy, which does not exist.
    assert_eq!(gcp.redactor.redact(METADATA_TOKEN), "[REDACTED]", "{error}");
    assert!(error.to_string().contains("cannot reach Google Cloud Secret Manager"), "{error}");
}

#[tokio::test]
async fn a_metadata_server_with_oversized_responses_is_ignored() {
    let flavoured = || [("Metadata-Flavor", "Google")];
    let router = axum::Router::new().fallback(async move || (flavoured(), "x".repeat(1 << 20)));
    let asker = on_google(&Server::start(router).await);
    asker.fails("secret://gcp/digits", ResolveErrorKind::NotConfigured).await;
}

#[tokio::test]
async fn a_machine_without_a_service_account_gets_its_own_hint() {
    let flavoured = || [("Metadata-Flavor", "Google")];
    let router = axum::Router::new().route("/", axum::routing::get(async move || flavoured()));
    let server = Server::start(router).await;
    let mut settings = at(&server);
    settings.gcp.project = Some("project".into());
    let asker = Asker::new(settings, environment([("GCE_METADATA_HOST", &server.address)]));
    let error = asker.error("secret://gcp/digits").await;
    assert_eq!(error.hint(), Some("check that the machine has a service account"), "{error}");
}

#[tokio::test]
async fn versions_and_full_resource_names_are_understood() {
    let (server, _) = start().await;
    let gcp = on_google(&server);
    for text in [
        "secret://gcp/digits#1",
        "secret://gcp/digits#latest",
        "secret://gcp/projects/other/secrets/digits",
        "secret://gcp/projects/other/secrets/digits#1",
        "secret://gcp/projects/other/secrets/digits/versions/1",
    ] {
        assert_eq!(gcp.value(text).await, "123456789", "{text}");
    }
    assert_eq!(gcp.value("secret://gcp/projects/other/secrets/project").await, "other");
    let error = gcp.fails("secret://gcp/digits#7", ResolveErrorKind::NotFound).await;
    assert!(error.to_string().contains("secrets/digits/versions/7"), "{error}");
}

#[tokio::test]
async fn the_project_of_the_settings_comes_before_that_of_the_environment() {
    let (server, _) = start().await;
    let host = server.address.as_str();
    let variables = [("GCE_METADATA_HOST", host), ("GOOGLE_CLOUD_PROJECT", "of-environment")];
    let asker = Asker::new(at(&server), environment(variables));
    assert_eq!(asker.value("secret://gcp/project").await, "of-environment");
    let mut settings = at(&server);
    settings.gcp.project = Some("of-settings".into());
    let asker = Asker::new(settings, environment(variables));
    assert_eq!(asker.value("secret://gcp/project").await, "of-settings");
}

#[tokio::test]
async fn the_refresh_token_of_a_logged_in_user_is_exchanged() {
    let (server, shared) = start().await;
    let (_folder, gcp) = with_key(&server, &user_key(&server, "1//good-refresh-token"));
    assert_eq!(gcp.value("secret://gcp/project").await, "quota-project");
    let seen = shared.lock().expect("seen");
    assert_eq!(seen.bearer, USER_TOKEN);
    assert_eq!(seen.quota_project.as_deref(), Some("quota-project"));
}

#[tokio::test]
async fn the_file_of_gcloud_in_the_home_folder_is_found() {
    let (server, _) = start().await;
    let home = tempfile::tempdir().expect("home");
    let folder = home.path().join(".config/gcloud");
    std::fs::create_dir_all(&folder).expect("folder");
    let key = user_key(&server, "1//good-refresh-token").to_string();
    std::fs::write(folder.join("application_default_credentials.json"), key).expect("key");
    let settings = SecretSettings { home: Some(home.path().to_owned()), ..at(&server) };
    let asker = Asker::new(settings, environment([]));
    assert_eq!(asker.value("secret://gcp/digits").await, "123456789");
}

#[tokio::test]
async fn the_file_of_gcloud_is_found_where_its_configuration_was_moved_to() {
    let (server, _) = start().await;
    let folder = tempfile::tempdir().expect("folder");
    let key = user_key(&server, "1//good-refresh-token").to_string();
    std::fs::write(folder.path().join("application_default_credentials.json"), key).expect("key");
    let path = folder.path().to_str().expect("path");
    let settings = SecretSettings { home: Some("/no/such/home".into()), ..at(&server) };
    let asker = Asker::new(settings, environment([("CLOUDSDK_CONFIG", path)]));
    assert_eq!(asker.value("secret://gcp/digits").await, "123456789");
}

#[tokio::test]
async fn an_expired_login_is_denied_with_a_hint_until_the_user_logs_in_again() {
    let (server, _) = start().await;
    let (folder, gcp) = with_key(&server, &user_key(&server, "1//expired-refresh-token"));
    let error = gcp.fails("secret://gcp/digits", ResolveErrorKind::Denied).await;
    assert!(
        error.hint().is_some_and(|hint| hint.contains("gcloud auth application-default login"))
    );
    assert!(!format!("{error:?}").contains("expired-refresh-token"));

    let key = user_key(&server, "1//good-refresh-token").to_string();
    std::fs::write(folder.path().join("key.json"), key).expect("key");
    assert_eq!(gcp.value("secret://gcp/digits").await, "123456789");
}

/// Generates a key pair, and returns it also as PEM.
fn private_key() -> (KeyPair, String) {
    let pair = KeyPair::generate(KeySize::Rsa2048).expect("key pair");
    let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().expect("PKCS#8");
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        STANDARD.encode(der.as_ref())
    );
    (pair, pem)
}

#[tokio::test]
async fn a_service_account_signs_its_own_token() {
    let (server, shared) = start().await;
    shared.lock().expect("seen").accept_jwt = true;
    let (pair, pem) = private_key();
    let key = json!({
        "type": "service_account", "project_id": "key-project", "private_key_id": "key-1",
        "private_key": pem, "client_email": "robot@key-project.iam.gserviceaccount.com",
    });
    let (_folder, gcp) = with_key(&server, &key);
    assert_eq!(gcp.value("secret://gcp/project").await, "key-project");

    let token = shared.lock().expect("seen").bearer.clone();
    let (signed, signature) = token.rsplit_once('.').expect("a token of three parts");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
    public.verify(signed.as_bytes(), &signature).expect("a valid signature");
    let claims = signed.split_once('.').expect("header and claims").1;
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
    assert_eq!(claims["iss"], "robot@key-project.iam.gserviceaccount.com");
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
}

#[tokio::test]
async fn error_responses_are_converted_by_kind() {
    let (server, _) = start().await;
    let gcp = on_google(&server);
    for (text, kind, words) in [
        ("secret://gcp/nope", ResolveErrorKind::NotFound, "/versions/latest` not found"),
        ("secret://gcp/disabled", ResolveErrorKind::NotFound, "is disabled or destroyed"),
        ("secret://gcp/forbidden", ResolveErrorKind::Denied, "denied"),
        ("secret://gcp/busy", ResolveErrorKind::Unreachable, "503 (UNAVAILABLE)"),
        ("secret://gcp/damaged", ResolveErrorKind::Unreachable, "is corrupted"),
        ("secret://gcp/binary", ResolveErrorKind::NotText, "not UTF-8"),
    ] {
        let error = gcp.fails(text, kind).await;
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn rejected_credentials_are_denied_and_not_quoted() {
    let (server, _) = start().await;
    let (_, pem) = private_key();
    let key = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "k", "private_key": pem,
        "client_email": "robot@p.iam.gserviceaccount.com",
    });
    let (_folder, gcp) = with_key(&server, &key);
    let error = gcp.fails("secret://gcp/digits", ResolveErrorKind::Denied).await;
    assert!(!format!("{error} {error:?}").contains("eyJ"), "{error:?}");
}

#[tokio::test]
async fn missing_credentials_are_reported_with_a_hint() {
    let (server, _) = start().await;
    let elsewhere = environment([("GCE_METADATA_HOST", "127.0.0.1:1")]);
    let asker = Asker::new(at(&server), elsewhere);
    let error = asker.fails("secret://gcp/digits", ResolveErrorKind::NotConfigured).await;
    assert_eq!(error.to_string(), "`secret://gcp/digits`: no Google Cloud credentials found");
    assert!(error.hint().is_some_and(|hint| hint.contains("GOOGLE_APPLICATION_CREDENTIALS")));

    let missing = environment([("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/key.json")]);
    let error = Asker::new(at(&server), missing).error("secret://gcp/digits").await;
    assert!(error.to_string().contains("`/no/such/key.json` cannot be read"), "{error}");

    let (_folder, strange) = with_key(&server, &json!({ "type": "alien", "secret": "hunter22" }));
    let error = strange.error("secret://gcp/digits").await;
    assert!(error.to_string().contains("credentials of type `alien` are not supported"), "{error}");
    let (_folder, list) = with_key(&server, &json!(["hunter22"]));
    list.fails("secret://gcp/digits", ResolveErrorKind::NotConfigured).await;
    let (_folder, broken) = with_key(&server, &json!({ "type": "service_account" }));
    let error = broken.error("secret://gcp/digits").await;
    assert!(error.to_string().contains("credentials are incomplete"), "{error}");
}
