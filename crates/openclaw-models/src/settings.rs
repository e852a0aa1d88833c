//! Settings of model providers.

use std::time::Duration;

use openclaw_secrets::SecretString;
use openclaw_tools::schema::SchemaDialect;

/// The wire format of a provider's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s Chat Completions, which many others implement, too.
    OpenAi,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own API.
    Ollama,
}

impl ApiKind {
    /// Returns the dialect of tool schemas that it accepts.
    pub fn dialect(self) -> SchemaDialect {
        match self {
            Self::Anthropic => SchemaDialect::Anthropic,
            Self::OpenAi | Self::OpenAiResponses => SchemaDialect::OpenAi,
            Self::Gemini => SchemaDialect::Gemini,
            Self::Ollama => SchemaDialect::Plain,
        }
    }
}

/// The settings of a model provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The id: the part of a model's name before the slash.
    pub id: String,
    /// The wire format of its API.
    pub kind: ApiKind,
    /// The base URL; that of the API's vendor if not set.
    pub base_url: Option<String>,
    /// The API key.
    pub api_key: Option<SecretString>,
    /// Additional headers. Their values may be secret.
    pub headers: Vec<(String, SecretString)>,
    /// The context window of its models in tokens; overrides the built-in values.
    pub context_tokens: Option<u64>,
    /// The longest time without data before a request times out.
    pub silence: Duration,
}

impl ProviderSettings {
    /// The default of [`silence`](Self::silence).
    pub const SILENCE: Duration = Duration::from_secs(120);

    /// Creates settings with the default URL and without a key.
    pub fn new(id: impl Into<String>, kind: ApiKind) -> Self {
        Self {
            id: id.into(),
            kind,
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            context_tokens: None,
            silence: Self::SILENCE,
        }
    }

    /// Returns the settings of a provider that needs no configuration but its key: `anthropic`,
    /// `openai`, `gemini` (or `google`), `ollama`.
    pub fn known(id: &str) -> Option<Self> {
        let kind = match id {
            "anthropic" => ApiKind::Anthropic,
            "openai" => ApiKind::OpenAi,
            "gemini" | "google" => ApiKind::Gemini,
            "ollama" => ApiKind::Ollama,
            _ => return None,
        };
        Some(Self::new(id, kind))
    }

    /// Returns the environment variable that usually holds the key of a [known](Self::known)
    /// provider. The caller reads it: this crate does not read the environment.
    pub fn usual_variable(id: &str) -> Option<&'static str> {
        match id {
            "anthropic" => Some("ANTHROPIC_API_KEY"),
            "openai" => Some("OPENAI_API_KEY"),
            "gemini" | "google" => Some("GEMINI_API_KEY"),
            _ => None,
        }
    }
}
