//! Where a model's API key comes from. The key itself is never shown.

use openclaw_config::{AgentConfig, Config, ModelApi, ModelName};
use openclaw_models::ProviderSettings;
use openclaw_secrets::{Checked, SecretRef};

use crate::commands::check::Check;
use crate::edge::Edge;

/// Reports the models of all agents whose provider is unknown: they cannot be used.
pub(crate) fn unusable_models(config: &Config) -> Vec<Check> {
    let models = config.agents.iter().filter_map(|agent| Some((agent, agent.model.as_ref()?)));
    let names = models.flat_map(|(agent, model)| {
        let names = std::iter::once(&model.primary).chain(&model.fallbacks);
        names.map(move |name| (agent, name))
    });
    let check = |(agent, name): (&AgentConfig, &ModelName)| {
        let check = unknown_provider(name.provider()?, config)?;
        let what = format!("agent {} cannot use {}: {}", agent.id, name.as_str(), check.what);
        Some(Check { what, ..check })
    };
    names.filter_map(check).collect()
}

fn unknown_provider(id: &str, config: &Config) -> Option<Check> {
    let is_configured = config.models.iter().any(|(known, _)| known.as_str() == id);
    if is_configured || ModelApi::of_provider(id).is_some() {
        return None;
    }
    let advice = format!("add `models.providers.{id}` with its `baseUrl`");
    Some(Check::bad(format!("unknown model provider `{id}`"), Some(advice)))
}

/// Checks where the API key of a model comes from, given the results of resolving all secrets.
pub(super) fn source(model: &str, config: &Config, edge: &Edge, secrets: &[Checked]) -> Check {
    let Some((provider, _)) = model.split_once('/') else {
        return Check::good("needs no API key");
    };
    if let Some(unknown) = unknown_provider(provider, config) {
        return unknown;
    }
    let written = config.models.iter().find(|(id, _)| id.as_str() == provider);
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
