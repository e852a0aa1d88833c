//! Helpers shared by the HTTP providers.

use std::sync::{Mutex, PoisonError};

use reqwest::{Client, ClientBuilder, Response, redirect};
use zeroize::Zeroizing;

use crate::{Redactor, ResolveErrorKind, SecretString, resolve_error::ProviderFailure};

/// The maximum size of a response: the size limit of a secret, encoded, plus overhead.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 3;

/// Creates a client; `adjust` sets what is specific to the server.
pub(super) fn client(
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, ProviderFailure> {
    // The credential is sent along (in a header that `reqwest` does not treat as sensitive), so
    // never redirect from an encrypted to an unencrypted connection.
    let policy = redirect::Policy::custom(|attempt| {
        let was_encrypted = attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if was_encrypted && attempt.url().scheme() != "https" {
            attempt.error("redirect to an unencrypted connection")
        } else {
            attempt.follow()
        }
    });
    let builder = Client::builder().redirect(policy).tcp_nodelay(true).no_gzip();
    adjust(builder).build().map_err(|error| {
        let cause = format!("cannot create an HTTPS client: {}", innermost(&error));
        ProviderFailure::new(ResolveErrorKind::NotConfigured, cause)
            .hint("install the system's `ca-certificates` package")
    })
}

/// The failure of a request without a response.
pub(super) fn no_answer(server: &str, error: &reqwest::Error) -> ProviderFailure {
    let cause = format!("cannot reach {server}: {}", innermost(error));
    ProviderFailure::new(ResolveErrorKind::Unreachable, cause)
        .hint("check the URL, the network and the proxy settings")
}

/// Reads the body of a response as JSON; `Null` if it is not JSON.
pub(super) async fn json_body(
    server: &str,
    response: Response,
) -> Result<serde_json::Value, ProviderFailure> {
    let body = body(server, response, MAX_BODY).await?;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

/// Reads the body of a response, up to `max` bytes.
pub(super) async fn body(
    server: &str,
    mut response: Response,
    max: usize,
) -> Result<Zeroizing<Vec<u8>>, ProviderFailure> {
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(server, &error))? {
        if body.len() + chunk.len() > max {
            let cause = format!("the response of {server} is too large");
            return Err(ProviderFailure::new(ResolveErrorKind::Failed, cause));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the last error of a chain: `connection refused` rather than `error sending request`.
fn innermost(error: &reqwest::Error) -> String {
    let error: &dyn std::error::Error = error;
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.last().unwrap_or(error).to_string()
}

/// The current credential of a provider. It is redacted as long as it is in use.
pub(super) struct ProviderCredential {
    redactor: Redactor,
    value: Mutex<Option<SecretString>>,
}

impl ProviderCredential {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, value: Mutex::new(None) }
    }

    #[cfg(feature = "vault")]
    pub(super) fn get(&self) -> Option<SecretString> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, new: SecretString) {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if value.as_ref() != Some(&new) {
            self.redactor.add(&new);
            if let Some(old) = value.replace(new) {
                self.redactor.forget(&old);
            }
        }
    }
}
