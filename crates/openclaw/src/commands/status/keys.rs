//! Where a model's API key comes from. The key itself is never shown.

use openclaw_config::{Config, ModelApi};
use openclaw_models::ProviderSettings;
use openclaw_secrets::{Checked, SecretRef};

use crate::commands::check::Check;
use crate::edge::Edge;

/// Checks where the API key of a model comes from, given the results of resolving all secrets.
pub(super) fn source(model: &str, config: &Config, edge: &Edge, secrets: &[Checked]) -> Check {
    let Some((provider, _)) = model.split_once('/') else {
        return Check::good("needs no API key");
    };
    let written = config.models.iter().find(|(id, _)| id.as_str() == provider);
    if written.is_none() && ModelApi::of_provider(provider).is_none() {
        let advice = format!("add `models.providers.{provider}` with its `baseUrl`");
        return Check::bad(format!("unknown model provider `{provider}`"), Some(advice));
    }
    let credentials = written.map(|(_, settings)| settings.credentials()).unwrap_or_default();
    let mut references = credentials.iter().flat_map(|(_, template)| template.references());
    let is_missing =
        |wanted: &SecretRef| secrets.iter().any(|it| it.reference == *wanted && it.error.is_some());
    if let Some(missing) = references.find(|reference| is_missing(reference)) {
        let advice = "see Secrets below".to_owned();
        return Check::bad(format!("cannot resolve {missing}"), Some(advice));
    }
    let template = written.and_then(|(_, settings)| settings.api_key.as_ref());
    if let Some(template) = template {
        let references: Vec<String> = template.references().map(ToString::to_string).collect();
        return match references.is_empty() {
            true => Check::good("API key in the configuration"),
            false => Check::good(format!("API key from {}", references.join(", "))),
        };
    }
    let Some(variable) = ProviderSettings::usual_variable(provider) else {
        return Check::good("no API key configured");
    };
    if edge.environment().get(variable).is_some_and(|value| !value.is_empty()) {
        return Check::good(format!("API key from ${variable}"));
    }
    let advice = format!("set ${variable}, or `models.providers.{provider}.apiKey`");
    Check::bad("no API key", Some(advice))
}
