//! Creates a model by name.

use std::sync::Arc;

use crate::error::ModelError;
use crate::model::Model;
use crate::offline::Offline;
use crate::provider::ProviderModel;
use crate::retry::Retrying;
use crate::settings::ProviderSettings;

/// Returns the model with this name: `offline`, or a provider's id, a slash, and the provider's name
/// of the model. The provider is one of those given, or a [known](ProviderSettings::known) one.
/// Transient errors are retried.
///
/// The client should set a connect timeout; see [`http_client`](crate::http_client).
///
/// # Errors
/// If the name or the provider's settings are invalid, or a key is missing.
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
        let words = "expected `PROVIDER/MODEL`, such as \
                     `anthropic/claude-sonnet-4-5`, or `offline`";
        return Err(ModelError::invalid(format!("invalid model name `{model}`: {words}")));
    };
    let given = providers.iter().find(|provider| provider.id == id).cloned();
    let Some(settings) = given.or_else(|| ProviderSettings::known(id)) else {
        let words = "the built-in ones are `anthropic`, `openai`, `gemini` and `ollama`";
        return Err(ModelError::invalid(format!(
            "unknown model provider `{id}`: {words}; any other needs an entry in `models.providers`"
        )));
    };
    let provider = ProviderModel::new(model, name, settings, http)?;
    Ok(Arc::new(Retrying::new(Arc::new(provider))))
}
