//! Where a model is found, and what opens the door.

use std::time::Duration;

use openclaw_secrets::SecretString;

use crate::model::Dialect;

/// The language of a provider's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKind {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s Chat Completions, which many others speak, too.
    OpenAi,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl ApiKind {
    /// Which tool schemas it takes.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Anthropic => Dialect::Anthropic,
            Self::OpenAi | Self::OpenAiResponses => Dialect::OpenAi,
            Self::Gemini => Dialect::Gemini,
            Self::Ollama => Dialect::Plain,
        }
    }
}

/// A provider of models.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// What stands before the slash in the names of its models.
    pub id: String,
    /// What it speaks.
    pub kind: ApiKind,
    /// Where it is; where the makers of the API have theirs, if not given.
    pub base_url: Option<String>,
    /// Its key.
    pub api_key: Option<SecretString>,
    /// Further headers. Their values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// The window of its models, if what is known about them is wrong.
    pub context_tokens: Option<u64>,
    /// How long it may say nothing before it is given up.
    pub silence: Duration,
}

impl ProviderSettings {
    /// How long a provider may say nothing, usually.
    pub const SILENCE: Duration = Duration::from_secs(120);

    /// A provider at its usual place, without a key.
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

    /// A provider that needs no configuration but its key: `anthropic`, `openai`, `gemini` (or
    /// `google`), `ollama`.
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

    /// The variable in which people keep the key of a [known](Self::known) provider. Whoever may look at
    /// the environment does; nobody here does.
    pub fn usual_variable(id: &str) -> Option<&'static str> {
        match id {
            "anthropic" => Some("ANTHROPIC_API_KEY"),
            "openai" => Some("OPENAI_API_KEY"),
            "gemini" | "google" => Some("GEMINI_API_KEY"),
            _ => None,
        }
    }
}
