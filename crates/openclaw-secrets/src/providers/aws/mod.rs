//! `secret://aws/NAME[#VERSION]`: AWS Secrets Manager, with the standard credential chain.
//!
//! `VERSION` is a staging label (`AWSPREVIOUS`) or a version id (a UUID).

mod chain;
#[cfg(test)]
mod chain_tests;
mod endpoint;
mod failure;
mod host;
mod process;
mod profiles;
#[cfg(test)]
mod profiles_tests;

use std::time::Duration;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::Request;
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::{Signer, hash::hex_sha256};
use reqwest::Client;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use self::{chain::Chain, endpoint::AwsEndpoint, profiles::Profiles};
use super::{Fetch, ProviderContext, http as web, kept::Kept, text};
use crate::{ResolveErrorKind, SecretRef, SecretString, resolve_error::ProviderFailure};

const SERVER: &str = "AWS Secrets Manager";
const SERVICE: &str = "secretsmanager";

/// The number of attempts while the service is unavailable, and the first pause between two.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// AWS Secrets Manager.
pub(super) struct Aws {
    context: ProviderContext,
    connection: Kept<Connection>,
}

struct Connection {
    client: Client,
    host: reqsign_core::Context,
    /// Caches the credentials and renews them before they expire.
    signer: Signer<Credential>,
    endpoint: AwsEndpoint,
}

impl Aws {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { context: context.clone(), connection: Kept::new() }
    }

    async fn get(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let connection = self.connection.get(async || self.connect().await).await?;
        let name = reference.name();
        let region = connection.endpoint.region_for(name, &connection.host).await?;
        let endpoint = connection.endpoint.endpoint(&region)?;
        let mut question = json!({ "SecretId": name });
        match reference.selector() {
            Some(version) if is_uuid(version) => question["VersionId"] = version.into(),
            Some(version) => question["VersionStage"] = version.into(),
            None => {}
        }
        let body = Bytes::from(question.to_string());
        let mut attempt = 1;
        loop {
            let answer = connection.ask(&endpoint, &region, body.clone(), name).await;
            let again =
                answer.as_ref().is_err_and(|failure| failure.kind == ResolveErrorKind::Unreachable);
            if !again || attempt == ATTEMPTS {
                return answer;
            }
            tokio::time::sleep(PAUSE * attempt).await;
            attempt += 1;
        }
    }

    async fn connect(&self) -> Result<Connection, ProviderFailure> {
        let profiles = Profiles::load(&self.context).await;
        let endpoint = AwsEndpoint::new(&self.context, &profiles);
        let host = host::context(&self.context)?;
        let chain = Chain::new(&self.context, profiles, endpoint.region().map(str::to_owned));
        // The region depends on the secret and is set for each request.
        let signer = Signer::new(host.clone(), chain, RequestSigner::new(SERVICE, ""));
        Ok(Connection { client: host::client()?, host, signer, endpoint })
    }
}

impl Connection {
    async fn ask(
        &self,
        endpoint: &str,
        region: &str,
        body: Bytes,
        name: &str,
    ) -> Result<SecretString, ProviderFailure> {
        let request = Request::post(endpoint)
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", "secretsmanager.GetSecretValue")
            // Without it, the library signs `UNSIGNED-PAYLOAD`, which only S3 accepts.
            .header("x-amz-content-sha256", hex_sha256(&body))
            .body(body)
            .map_err(|_| failure::not_sent())?;
        let (mut parts, body) = request.into_parts();
        // A clone shares the credentials.
        let signer = self.signer.clone().with_request_signer(RequestSigner::new(SERVICE, region));
        signer.sign(&mut parts, None).await.map_err(|error| {
            tracing::debug!(kind = ?error.kind(), "AWS credentials not available");
            failure::no_credentials(&error)
        })?;
        let request = reqwest::Request::try_from(Request::from_parts(parts, body))
            .map_err(|_| failure::not_sent())?;
        let response =
            self.client.execute(request).await.map_err(|error| failure::no_answer(&error))?;
        let status = response.status();
        let header = response.headers().get("x-amzn-errortype").cloned();
        let answer = web::json_body(SERVER, response).await?;
        if status.is_success() {
            return value(answer);
        }
        let header = header.as_ref().and_then(|value| value.to_str().ok());
        let code = header.or(answer["__type"].as_str()).and_then(failure::code);
        Err(failure::refusal(status.as_u16(), code, name))
    }
}

#[async_trait]
impl Fetch for Aws {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let value = self.get(reference).await;
        self.connection.check(&value).await;
        value
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn value(mut answer: Value) -> Result<SecretString, ProviderFailure> {
    if !answer.is_object() {
        return Err(failure::unreachable_service("invalid response"));
    }
    match (answer["SecretString"].take(), answer["SecretBinary"].as_str()) {
        (Value::String(text), _) => Ok(SecretString::from(text)),
        (_, Some(encoded)) => {
            let decoded = STANDARD.decode(encoded);
            let not_understood = |_| failure::unreachable_service("invalid response");
            let mut bytes = Zeroizing::new(decoded.map_err(not_understood)?);
            text::into_text(std::mem::take(&mut *bytes))
        }
        _ => Err(ProviderFailure::new(ResolveErrorKind::Empty, "the secret is empty")),
    }
}
