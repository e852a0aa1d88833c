//! What may stand in `models`: the providers of models.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::credential::CredentialText;
use super::server::Ignored;
use crate::decode::{Decode, Decoder, Overlay, Table, choice, section};
use crate::schema;
use crate::text::Text;
use crate::tree::{Node, Value};

section! {
    /// Where models are had.
    struct RawModels("the model settings", Leave) {
        /// The providers by id: the first part of a model's name. `anthropic`, `openai`, `gemini` and
        /// `ollama` are known without an entry.
        providers: Table<RawProvider> = "providers" => schema::named,
    }
}

section! {
    /// A provider of models.
    struct RawProvider("a model provider", Leave) {
        /// The address of its API, where it is not the usual one.
        base_url: Text = "baseUrl" => schema::model_address,
        /// The key; best a `secret://…` reference.
        api_key: CredentialText = "apiKey" => schema::credential,
        /// Which API it speaks; follows from the id of a known provider, and is `openai` otherwise.
        /// A provider whose API only the Node OpenClaw speaks is left out.
        api: ApiSetting = "api",
        /// HTTP headers of every request. Values may hold `secret://…` references.
        headers: Table<Text> = "headers" => schema::headers,
        /// A setting of Node OpenClaw without a meaning here.
        models: Ignored = "models",
    }
}

choice! {
    /// The API that a provider speaks.
    pub enum ModelApi {
        /// Anthropic's messages.
        Anthropic = "anthropic" | "anthropic-messages",
        /// OpenAI's chat completions, which many others speak, too.
        OpenAi = "openai" | "openai-completions",
        /// OpenAI's responses.
        OpenAiResponses = "openai-responses",
        /// Google's Gemini.
        Gemini = "gemini" | "google-generative-ai",
        /// Ollama's own.
        Ollama = "ollama",
    }
}

/// APIs of the Node OpenClaw that are not spoken here.
const FOREIGN: &[&str] = &[
    "azure-openai-responses",
    "bedrock-converse-stream",
    "github-copilot",
    "google-vertex",
    "openai-codex-responses",
];

/// `api`, as it stands in files of the Node OpenClaw.
#[derive(Clone)]
pub(crate) enum ApiSetting {
    /// One that is spoken here.
    Known(ModelApi),
    /// One that only the Node OpenClaw speaks.
    Foreign,
}

impl Decode for ApiSetting {
    fn decode(node: &Node, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(word) if FOREIGN.contains(&word.as_str()) => Some(Self::Foreign),
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
