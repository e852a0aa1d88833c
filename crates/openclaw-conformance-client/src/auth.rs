//! Authorization in the suite's scenarios: the settings that a scenario provides, and a user whose
//! browser agrees to everything.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_oauth::issuer::UnconfirmedIssuer;
use openclaw_oauth::login::{LoginPrompt, LoginRequest, PromptResponse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

/// The client metadata document that the suite knows.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Returns the `auth` settings of a server for a scenario, from the context that the suite passes.
pub(crate) fn settings(context: Option<&str>) -> Value {
    let context: Value = context.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let text = |key: &str| context[key].as_str();
    let mut auth = json!({ "clientMetadataUrl": METADATA_DOCUMENT });
    for (setting, key) in [
        ("clientId", "client_id"),
        ("clientSecret", "client_secret"),
        ("privateKey", "private_key_pem"),
        ("signingAlgorithm", "signing_algorithm"),
        ("assertion", "valid_jwt"),
    ] {
        if let Some(value) = text(key) {
            auth[setting] = value.into();
        }
    }
    if let Some(id_token) = text("idp_id_token") {
        auth["identityProvider"] = json!({
            "tokenEndpoint": text("idp_token_endpoint"),
            "clientId": text("idp_client_id"),
            "idToken": id_token,
        });
    }
    auth
}

/// Returns the grant type of a scenario. A user configures it; nothing in the protocol says it.
pub(crate) fn grant_type(scenario: &str) -> &'static str {
    match scenario {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => "client_credentials",
        "auth/wif-jwt-bearer" => "jwt_bearer",
        "auth/enterprise-managed-authorization" => "enterprise",
        _ => "authorization_code",
    }
}

/// Opens the URL of a login, and returns the address that it redirects to.
#[derive(Debug)]
pub(crate) struct Browser;

impl LoginPrompt for Browser {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        async move {
            match redirect(&login.url).await {
                Some(address) => PromptResponse::Pasted(address.into()),
                None => PromptResponse::Declined,
            }
        }
        .boxed()
    }

    fn confirm<'a>(&'a self, _unconfirmed: &'a UnconfirmedIssuer) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }
}

/// Sends a GET request and returns the `Location` of its response.
async fn redirect(url: &Url) -> Option<String> {
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    let mut stream = TcpStream::connect((host, port)).await.ok()?;
    let target = &url[url::Position::BeforePath..];
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut response).await.ok()?;
    let response = String::from_utf8_lossy(&response).into_owned();
    let mut headers = response.lines().take_while(|line| !line.is_empty());
    let location = headers.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    })?;
    url.join(&location).ok().map(Into::into)
}
