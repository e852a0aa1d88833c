//! One provider of models, validated.

use std::collections::BTreeMap;

use openclaw_secrets::SecretTemplate;

use crate::raw::ModelApi;
use crate::server::SafeUrl;

/// A provider of models. Two are equal if they would behave the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Which API it speaks.
    pub api: ModelApi,
    /// The address of its API; none: the usual one.
    pub base_url: Option<SafeUrl>,
    /// The key.
    pub api_key: Option<SecretTemplate>,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretTemplate>,
}

impl ProviderConfig {
    /// What a provider is without an entry in the file, if one of that id is known.
    pub fn built_in(id: &str) -> Option<Self> {
        let api = ModelApi::of_provider(id)?;
        Some(Self { api, base_url: None, api_key: None, headers: BTreeMap::new() })
    }

    /// Every value that may hold a credential, with the name of its setting.
    pub fn credentials(&self) -> Vec<(String, &SecretTemplate)> {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (format!("headers.{name}"), value));
        self.api_key.iter().map(|value| ("apiKey".to_owned(), value)).chain(headers).collect()
    }
}

impl ModelApi {
    /// The API of a provider that is known by its id.
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
