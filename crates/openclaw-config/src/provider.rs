//! A validated model provider.

use std::collections::BTreeMap;

use openclaw_secrets::SecretTemplate;

use crate::raw::ModelApi;
use crate::safe_url::SafeUrl;

/// A model provider. Two are equal if they behave the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The API it offers.
    pub api: ModelApi,
    /// The base URL of its API; `None` for the default.
    pub base_url: Option<SafeUrl>,
    /// The API key.
    pub api_key: Option<SecretTemplate>,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, SecretTemplate>,
}

impl ProviderConfig {
    /// Returns the built-in provider with this id, which needs no entry in the file.
    pub fn built_in(id: &str) -> Option<Self> {
        let api = ModelApi::of_provider(id)?;
        Some(Self { api, base_url: None, api_key: None, headers: BTreeMap::new() })
    }

    /// Returns every value that may contain a credential, with the name of its setting.
    pub fn credentials(&self) -> Vec<(String, &SecretTemplate)> {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (format!("headers.{name}"), value));
        self.api_key.iter().map(|value| ("apiKey".to_owned(), value)).chain(headers).collect()
    }
}

impl ModelApi {
    /// Returns the API of the built-in provider with this id.
    pub fn of_provider(id: &str) -> Option<Self> {
        Some(match id {
            "anthropic" => Self::Anthropic,
            "openai" => Self::OpenAi,
            "gemini" | "google" => Self::Gemini,
            "ollama" => Self::Ollama,
            _ => return None,
        })
    }
}
