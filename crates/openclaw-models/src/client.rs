//! The HTTP client that models expect.

use std::time::Duration;

use crate::error::ModelError;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A client for [`open`](crate::open), for those who have none: connections are kept, must come about
/// within ten seconds, and carry nothing packed; redirects are not followed, as the key would go along.
///
/// # Errors
/// If the system has no certificates.
pub fn http_client() -> Result<reqwest::Client, ModelError> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .no_gzip()
        .build()
        .map_err(|_| {
            let words = "no HTTPS client can be made: install the `ca-certificates` package";
            ModelError::invalid(words)
        })
}
