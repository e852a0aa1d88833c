//! Builds the model providers.

use std::collections::{BTreeMap, BTreeSet};

use openclaw_secrets::SecretTemplate;
use serde_json::json;

use crate::credential::{
    address_credentials, is_credential_name, looks_like_credential, safe_address,
};
use crate::decode::{Field, Spanned, Table};
use crate::diagnostic::Diagnostic;
use crate::name::ProviderId;
use crate::provider::ProviderConfig;
use crate::raw::{ApiSetting, ModelApi, RawModels, RawProvider};
use crate::safe_url::SafeUrl;
use crate::setting::{Setting, SettingOrigin};
use crate::text::ConfigText;

use super::agents::no_effect;
use super::transport::is_header_name;
use super::values::{Builder, Unset};

/// The usable providers, and the ids of all providers in the file.
#[derive(Default)]
pub(super) struct Providers {
    pub(super) usable: BTreeMap<ProviderId, ProviderConfig>,
    pub(super) named: BTreeSet<String>,
}

impl Builder<'_> {
    pub(super) fn models(
        &mut self,
        models: Field<RawModels>,
        noted: &mut Vec<Setting>,
    ) -> Providers {
        let RawModels { providers } = models.map(|it| it.value).unwrap_or_default();
        let mut built = Providers::default();
        for (name, provider) in providers.map(|it| it.value.0).unwrap_or_default() {
            let place = Spanned { value: (), at: provider.at, path: provider.path.clone() };
            let config = self.provider(&name, provider, noted);
            built.named.insert(name.clone());
            match ProviderId::new(name) {
                Ok(id) => drop(config.map(|config| built.usable.insert(id, config))),
                Err(problem) => {
                    let message = format!("invalid model provider id: {problem}");
                    self.found.push(place.error(message, "invalid id").suggest(&problem));
                }
            }
        }
        built
    }

    /// Builds a provider. `None` if it cannot be used; that is reported.
    fn provider(
        &mut self,
        id: &str,
        provider: Spanned<RawProvider>,
        noted: &mut Vec<Setting>,
    ) -> Option<ProviderConfig> {
        let RawProvider { base_url, api_key, api, headers, models } = provider.value;
        if let Some(models) = models {
            self.found.push(no_effect(&models, "models"));
        }
        let key = |setting: &str| format!("models.providers.{id}.{setting}");
        let mut plaintext = None;
        let api = self.model_api(id, &api, &key("api"), noted);
        let base_url = base_url.and_then(|text| {
            let written = &text.value.0;
            self.note(noted, &key("baseUrl"), &text, json!(safe_address(written)));
            if address_credentials(written).next().is_some() {
                plaintext = Some(plaintext_warning(id, &text));
            }
            self.model_address(&text)
        });
        let api_key = api_key.and_then(|text| {
            let text = text.map(|text| text.0);
            let credential = self.noted_credential(&key("apiKey"), &text, noted)?;
            if credential.is_written_out {
                plaintext.get_or_insert_with(|| plaintext_warning(id, &text));
            }
            (!credential.is_empty).then_some(credential.value)
        });
        let headers = self.model_headers(id, headers, noted, &mut plaintext);
        self.found.extend(plaintext);
        Some(ProviderConfig { api: api?, base_url, api_key, headers })
    }

    fn model_api(
        &mut self,
        id: &str,
        api: &Field<ApiSetting>,
        key: &str,
        noted: &mut Vec<Setting>,
    ) -> Option<ModelApi> {
        let (api, origin) = match api {
            Some(field) => match field.value {
                ApiSetting::Known(api) => (api, self.origin(field)),
                ApiSetting::Foreign => {
                    let message =
                        format!("model provider `{id}` is ignored: its API is not supported");
                    let help = "supported: anthropic, openai, openai-responses, gemini and ollama";
                    self.found.push(field.warning(message, "Node OpenClaw only").help(help));
                    return None;
                }
            },
            None => match ModelApi::of_provider(id) {
                Some(api) => (api, SettingOrigin::Inferred { from: "the id" }),
                None => (ModelApi::OpenAi, SettingOrigin::Default),
            },
        };
        noted.push(Setting { key: key.to_owned(), value: json!(api.as_str()), origin });
        Some(api)
    }

    /// Parses the URL of a provider. Providers on the local network often have no certificate, so
    /// http is accepted with a warning.
    fn model_address(&mut self, text: &Spanned<ConfigText>) -> Option<SafeUrl> {
        let url = self.any_url(text, &mut Unset::Refused, "https://api.example.com/v1")?;
        match url.scheme() {
            "https" => {}
            "http" if super::values::is_loopback(&url) => {}
            "http" => {
                let message = "requests to this model provider are not encrypted";
                let help = "use https if the provider supports it";
                self.found.push(text.warning(message, "plain http").help(help));
            }
            _ => {
                let message = "only https and http URLs are allowed";
                self.found.push(text.error(message, "not allowed"));
                return None;
            }
        }
        Some(SafeUrl::new(url, text.value.0.trim()))
    }

    fn model_headers(
        &mut self,
        id: &str,
        headers: Field<Table<ConfigText>>,
        noted: &mut Vec<Setting>,
        plaintext: &mut Option<Diagnostic>,
    ) -> BTreeMap<String, SecretTemplate> {
        let mut out: BTreeMap<String, SecretTemplate> = BTreeMap::new();
        for (name, text) in headers.map(|headers| headers.value.0).unwrap_or_default() {
            if !is_header_name(&name) {
                let message = "invalid HTTP header name";
                self.found.push(text.error(message, "the value of this header"));
                continue;
            }
            if let Some(twin) = out.keys().find(|other| other.eq_ignore_ascii_case(&name)) {
                let message = format!("the headers `{twin}` and `{name}` are the same");
                self.found.push(text.error(message, "given again here"));
                continue;
            }
            let key = format!("models.providers.{id}.headers.{name}");
            let Some(credential) = self.noted_credential(&key, &text, noted) else { continue };
            let is_telling = is_credential_name(&name) || looks_like_credential(&text.value.0);
            if credential.is_written_out && is_telling {
                plaintext.get_or_insert_with(|| plaintext_warning(id, &text));
            }
            out.insert(name, credential.value);
        }
        out
    }
}

/// Reported once per provider (K4).
fn plaintext_warning(id: &str, text: &Spanned<ConfigText>) -> Diagnostic {
    let message = format!(
        "Model provider '{id}' has plaintext credentials in config — consider using secret:// references"
    );
    let help = "for example `secret://keychain/NAME`, `secret://env/NAME`, `secret://file/PATH`";
    text.warning(message, "readable by everyone who can read this file").help(help)
}
