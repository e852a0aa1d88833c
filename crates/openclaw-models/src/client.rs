//! The HTTP client that models expect.

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder};

use crate::error::ModelError;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A quiet connection is asked for a sign of life after so long, and has half of it to give one.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// A client for [`open`](crate::open), for those who have none: connections are kept, must come about
/// within ten seconds, and carry nothing packed; redirects are not followed, as the key would go along.
/// Where the system has no certificates, the bundled ones do.
///
/// # Errors
/// If there is no way to encrypt.
pub fn http_client() -> Result<Client, ModelError> {
    let bundled = || {
        let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        all.filter_map(|der| Certificate::from_der(der).ok())
    };
    let built = builder().build().or_else(|_| builder().tls_certs_only(bundled()).build());
    built.map_err(|_| ModelError::invalid("no client for encrypted connections can be made"))
}

fn builder() -> ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .http2_keep_alive_timeout(SIGN_OF_LIFE / 2)
        .no_gzip()
}
