//! Selects an agent's model: the configured one, one whose API key is in the environment, a local
//! Ollama model, or the built-in one (G2).

use std::sync::Arc;

use openclaw_config::{AgentConfig, Config, ModelApi, ProviderConfig};
use openclaw_metrics::Metrics;
use openclaw_models::{
    ApiKind, LocalOllama, Model, ModelError, ProviderSettings, find_ollama, open,
};
use openclaw_secrets::{Environment, Resolver, SecretString};
use tokio::sync::OnceCell;

use crate::agents::HostContext;
use crate::counted_model::counted;

/// Address of a local Ollama.
const OLLAMA: &str = "http://127.0.0.1:11434";
/// Default models by API key variable.
const BY_KEY: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
    ("OPENAI_API_KEY", "openai/gpt-5"),
    ("GEMINI_API_KEY", "gemini/gemini-2.5-pro"),
];

/// The model of an agent, and why it was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInUse {
    /// Name of the model.
    pub name: String,
    /// Names of the fallback models.
    pub fallbacks: Vec<String>,
    /// Why it was selected.
    pub origin: ModelOrigin,
}

/// Why a model was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelOrigin {
    /// It is configured.
    Configured,
    /// This variable holds an API key for it.
    KeyIn(&'static str),
    /// It was found in the local Ollama.
    Ollama,
    /// There is a local Ollama, but it has no chat model.
    OllamaCannotChat,
    /// No other model is available.
    BuiltIn,
}

impl ModelOrigin {
    /// Describes the origin for users.
    pub fn words(&self) -> String {
        match self {
            Self::Configured => "configured".to_owned(),
            Self::KeyIn(variable) => format!("API key in {variable}"),
            Self::Ollama => "found in the local Ollama".to_owned(),
            Self::OllamaCannotChat => {
                "built in; the local Ollama has no chat model: run `ollama pull` to get one"
                    .to_owned()
            }
            Self::BuiltIn => "built in; no other is configured".to_owned(),
        }
    }
}

/// The models of an agent, selected and opened on first use.
#[derive(Debug)]
pub(crate) struct Models {
    configured: Option<ModelInUse>,
    providers: Vec<(String, ProviderConfig)>,
    resolver: Resolver,
    environment: Environment,
    metrics: Metrics,
    in_use: OnceCell<ModelInUse>,
    opened: OnceCell<Vec<Arc<dyn Model>>>,
}

impl Models {
    pub(crate) fn new(agent: &AgentConfig, config: &Config, host_context: &HostContext) -> Self {
        let configured = agent.model.as_ref().map(|choice| ModelInUse {
            name: choice.primary.as_str().to_owned(),
            fallbacks: choice.fallbacks.iter().map(|name| name.as_str().to_owned()).collect(),
            origin: ModelOrigin::Configured,
        });
        let providers = config.models.iter();
        Self {
            configured,
            providers: providers.map(|(id, it)| (id.to_string(), it.clone())).collect(),
            resolver: host_context.resolver.clone(),
            environment: host_context.environment.clone(),
            metrics: host_context.metrics.clone(),
            in_use: OnceCell::new(),
            opened: OnceCell::new(),
        }
    }

    /// Returns the selected model. Contacts only a local Ollama.
    pub(crate) async fn in_use(&self) -> &ModelInUse {
        self.in_use.get_or_init(|| self.find()).await
    }

    async fn find(&self) -> ModelInUse {
        if let Some(configured) = &self.configured {
            return configured.clone();
        }
        let only = |name: String, origin| ModelInUse { name, fallbacks: Vec::new(), origin };
        let has = |variable: &str| self.environment.get(variable).is_some_and(|it| !it.is_empty());
        if let Some((variable, model)) = BY_KEY.into_iter().find(|(variable, _)| has(variable)) {
            return only(model.to_owned(), ModelOrigin::KeyIn(variable));
        }
        let local = match openclaw_models::http_client() {
            Ok(http) => find_ollama(OLLAMA, &http).await,
            Err(_) => LocalOllama::Absent,
        };
        let offline = || "offline".to_owned();
        match local {
            LocalOllama::Has(model) => only(format!("ollama/{model}"), ModelOrigin::Ollama),
            LocalOllama::CannotChat => only(offline(), ModelOrigin::OllamaCannotChat),
            LocalOllama::Absent => only(offline(), ModelOrigin::BuiltIn),
        }
    }

    /// Returns the names of all models, the selected one first.
    pub(crate) async fn names(&self) -> impl Iterator<Item = &str> {
        let in_use = self.in_use().await;
        std::iter::once(&in_use.name).chain(&in_use.fallbacks).map(String::as_str)
    }

    /// Returns the opened models: first the chosen one, if it is still configured. A model that
    /// cannot be opened is skipped, unless there is no other.
    pub(crate) async fn open(
        &self,
        chosen: Option<&str>,
    ) -> Result<Vec<Arc<dyn Model>>, ModelError> {
        let mut models = self.opened.get_or_try_init(|| self.open_all()).await?.clone();
        let chosen = chosen.and_then(|name| models.iter().position(|it| it.name() == name));
        if let Some(at) = chosen {
            models[..=at].rotate_right(1);
        }
        Ok(models)
    }

    /// Returns the context window of a model, in tokens, if the models were opened before.
    pub(crate) fn window(&self, name: &str) -> Option<u64> {
        let model = self.opened.get()?.iter().find(|model| model.name() == name)?;
        Some(model.context_tokens())
    }

    async fn open_all(&self) -> Result<Vec<Arc<dyn Model>>, ModelError> {
        let in_use = self.in_use().await;
        if in_use.name == "offline" {
            return Ok(vec![counted(Arc::new(openclaw_models::Offline), &self.metrics)]);
        }
        let names: Vec<&str> = self.names().await.collect();
        let http = openclaw_models::http_client()?;
        let (mut models, mut first_error) = (Vec::new(), None);
        for name in names {
            let settings = self.settings_for(name).await;
            match settings.and_then(|it| open(name, it.as_slice(), http.clone())) {
                Ok(model) => models.push(counted(model, &self.metrics)),
                Err(error) => {
                    tracing::warn!(model = %name, %error, "cannot open a model");
                    first_error.get_or_insert(error);
                }
            }
        }
        match (models.is_empty(), first_error) {
            (true, Some(error)) => Err(error),
            _ => Ok(models),
        }
    }

    /// Returns the settings of a model's provider: as configured, or with the usual variable for
    /// its key.
    async fn settings_for(&self, model: &str) -> Result<Option<ProviderSettings>, ModelError> {
        let id = model.split('/').next().unwrap_or_default();
        let configured = self.providers.iter().find(|(known, _)| known == id);
        let mut settings = match configured {
            Some((_, provider)) => {
                let mut settings = ProviderSettings::new(id, kind(provider.api));
                if let Some(url) = &provider.base_url {
                    self.resolver.redactor().add_all(&url.credentials());
                    settings.base_url = Some(url.expose().to_string());
                }
                settings
            }
            None => match ProviderSettings::known(id) {
                Some(settings) => settings,
                None => return Ok(None),
            },
        };
        if let Some((_, provider)) = configured {
            let resolve = async |template| {
                let resolved = self.resolver.resolve_credential(template).await;
                resolved.map_err(|error| ModelError::Invalid { message: error.to_string() })
            };
            if let Some(template) = &provider.api_key {
                settings.api_key = Some(resolve(template).await?);
            }
            for (name, template) in &provider.headers {
                settings.headers.push((name.clone(), resolve(template).await?));
            }
        }
        if settings.api_key.is_none()
            && let Some(variable) = ProviderSettings::usual_variable(id)
            && let Some(key) = self.environment.get(variable).filter(|key| !key.is_empty())
        {
            let key = SecretString::from(key);
            self.resolver.redactor().add(&key);
            settings.api_key = Some(key);
        }
        Ok(Some(settings))
    }
}

fn kind(api: ModelApi) -> ApiKind {
    match api {
        ModelApi::Anthropic => ApiKind::Anthropic,
        ModelApi::OpenAi => ApiKind::OpenAi,
        ModelApi::OpenAiResponses => ApiKind::OpenAiResponses,
        ModelApi::Gemini => ApiKind::Gemini,
        ModelApi::Ollama => ApiKind::Ollama,
    }
}
