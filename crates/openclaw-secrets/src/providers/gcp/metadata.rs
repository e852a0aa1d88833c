//! The metadata server of a Google Cloud machine, which provides its credentials and project.
//!
//! Not queried by `google-cloud-auth`, which would use the proxy of the environment. The address is
//! link-local: a proxy would return its own identity, or none.

use std::time::Duration;

use reqwest::Client;
use serde_json::Value;

use crate::{
    ResolveErrorKind, SecretString,
    providers::{ProviderContext, http},
    resolve_error::ProviderFailure,
};

/// An IP address: resolving `metadata.google.internal` can be slow where it does not exist.
const HOST: &str = "169.254.169.254";
/// The server is local. Outside Google Cloud nothing responds at that address, and a full timeout
/// would hide the real problem: that there are no credentials.
const PATIENCE: Duration = Duration::from_secs(3);
/// An access token has about 2000 bytes; everything else is shorter.
const MAX_BODY: usize = 64 * 1024;

const PROJECT: &str = "/computeMetadata/v1/project/project-id";
const TOKEN: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// A client for the metadata server, which may not exist.
pub(super) struct Metadata {
    client: Client,
    root: String,
}

impl Metadata {
    pub(super) fn new(context: &ProviderContext) -> Result<Self, ProviderFailure> {
        let host = context.environment.get_set("GCE_METADATA_HOST");
        let root = format!("http://{}", host.as_deref().unwrap_or(HOST));
        Ok(Self { client: http::client(reqwest::ClientBuilder::no_proxy)?, root })
    }

    /// Whether this is a Google Cloud machine.
    pub(super) async fn is_there(&self) -> bool {
        self.ask("").await.is_some()
    }

    pub(super) async fn project(&self) -> Option<String> {
        let project = self.ask(PROJECT).await?;
        Some(String::from_utf8_lossy(&project).trim().to_owned())
    }

    /// Fetches an access token. The server caches it until shortly before it expires.
    pub(super) async fn token(&self) -> Result<SecretString, ProviderFailure> {
        let answer = self.ask(TOKEN).await.unwrap_or_default();
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let token = answer["access_token"].as_str().filter(|token| !token.is_empty());
        token.map(SecretString::from).ok_or_else(|| {
            let cause = "the Google Cloud metadata server returned no access token";
            ProviderFailure::new(ResolveErrorKind::Unreachable, cause)
                .hint("check that the machine has a service account")
        })
    }

    /// Fetches a path. `None` if there is no metadata server, or something else responds.
    async fn ask(&self, path: &str) -> Option<zeroize::Zeroizing<Vec<u8>>> {
        let request = self.client.get(format!("{}{path}", self.root));
        let request = request.header("Metadata-Flavor", "Google").timeout(PATIENCE);
        let response = request.send().await.ok()?;
        let is_google = response.headers().get("Metadata-Flavor").is_some_and(|v| v == "Google");
        if !is_google || !response.status().is_success() {
            return None;
        }
        http::body("the metadata server", response, MAX_BODY).await.ok()
    }
}
