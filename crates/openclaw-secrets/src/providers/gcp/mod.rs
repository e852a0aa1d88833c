//! `secret://gcp/NAME[#VERSION]`: Google Cloud Secret Manager, over its REST API.

mod identity;
mod metadata;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use crc::{CRC_32_ISCSI, Crc};
use reqwest::{Client, Url};
use serde_json::Value;
use zeroize::Zeroizing;

use self::identity::GcpIdentity;
use super::{Fetch, ProviderContext, http, kept::Kept, text};
use crate::{ResolveErrorKind, SecretRef, SecretString, resolve_error::ProviderFailure};

const ENDPOINT: &str = "https://secretmanager.googleapis.com";
const SERVER: &str = "Google Cloud Secret Manager";
const LATEST: &str = "latest";

/// Secret Manager, accessed with the application default credentials.
pub(super) struct Gcp {
    context: ProviderContext,
    connection: Kept<Connection>,
}

struct Connection {
    client: Client,
    endpoint: Url,
    identity: GcpIdentity,
}

impl Gcp {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { context: context.clone(), connection: Kept::new() }
    }

    async fn access(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let connection = self.connection.get(async || self.connect().await).await?;
        let version = connection.version_name(reference).await?;
        let headers = connection.identity.headers().await?;
        let mut url = connection.endpoint.clone();
        url.path_segments_mut()
            .map_err(|()| bad_endpoint())?
            .pop_if_empty()
            .push("v1")
            .extend(format!("{version}:access").split('/'));
        let request = connection.client.get(url).headers(headers);
        let response = request.send().await.map_err(|error| http::no_answer(SERVER, &error))?;
        let status = response.status().as_u16();
        let body = http::json_body(SERVER, response).await?;
        if status == 200 { payload(&body) } else { Err(refusal(status, &body, &version)) }
    }

    async fn connect(&self) -> Result<Connection, ProviderFailure> {
        let endpoint = self.context.settings.gcp.endpoint.as_deref().unwrap_or(ENDPOINT);
        let endpoint = Url::parse(endpoint).map_err(|_| bad_endpoint())?;
        let client = http::client(|builder| builder)?;
        let identity = GcpIdentity::load(&self.context).await?;
        Ok(Connection { client, endpoint, identity })
    }
}

impl Connection {
    /// Returns the resource name `projects/P/secrets/S/versions/V`.
    async fn version_name(&self, reference: &SecretRef) -> Result<String, ProviderFailure> {
        let name = reference.name();
        let version = reference.selector().unwrap_or(LATEST);
        if name.contains("/versions/") {
            return Ok(name.to_owned());
        }
        if name.starts_with("projects/") {
            return Ok(format!("{name}/versions/{version}"));
        }
        let project = self.identity.project().await?;
        Ok(format!("projects/{project}/secrets/{name}/versions/{version}"))
    }
}

#[async_trait]
impl Fetch for Gcp {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let value = self.access(reference).await;
        self.connection.check(&value).await;
        value
    }
}

/// Decodes the value in a response and verifies its checksum.
fn payload(body: &Value) -> Result<SecretString, ProviderFailure> {
    let damaged = || {
        let cause = "the received value is corrupted";
        ProviderFailure::new(ResolveErrorKind::Unreachable, cause)
    };
    if !body.is_object() {
        let cause = format!("{SERVER} returned an invalid response");
        return Err(ProviderFailure::new(ResolveErrorKind::Unreachable, cause)
            .hint("check `secrets.gcp.endpoint` and the proxy settings"));
    }
    let payload = &body["payload"];
    // Proto3 JSON omits an empty value.
    let data = payload["data"].as_str().unwrap_or_default();
    let mut data = Zeroizing::new(STANDARD.decode(data).map_err(|_| damaged())?);
    // An int64, so a string in JSON.
    if let Some(sum) = payload["dataCrc32c"].as_str() {
        let actual = Crc::<u32>::new(&CRC_32_ISCSI).checksum(&data);
        if sum.parse() != Ok(i64::from(actual)) {
            return Err(damaged());
        }
    }
    text::into_text(std::mem::take(&mut *data))
}

/// Converts an error response (`google.rpc.Status`).
fn refusal(status: u16, body: &Value, version: &str) -> ProviderFailure {
    use ResolveErrorKind as Kind;
    let code = body["error"]["status"].as_str().filter(|code| is_code(code));
    let returned = || {
        let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
        format!("{SERVER} returned HTTP {status}{code}")
    };
    match status {
        401 => ProviderFailure::new(Kind::Denied, "Google Cloud rejected the credentials")
            .hint("log in again with `gcloud auth application-default login`"),
        403 => ProviderFailure::new(Kind::Denied, format!("access to `{version}` denied")).hint(
            "grant the account the role `roles/secretmanager.secretAccessor`, and enable the \
             Secret Manager API in the project",
        ),
        404 => ProviderFailure::new(Kind::NotFound, format!("`{version}` not found"))
            .hint("run `gcloud secrets list` to list the secrets"),
        400 if code == Some("FAILED_PRECONDITION") => {
            ProviderFailure::new(Kind::NotFound, format!("`{version}` is disabled or destroyed"))
        }
        429 | 500..=599 => ProviderFailure::new(Kind::Unreachable, returned()),
        _ => ProviderFailure::new(Kind::Failed, returned()),
    }
}

/// Whether a text is a code such as `NOT_FOUND`, and not a message that may echo the request.
fn is_code(text: &str) -> bool {
    text.len() <= 40 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

fn bad_endpoint() -> ProviderFailure {
    let cause = "`secrets.gcp.endpoint` is not a URL";
    ProviderFailure::new(ResolveErrorKind::NotConfigured, cause)
}
