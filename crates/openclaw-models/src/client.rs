//! The HTTP client for models.

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder};

use crate::error::ModelError;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection that is silent for this long is probed. A model that thinks may send nothing for
/// minutes, so a read timeout would have to be long.
const SILENCE: Duration = Duration::from_secs(20);
/// The interval between the probes.
const PROBE: Duration = Duration::from_secs(5);
/// After this many unanswered probes, the connection is lost.
const PROBES: u32 = 3;

/// Returns a client for [`open`](crate::open). Connections are pooled, have a connect timeout of ten
/// seconds, and are not compressed. Redirects are not followed, as they would leak the key. If the
/// system has no certificates, bundled ones are used.
///
/// # Errors
/// If the TLS backend cannot be initialized.
pub fn http_client() -> Result<Client, ModelError> {
    let bundled = || {
        let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        all.filter_map(|der| Certificate::from_der(der).ok())
    };
    let built = builder().build().or_else(|_| builder().tls_certs_only(bundled()).build());
    built.map_err(|_| ModelError::invalid("cannot initialize TLS for model requests"))
}

fn builder() -> ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .tcp_keepalive(SILENCE)
        .tcp_keepalive_interval(PROBE)
        .tcp_keepalive_retries(PROBES)
        .no_gzip()
}
