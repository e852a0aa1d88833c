//! Where requests go, and the headers that open the door.

use genai::adapter::AdapterKind;
use genai::resolver::AuthData;
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::request::plain_name;
use crate::error::ModelError;
use crate::settings::{ApiKind, ProviderSettings};

/// The version of Anthropic's API that `genai` speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Where requests for one model go.
pub(super) struct Endpoint {
    base: Url,
    address: Url,
}

impl Endpoint {
    /// # Errors
    /// If the address or a header makes no sense.
    pub(super) fn new(settings: &ProviderSettings, model: &str) -> Result<Self, ModelError> {
        check_headers(settings)?;
        let base = base(settings)?;
        let mut address = match settings.kind {
            ApiKind::Anthropic => base.join("messages"),
            ApiKind::OpenAi => base.join("chat/completions"),
            ApiKind::OpenAiResponses => base.join("responses"),
            ApiKind::Ollama => base.join("api/chat"),
            ApiKind::Gemini => {
                // Tuned models stand beside `models`.
                let folder = if model.contains('/') { "" } else { "models/" };
                base.join(&format!("{folder}{model}:streamGenerateContent"))
            }
        }
        .map_err(|_| wrong(settings, "is no address that can be added to"))?;
        // `api-version=…` and the like belong to every request.
        address.set_query(base.query());
        if settings.kind == ApiKind::Gemini {
            address.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(Self { base, address })
    }

    /// Where to, and as whom. This is where keys become headers.
    pub(super) fn target(&self, settings: &ProviderSettings, model: &str) -> ServiceTarget {
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| headers.push((name.to_owned(), value));
        if settings.kind == ApiKind::Anthropic {
            set("anthropic-version", ANTHROPIC_VERSION.to_owned());
        }
        if let Some(key) = settings.api_key.as_ref().filter(|key| !key.is_empty()) {
            match settings.kind {
                ApiKind::Anthropic => set("x-api-key", key.expose().to_owned()),
                ApiKind::Gemini => set("x-goog-api-key", key.expose().to_owned()),
                _ => set("authorization", format!("Bearer {}", key.expose())),
            }
        }
        // The last of a name counts, and these are the last.
        for (name, value) in &settings.headers {
            set(&name.to_ascii_lowercase(), value.expose().to_owned());
        }
        let adapter = match settings.kind {
            ApiKind::Anthropic => AdapterKind::Anthropic,
            ApiKind::OpenAi => AdapterKind::OpenAI,
            ApiKind::OpenAiResponses => AdapterKind::OpenAIResp,
            ApiKind::Gemini => AdapterKind::Gemini,
            ApiKind::Ollama => AdapterKind::Ollama,
        };
        let headers = Headers::from(headers);
        ServiceTarget {
            endpoint: genai::resolver::Endpoint::from_owned(self.base.as_str()),
            auth: AuthData::RequestOverride { url: self.address.to_string(), headers },
            model: ModelIden::new(adapter, plain_name(settings.kind, model)),
        }
    }
}

/// The address, with the usual path where there is none, and a slash at the end.
fn base(settings: &ProviderSettings) -> Result<Url, ModelError> {
    let usual = match settings.kind {
        ApiKind::Anthropic => "https://api.anthropic.com/v1/",
        ApiKind::OpenAi | ApiKind::OpenAiResponses => "https://api.openai.com/v1/",
        ApiKind::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        ApiKind::Ollama => "http://localhost:11434/",
    };
    let written = settings.base_url.as_deref().unwrap_or(usual);
    let mut base = Url::parse(written).map_err(|_| wrong(settings, "is no address"))?;
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return Err(wrong(settings, "does not begin with http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong(settings, "holds a password; it belongs into `headers`"));
    }
    let mut path = base.path().trim_end_matches('/').to_owned();
    match settings.kind {
        // Its address is often given as that of its other API.
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

fn check_headers(settings: &ProviderSettings) -> Result<(), ModelError> {
    let id = &settings.id;
    for (name, value) in &settings.headers {
        if HeaderName::from_bytes(name.as_bytes()).is_err()
            || HeaderValue::from_str(value.expose()).is_err()
        {
            let words = "cannot be a header: a character in it is not allowed";
            return Err(ModelError::invalid(format!(
                "`models.providers.{id}.headers`: `{name}` {words}"
            )));
        }
    }
    let key = settings.api_key.as_ref().map(|key| HeaderValue::from_str(key.expose()));
    match key {
        Some(Err(_)) => Err(ModelError::invalid(format!(
            "`models.providers.{id}.apiKey` holds a character that no key has, such as a line break"
        ))),
        _ => Ok(()),
    }
}

fn wrong(settings: &ProviderSettings, what: &str) -> ModelError {
    ModelError::invalid(format!("`models.providers.{}.baseUrl` {what}", settings.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(kind: ApiKind, base: Option<&str>, model: &str) -> String {
        let mut settings = ProviderSettings::new("x", kind);
        settings.base_url = base.map(str::to_owned);
        match Endpoint::new(&settings, model) {
            Ok(endpoint) => endpoint.address.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_are_taken_as_people_write_them() {
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
                "`models.providers.x.baseUrl` holds a password; it belongs into `headers`",
            ),
            (OpenAi, Some("h"), "`models.providers.x.baseUrl` is no address"),
            (
                OpenAi,
                Some("file:///h"),
                "`models.providers.x.baseUrl` does not begin with http:// or https://",
            ),
        ] {
            assert_eq!(address(kind, base, "m-high"), expected);
        }
    }
}
