//! Converts failed requests to [`ModelError`].

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use openclaw_secrets::Redactor;
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::classify::{ProviderReport, classify};
use crate::error::ModelError;
use crate::model::ToolOffer;

/// The longest message of a provider that is passed on, in characters.
const MAX_MESSAGE: usize = 300;
/// The longest error body that is read, in bytes.
const MAX_BODY: usize = 64 << 10;

/// The context of a request, for error messages.
pub(super) struct Explain {
    pub(super) provider: String,
    /// The model's whole name.
    pub(super) model: String,
    pub(super) redactor: Redactor,
    pub(super) tools: Vec<Arc<ToolOffer>>,
    pub(super) silence: Duration,
}

impl Explain {
    /// Classifies a response with an error status.
    pub(super) async fn status(&self, mut response: Response) -> ModelError {
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_BODY {
                    break;
                }
            }
        };
        // If the body cannot be read, the status alone decides.
        let _ = tokio::time::timeout(self.silence, read).await;
        let words = || Value::from(String::from_utf8_lossy(&body));
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| words());
        let mut report = ProviderReport::read(&body);
        report.status = Some(response.status().as_u16());
        // A page of a proxy is not a message.
        if body.as_str().is_some_and(|text| text.trim_start().starts_with('<')) {
            report.message = format!("HTTP {}", response.status().as_u16());
        }
        report.retry_after = retry_after(response.headers()).or(report.retry_after);
        classify(self, &report)
    }

    /// Classifies an error that the provider sent in the stream.
    pub(super) fn sent(&self, body: &Value) -> ModelError {
        classify(self, &ProviderReport::read(body))
    }

    /// Classifies a failed connection.
    pub(super) fn transport(&self, error: &reqwest::Error) -> ModelError {
        if error.is_builder() {
            return ModelError::invalid("the request cannot be built: check `headers`");
        }
        if error.is_body() || error.is_decode() {
            return ModelError::Interrupted;
        }
        // The message of the error itself contains the URL, which may be secret; that of its cause
        // does not.
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let reason = match causes.last() {
            _ if error.is_timeout() => "timed out".to_owned(),
            Some(cause) => self.short(&cause.to_string()),
            None => "the connection failed".to_owned(),
        };
        ModelError::Unreachable { provider: self.provider.clone(), reason }
    }

    /// Returns the error for a response that is not JSON.
    pub(super) fn unreadable(&self) -> ModelError {
        let provider = &self.provider;
        ModelError::invalid(format!(
            "cannot parse the response of the model provider `{provider}`: check `baseUrl` and `api`"
        ))
    }

    /// Redacts a provider's message, joins its lines and truncates it.
    pub(super) fn short(&self, words: &str) -> String {
        let words = without_escapes(words);
        let words = self.redactor.redact(&words);
        let line = words.split(|c: char| c.is_whitespace() || c.is_control());
        let mut line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(MAX_MESSAGE) {
            line.truncate(end);
            line.push('…');
        }
        line
    }
}

/// Removes terminal escape sequences: `ESC [`, parameters and a final character.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.trim_start_matches(|c: char| matches!(c, ' '..='?'));
        plain.push_str(end.strip_prefix(|c: char| matches!(c, '@'..='~')).unwrap_or(end));
    }
    plain
}

/// Parses the wait that the provider requests: in milliseconds, in seconds, or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let exact = value("retry-after-ms").and_then(number).map(|number| number / 1_000.0);
    let seconds = exact.or_else(|| value(RETRY_AFTER.as_str()).and_then(number));
    if let Some(seconds) = seconds {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value(RETRY_AFTER.as_str())?).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed_as_a_whole() {
        assert_eq!(without_escapes("a \u{1b}[1;31mred\u{1b}[0m b\u{1b}[?25l"), "a red b");
        assert_eq!(without_escapes("plain [31m"), "plain [31m");
    }

    #[test]
    fn waits_are_parsed_in_every_form() {
        let wait = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(
                reqwest::header::HeaderName::from_static(name),
                value.parse().unwrap(),
            )]);
            retry_after(&headers)
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("retry-after", "-1"), None);
        assert_eq!(wait("retry-after", "soon"), None);
        let later = SystemTime::now() + Duration::from_secs(3_600);
        let wait = wait("retry-after", &httpdate::fmt_http_date(later)).unwrap();
        assert!(wait > Duration::from_secs(60), "{wait:?}");
    }
}
