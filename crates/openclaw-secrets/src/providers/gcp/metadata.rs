//! The metadata server of a Google Cloud machine: its credentials, and its project.
//!
//! Asked by us and not by `google-cloud-auth`, which would go through the proxy of the environment.
//! The address is that of whoever asks: a proxy would answer with its own identity, or not at all.

use std::time::Duration;

use reqwest::Client;
use serde_json::Value;

use crate::{
    ResolveErrorKind, SecretString,
    providers::{Context, http},
    resolve_error::Failure,
};

/// By address: looking up `metadata.google.internal` can take long where it does not exist.
const HOST: &str = "169.254.169.254";
/// It is next door. Elsewhere nobody answers at that address, and waiting for the time-out would hide
/// the real problem: that there are no credentials.
const PATIENCE: Duration = Duration::from_secs(3);
/// An access token has two thousand bytes; everything else is shorter.
const MAX_BODY: usize = 64 * 1024;

const PROJECT: &str = "/computeMetadata/v1/project/project-id";
const TOKEN: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// The way to the metadata server, if there is one.
pub(super) struct Metadata {
    client: Client,
    root: String,
}

impl Metadata {
    pub(super) fn new(context: &Context) -> Result<Self, Failure> {
        let host = context.environment.get_set("GCE_METADATA_HOST");
        let root = format!("http://{}", host.as_deref().unwrap_or(HOST));
        Ok(Self { client: http::client(reqwest::ClientBuilder::no_proxy)?, root })
    }

    /// Whether we are on a machine of Google's.
    pub(super) async fn is_there(&self) -> bool {
        self.ask("").await.is_some()
    }

    pub(super) async fn project(&self) -> Option<String> {
        let project = self.ask(PROJECT).await?;
        Some(String::from_utf8_lossy(&project).trim().to_owned())
    }

    /// An access token. The server keeps it until it nears its end, so we need not.
    pub(super) async fn token(&self) -> Result<SecretString, Failure> {
        let answer = self.ask(TOKEN).await.unwrap_or_default();
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let token = answer["access_token"].as_str().filter(|token| !token.is_empty());
        token.map(SecretString::from).ok_or_else(|| {
            let cause = "the metadata server of Google Cloud gave no access token";
            Failure::new(ResolveErrorKind::Unreachable, cause)
                .hint("check that the machine has a service account")
        })
    }

    /// What the server says to a path; nothing if there is none, or something else answers.
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
