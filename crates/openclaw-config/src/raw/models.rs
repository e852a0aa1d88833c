//! The section `models`: the model providers.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::credential::CredentialText;
use super::server::Ignored;
use crate::decode::{Decode, Decoder, Overlay, Table, choice, section};
use crate::schema;
use crate::text::ConfigText;
use crate::tree::{ConfigNode, ConfigValue};

section! {
    /// The model providers.
    struct RawModels("the model settings", Leave) {
        /// The providers by id, the first part of a model's name. `anthropic`, `openai`, `gemini`
        /// and `ollama` need no entry.
        providers: Table<RawProvider> = "providers" => schema::named,
    }
}

section! {
    /// A model provider.
    struct RawProvider("a model provider", Leave) {
        /// The base URL of the API, if not the default.
        base_url: ConfigText = "baseUrl" => schema::model_address,
        /// The API key, preferably a `secret://…` reference.
        api_key: CredentialText = "apiKey" => schema::credential,
        /// The API of the provider; inferred from the id of a known provider, otherwise `openai`.
        /// Providers with an API that only Node OpenClaw supports are ignored.
        api: ApiSetting = "api",
        /// HTTP headers sent with every request. Values may contain `secret://…` references.
        headers: Table<ConfigText> = "headers" => schema::headers,
        /// A Node OpenClaw setting; ignored.
        models: Ignored = "models",
    }
}

choice! {
    /// The API of a provider.
    pub enum ModelApi {
        /// Anthropic Messages.
        Anthropic = "anthropic" | "anthropic-messages",
        /// OpenAI Chat Completions, which many other providers offer, too.
        OpenAi = "openai" | "openai-completions",
        /// OpenAI Responses.
        OpenAiResponses = "openai-responses",
        /// Google Gemini.
        Gemini = "gemini" | "google-generative-ai",
        /// Ollama's native API.
        Ollama = "ollama",
    }
}

/// APIs that only Node OpenClaw supports.
const FOREIGN: &[&str] = &[
    "azure-openai-responses",
    "bedrock-converse-stream",
    "github-copilot",
    "google-vertex",
    "openai-codex-responses",
];

/// The value of `api`, including those of Node OpenClaw.
#[derive(Clone)]
pub(crate) enum ApiSetting {
    /// A supported API.
    Known(ModelApi),
    /// An API that only Node OpenClaw supports.
    Foreign,
}

impl Decode for ApiSetting {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            ConfigValue::String(word) if FOREIGN.contains(&word.as_str()) => Some(Self::Foreign),
            _ => ModelApi::decode(node, cx).map(Self::Known),
        }
    }
}

impl Overlay for ApiSetting {}

impl JsonSchema for ApiSetting {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ApiSetting".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ModelApi::json_schema(generator);
        let words = schema.get_mut("enum").and_then(serde_json::Value::as_array_mut);
        if let Some(words) = words {
            words.extend(FOREIGN.iter().map(|word| serde_json::json!(word)));
        }
        schema
    }
}
