//! Requests to a collector.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Certificate, Client, ClientBuilder, StatusCode};
use tokio::runtime::Runtime;
use url::Url;

use super::settings::Settings;

/// Maximum number of bytes of a response that are read, so that the connection can be reused.
const MAX_RESPONSE: usize = 16 * 1024;

/// A collector. It has a runtime of its own: that of the program may be busy, or gone.
pub(super) struct Collector {
    runtime: Runtime,
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    compresses: bool,
}

/// Why a batch was not sent.
#[derive(Debug)]
pub(super) enum SendError {
    /// There was no response.
    Unreachable(String),
    /// The collector has refused it.
    Refused { status: StatusCode, after: Option<Duration> },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(cause) => write!(f, "{cause}"),
            Self::Refused { status, .. } => write!(f, "HTTP {}", status.as_u16()),
        }
    }
}

impl SendError {
    /// Whether the batch may be sent again, and after which delay if the collector names one.
    pub(super) fn retry_after(&self) -> Option<Option<Duration>> {
        match self {
            Self::Unreachable(_) => None,
            Self::Refused { status, after } => {
                matches!(status.as_u16(), 429 | 502 | 503 | 504).then_some(*after)
            }
        }
    }
}

impl Collector {
    /// Prepares requests.
    ///
    /// # Errors
    /// If there can be none, with the cause.
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let builder = || Self::builder(settings.timeout);
        // A system without certificates is usual in containers.
        let bundled = || {
            let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
            all.filter_map(|der| Certificate::from_der(der).ok())
        };
        let client = builder().build().or_else(|_| builder().tls_certs_only(bundled()).build());
        let client = client.map_err(|_| "cannot initialize TLS".to_owned())?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let parsed = name.parse::<HeaderName>().ok();
            let value = HeaderValue::from_str(value.expose()).ok();
            let (Some(name), Some(mut value)) = (parsed, value) else {
                return Err(format!("invalid header `{name}` in OTEL_EXPORTER_OTLP_HEADERS"));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if settings.compresses {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let (endpoint, compresses) = (settings.endpoint.clone(), settings.compresses);
        Ok(Self { runtime, client, endpoint, headers, compresses })
    }

    fn builder(timeout: Duration) -> ClientBuilder {
        Client::builder()
            .timeout(timeout)
            .user_agent(concat!("openclaw/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(1)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If it is not accepted.
    pub(super) fn send(&mut self, body: Vec<u8>) -> Result<(), SendError> {
        let body = if self.compresses { compressed(&body) } else { body };
        let request = self.client.post(self.endpoint.clone());
        let request = request.headers(self.headers.clone()).body(body);
        self.runtime.block_on(async {
            let response = request.send().await;
            // Without the URL, which may contain a password.
            let mut response = response
                .map_err(|error| SendError::Unreachable(root_cause(&error.without_url())))?;
            let status = response.status();
            if !status.is_success() {
                let after = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
                let after = after.and_then(|it| it.trim().parse().ok()).map(Duration::from_secs);
                return Err(SendError::Refused { status, after });
            }
            let mut read = 0;
            while read < MAX_RESPONSE
                && let Ok(Some(chunk)) = response.chunk().await
            {
                read += chunk.len();
            }
            Ok(())
        })
    }
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

/// The last one of a chain of errors, which says most.
fn root_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.last().unwrap_or(error).to_string()
}
