//! Selects an agent's model: the configured one, one whose API key is in the environment, a local
//! Ollama model, or the built-in one (G2).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{AgentConfig, Config, ModelApi, ModelName, ProviderConfig};
use openclaw_metrics::Metrics;
use openclaw_models::{
    ApiKind, LocalOllama, Model, ModelError, Offline, ProviderSettings, find_ollama, open,
};
use openclaw_protocol::models::ModelChoice;
use openclaw_secrets::{Environment, Resolver, SecretString};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::timeout;

use crate::counted_model::counted;
use crate::host::HostContext;

/// Address of a local Ollama.
const OLLAMA: &str = "http://127.0.0.1:11434";
const OLLAMA_SOCKET: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 11434);
/// Timeout for connecting to it.
const OLLAMA_CONNECT: Duration = Duration::from_millis(300);
/// A provider that needs nothing but an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedProvider {
    /// Name for users.
    pub name: &'static str,
    /// Variable that usually holds the API key.
    pub variable: &'static str,
    /// Default model.
    pub model: &'static str,
}

/// Providers whose API key in the environment selects a model, the preferred one first.
pub const KEYED_PROVIDERS: [KeyedProvider; 3] = [
    KeyedProvider {
        name: "Anthropic",
        variable: "ANTHROPIC_API_KEY",
        model: "anthropic/claude-sonnet-4-5",
    },
    KeyedProvider { name: "OpenAI", variable: "OPENAI_API_KEY", model: "openai/gpt-5" },
    KeyedProvider {
        name: "Google Gemini",
        variable: "GEMINI_API_KEY",
        model: "gemini/gemini-2.5-pro",
    },
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
    /// Describes it for users.
    pub fn description(&self) -> String {
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

/// Selects the model of an agent without a configured one. Contacts only a local Ollama.
pub async fn unconfigured_model(environment: &Environment) -> ModelInUse {
    let only = |name: String, origin| ModelInUse { name, fallbacks: Vec::new(), origin };
    let has = |variable: &str| environment.get(variable).is_some_and(|it| !it.is_empty());
    if let Some(keyed) = KEYED_PROVIDERS.into_iter().find(|keyed| has(keyed.variable)) {
        return only(keyed.model.to_owned(), ModelOrigin::KeyIn(keyed.variable));
    }
    // Usually there is none. An HTTP client loads the certificates of the system, which takes longer
    // than everything else that the first session needs.
    let listens = timeout(OLLAMA_CONNECT, TcpStream::connect(OLLAMA_SOCKET)).await;
    let client = matches!(listens, Ok(Ok(_))).then(openclaw_models::http_client);
    let local = match client {
        Some(Ok(http)) => find_ollama(OLLAMA, &http).await,
        _ => LocalOllama::Absent,
    };
    let offline = || Offline::NAME.to_owned();
    match local {
        LocalOllama::Has(model) => only(format!("ollama/{model}"), ModelOrigin::Ollama),
        LocalOllama::CannotChat => only(offline(), ModelOrigin::OllamaCannotChat),
        LocalOllama::Absent => only(offline(), ModelOrigin::BuiltIn),
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
    /// The model that a session has chosen last and that is not one of the agent's.
    other: Mutex<Option<Arc<dyn Model>>>,
}

impl Models {
    pub(crate) fn new(agent: &AgentConfig, config: &Config, host: &HostContext) -> Self {
        let configured = agent.model.as_ref().map(|choice| ModelInUse {
            name: choice.primary.as_str().to_owned(),
            fallbacks: choice.fallbacks.iter().map(|name| name.as_str().to_owned()).collect(),
            origin: ModelOrigin::Configured,
        });
        let providers = config.models.iter();
        Self {
            configured,
            providers: providers.map(|(id, it)| (id.to_string(), it.clone())).collect(),
            resolver: host.resolver.clone(),
            environment: host.environment.clone(),
            metrics: host.metrics.clone(),
            in_use: OnceCell::new(),
            opened: OnceCell::new(),
            other: Mutex::default(),
        }
    }

    /// Returns the selected model. Contacts only a local Ollama.
    pub(crate) async fn in_use(&self) -> &ModelInUse {
        self.in_use.get_or_init(|| self.find()).await
    }

    async fn find(&self) -> ModelInUse {
        match &self.configured {
            Some(configured) => configured.clone(),
            None => unconfigured_model(&self.environment).await,
        }
    }

    /// Returns the names of all models, the selected one first.
    pub(crate) async fn names(&self) -> impl Iterator<Item = &str> {
        let in_use = self.in_use().await;
        std::iter::once(&in_use.name).chain(&in_use.fallbacks).map(String::as_str)
    }

    /// Lists the models, and this one if a session may use it. Whether a provider accepts them is not
    /// checked.
    pub(crate) async fn list(&self, other: Option<&str>) -> Vec<ModelChoice> {
        let mut names: Vec<&str> = self.names().await.collect();
        let other = other.filter(|model| !names.contains(model));
        if let Some(other) = other
            && self.has_provider_of(other).await
        {
            names.push(other);
        }
        let models = names.into_iter().map(|name| {
            let (provider, model) = name.split_once('/').unwrap_or(("openclaw", name));
            ModelChoice {
                id: name.to_owned(),
                name: model.to_owned(),
                provider: provider.to_owned(),
                available: None,
                context_window: self.window(name),
            }
        });
        models.collect()
    }

    /// Whether a session may use a model that is not one of the agent's: it has the form
    /// `provider/model`, and the provider is configured, or built in and has what it needs.
    pub(crate) async fn has_provider_of(&self, model: &str) -> bool {
        let Some(name) = ModelName::new(model) else { return false };
        let Some(id) = name.provider() else { return false };
        if self.providers.iter().any(|(known, _)| known == id) {
            return true;
        }
        let has = |variable| self.environment.get(variable).is_some_and(|it| !it.is_empty());
        let is_usable = ProviderSettings::known(id).is_some()
            && ProviderSettings::usual_variable(id).is_none_or(has);
        is_usable || self.names().await.any(|known| known.split('/').next() == Some(id))
    }

    /// Returns the opened models: first the chosen one, if it is still configured. A model of the
    /// agent that cannot be opened is skipped, unless there is no other.
    pub(crate) async fn open(
        &self,
        chosen: Option<&str>,
    ) -> Result<Vec<Arc<dyn Model>>, ModelError> {
        let mut models = self.opened.get_or_try_init(|| self.open_all()).await?.clone();
        let Some(chosen) = chosen else { return Ok(models) };
        if let Some(at) = models.iter().position(|it| it.name() == chosen) {
            models[..=at].rotate_right(1);
        } else if self.has_provider_of(chosen).await {
            models.insert(0, self.open_other(chosen).await?);
        }
        Ok(models)
    }

    /// Opens a model that is not one of the agent's.
    async fn open_other(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut other = self.other.lock().await;
        if let Some(model) = other.as_ref().filter(|model| model.name() == name) {
            return Ok(Arc::clone(model));
        }
        let settings = self.settings_for(name).await?;
        let model = open(name, settings.as_slice(), openclaw_models::http_client()?)?;
        *other = Some(Arc::clone(&model));
        Ok(model)
    }

    /// Returns the context window of a model, in tokens, if the models were opened before.
    pub(crate) fn window(&self, name: &str) -> Option<u64> {
        let model = self.opened.get()?.iter().find(|model| model.name() == name)?;
        Some(model.context_tokens())
    }

    async fn open_all(&self) -> Result<Vec<Arc<dyn Model>>, ModelError> {
        let in_use = self.in_use().await;
        if in_use.name == Offline::NAME {
            return Ok(vec![counted(Arc::new(Offline), &self.metrics)]);
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
                resolved.map_err(|error| ModelError::Invalid {
                    message: format!(
                        "cannot use the model provider `{id}`: {error}; run `openclaw secrets check`"
                    ),
                })
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
