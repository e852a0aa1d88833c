//! What the providers that speak HTTP have in common.

use std::sync::{Mutex, PoisonError};

use reqwest::{Client, ClientBuilder, Response, redirect};
use zeroize::Zeroizing;

use crate::{Redactor, ResolveErrorKind, SecretString, resolve_error::Failure};

/// No answer that holds a secret is larger: the value's own limit, encoded, and something around it.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// How often a request may be sent on to another place.
const MAX_REDIRECTS: usize = 3;

/// A client to which the caller adds what is special about its server.
pub(super) fn client(
    adjust: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, Failure> {
    // The credential travels along (in a header that `reqwest` does not know to be one), so never
    // from an encrypted connection to an open one.
    let policy = redirect::Policy::custom(|attempt| {
        let was_encrypted = attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if was_encrypted && attempt.url().scheme() != "https" {
            attempt.error("a redirect to a connection that is not encrypted")
        } else {
            attempt.follow()
        }
    });
    let builder = Client::builder().redirect(policy).tcp_nodelay(true).no_gzip();
    adjust(builder).build().map_err(|error| {
        let cause = format!("no HTTPS client can be made: {}", innermost(&error));
        Failure::new(ResolveErrorKind::NotConfigured, cause)
            .hint("install the `ca-certificates` package of the system")
    })
}

/// Why a request got no answer.
pub(super) fn no_answer(server: &str, error: &reqwest::Error) -> Failure {
    let cause = format!("{server} cannot be reached: {}", innermost(error));
    Failure::new(ResolveErrorKind::Unreachable, cause)
        .hint("check the address, the network, and the proxy settings")
}

/// The body of an answer, as JSON; `Null` if it is something else.
pub(super) async fn json_body(
    server: &str,
    response: Response,
) -> Result<serde_json::Value, Failure> {
    let body = body(server, response, MAX_BODY).await?;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

/// The body of an answer that has at most `max` bytes.
pub(super) async fn body(
    server: &str,
    mut response: Response,
    max: usize,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(server, &error))? {
        if body.len() + chunk.len() > max {
            let cause = format!("the answer of {server} is too large");
            return Err(Failure::new(ResolveErrorKind::Failed, cause));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The last error of a chain: `connection refused`, rather than `error sending request`.
fn innermost(error: &reqwest::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The credential that a provider uses at present. The redactor knows it for as long.
pub(super) struct Credential {
    redactor: Redactor,
    value: Mutex<Option<SecretString>>,
}

impl Credential {
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
