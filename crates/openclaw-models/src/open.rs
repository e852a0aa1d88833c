//! From a model's name to the model.

use std::sync::Arc;

use crate::error::ModelError;
use crate::model::Model;
use crate::offline::Offline;
use crate::provider::Provider;
use crate::retry::Retrying;
use crate::settings::ProviderSettings;

/// Makes the model with this name: `offline`, or a provider's id, a slash, and what the provider calls
/// it. The provider is one of those given, or one that is [known](ProviderSettings::known). It tries
/// again where that helps.
///
/// The client should set a time-out for connections; see [`http_client`](crate::http_client).
///
/// # Errors
/// If the name or the provider's settings make no sense, or a key is missing.
pub fn open(
    model: &str,
    providers: &[ProviderSettings],
    http: reqwest::Client,
) -> Result<Arc<dyn Model>, ModelError> {
    if model == Offline::NAME {
        return Ok(Arc::new(Offline));
    }
    let Some((id, name)) = model.split_once('/').filter(|(id, name)| {
        let is_plain = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        is_plain(id) && is_plain(name)
    }) else {
        let words = "a model is named by its provider and its name, as in \
                     `anthropic/claude-sonnet-4-5`; or it is `offline`";
        return Err(ModelError::invalid(format!("`{model}` names no model: {words}")));
    };
    let given = providers.iter().find(|provider| provider.id == id).cloned();
    let Some(settings) = given.or_else(|| ProviderSettings::known(id)) else {
        let words = "known are `anthropic`, `openai`, `gemini` and `ollama`";
        return Err(ModelError::invalid(format!(
            "there is no model provider `{id}`: {words}; any other needs an entry in `models.providers`"
        )));
    };
    let provider = Provider::new(model, name, settings, http)?;
    Ok(Arc::new(Retrying::new(Arc::new(provider))))
}
