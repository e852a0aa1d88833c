//! The URL and the headers of requests.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::anthropic;
use crate::error::ModelError;
use crate::settings::{ApiKind, ProviderSettings};

/// Returns the URL for requests to a model.
///
/// # Errors
/// If the configured URL is invalid.
pub(super) fn address(settings: &ProviderSettings, model: &str) -> Result<Url, ModelError> {
    let base = base(settings)?;
    let mut address = match settings.kind {
        ApiKind::Anthropic => base.join("messages"),
        ApiKind::OpenAi => base.join("chat/completions"),
        ApiKind::OpenAiResponses => base.join("responses"),
        ApiKind::Ollama => base.join("api/chat"),
        ApiKind::Gemini => {
            // Tuned models are not under `models`.
            let folder = if model.contains('/') { "" } else { "models/" };
            base.join(&format!("{folder}{model}:streamGenerateContent"))
        }
    }
    .map_err(|_| wrong(settings, "cannot be used as a base URL"))?;
    // A query such as `api-version=…` applies to every request.
    address.set_query(base.query());
    if settings.kind == ApiKind::Gemini {
        address.query_pairs_mut().append_pair("alt", "sse");
    }
    Ok(address)
}

/// Returns the headers of a request. This is the only place where keys are exposed.
///
/// # Errors
/// If a header or the key contains a character that is not allowed in headers.
pub(super) fn headers(settings: &ProviderSettings) -> Result<HeaderMap, ModelError> {
    let id = &settings.id;
    let mut headers = HeaderMap::new();
    if settings.kind == ApiKind::Anthropic {
        let version = HeaderValue::from_static(anthropic::VERSION);
        headers.insert("anthropic-version", version);
    }
    if let Some(key) = settings.api_key.as_ref().filter(|key| !key.is_empty()) {
        let key = key.expose();
        let (name, value) = match settings.kind {
            ApiKind::Anthropic => (HeaderName::from_static("x-api-key"), secret(key)),
            ApiKind::Gemini => (HeaderName::from_static("x-goog-api-key"), secret(key)),
            _ => (AUTHORIZATION, secret(&format!("Bearer {key}"))),
        };
        let words = "contains an invalid character, such as a line break";
        let wrong =
            || ModelError::invalid(format!("the API key of the model provider `{id}` {words}"));
        headers.insert(name, value.ok_or_else(wrong)?);
    }
    // Inserted last: they override the headers above.
    for (name, value) in &settings.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let Some((header, value)) = header.zip(secret(value.expose())) else {
            let words = "is not a valid header: its name or value contains an invalid character";
            let setting = format!("`models.providers.{id}.headers`: `{name}`");
            return Err(ModelError::invalid(format!("{setting} {words}")));
        };
        headers.insert(header, value);
    }
    Ok(headers)
}

/// Returns a header value that is redacted in debug output.
fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the base URL, with the default path if it has none, and a trailing slash.
fn base(settings: &ProviderSettings) -> Result<Url, ModelError> {
    let usual = match settings.kind {
        ApiKind::Anthropic => "https://api.anthropic.com/v1/",
        ApiKind::OpenAi | ApiKind::OpenAiResponses => "https://api.openai.com/v1/",
        ApiKind::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        ApiKind::Ollama => "http://localhost:11434/",
    };
    let written = settings.base_url.as_deref().unwrap_or(usual);
    let mut base = Url::parse(written).map_err(|_| wrong(settings, "is not a valid URL"))?;
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return Err(wrong(settings, "must start with http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong(settings, "contains credentials; set them in `headers`"));
    }
    let mut path = base.path().trim_end_matches('/').to_owned();
    match settings.kind {
        // Often the URL of its OpenAI-compatible API is given.
        ApiKind::Ollama => path.truncate(path.strip_suffix("/v1").map_or(path.len(), str::len)),
        ApiKind::Gemini if path.is_empty() => path.push_str("/v1beta"),
        _ if path.is_empty() => path.push_str("/v1"),
        _ => {}
    }
    path.push('/');
    base.set_path(&path);
    base.set_fragment(None);
    Ok(base)
}

fn wrong(settings: &ProviderSettings, what: &str) -> ModelError {
    ModelError::invalid(format!("`models.providers.{}.baseUrl` {what}", settings.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: ApiKind, base: Option<&str>, model: &str) -> String {
        let mut settings = ProviderSettings::new("x", kind);
        settings.base_url = base.map(str::to_owned);
        match address(&settings, model) {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn base_urls_are_accepted_in_all_usual_forms() {
        use ApiKind::{Anthropic, Gemini, Ollama, OpenAi, OpenAiResponses};
        for (kind, base, expected) in [
            (Anthropic, None, "https://api.anthropic.com/v1/messages"),
            (Anthropic, Some("https://a.example"), "https://a.example/v1/messages"),
            (OpenAi, Some("http://h:1/v1"), "http://h:1/v1/chat/completions"),
            (OpenAi, Some("http://h:1/v1/"), "http://h:1/v1/chat/completions"),
            (OpenAi, Some("http://h:1"), "http://h:1/v1/chat/completions"),
            (OpenAi, Some("http://h/a?v=2"), "http://h/a/chat/completions?v=2"),
            (OpenAiResponses, None, "https://api.openai.com/v1/responses"),
            (Ollama, Some("http://h:1/v1"), "http://h:1/api/chat"),
            (Ollama, Some("http://h:1"), "http://h:1/api/chat"),
            (
                Gemini,
                Some("http://h"),
                "http://h/v1beta/models/m-high:streamGenerateContent?alt=sse",
            ),
            (
                OpenAi,
                Some("http://me:secret@h"),
                "`models.providers.x.baseUrl` contains credentials; set them in `headers`",
            ),
            (OpenAi, Some("h"), "`models.providers.x.baseUrl` is not a valid URL"),
            (
                OpenAi,
                Some("file:///h"),
                "`models.providers.x.baseUrl` must start with http:// or https://",
            ),
        ] {
            assert_eq!(written(kind, base, "m-high"), expected);
        }
    }
}
