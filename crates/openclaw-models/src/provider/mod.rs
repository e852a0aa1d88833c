//! Models of remote providers and their wire formats.
//!
//! A request is turned into a list of turns (`turns`), in which texts are rendered and unsupported media
//! are replaced by text; the format's `body` writes them as JSON. The response is split into messages
//! (`sse`), and the format's `read` adds each to the answer (`draft`); `incoming` drives this and enforces
//! the bounds. An answer without a stop reason is incomplete, however its stream ended.

mod anthropic;
mod calls;
mod classify;
mod draft;
mod endpoint;
mod failure;
mod gemini;
mod incoming;
mod media;
mod ollama;
mod openai_chat;
mod openai_responses;
mod pairing;
mod refusal;
mod sse;
mod turns;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use openclaw_secrets::{Redactor, SecretString};
use openclaw_tools::schema::SchemaDialect;
use serde_json::Value;
use url::Url;

use crate::error::ModelError;
use crate::model::{Chunk, Model, ModelRequest};
use crate::settings::{ApiKind, ProviderSettings};
use crate::window;
use calls::ReceivedCalls;
use draft::Draft;
use failure::Explain;
use incoming::{IncomingAnswer, Read};
use sse::{Framing, Reader};
use turns::{ProviderTurn, turns};

/// A model of a provider.
pub(crate) struct ProviderModel {
    /// The full name, with the provider's id.
    name: String,
    /// The provider's name of the model.
    model: String,
    settings: ProviderSettings,
    address: Url,
    http: reqwest::Client,
    redactor: Redactor,
    /// Whether the provider has reported that the model does not support tools.
    has_no_tools: AtomicBool,
}

impl fmt::Debug for ProviderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ProviderModel {
    /// # Errors
    /// If a key is missing, or a setting is invalid.
    pub(crate) fn new(
        name: &str,
        model: &str,
        settings: ProviderSettings,
        http: reqwest::Client,
    ) -> Result<Self, ModelError> {
        let has_key = settings.api_key.as_ref().is_some_and(|key| !key.is_empty());
        // A server at a custom address may need no key.
        let needs_key = settings.base_url.is_none() && settings.kind != ApiKind::Ollama;
        if needs_key && !has_key && settings.headers.is_empty() {
            let variable = ProviderSettings::usual_variable(&settings.id);
            return Err(ModelError::NeedsKey { provider: settings.id, variable });
        }
        let address = endpoint::address(&settings, model)?;
        // Only validated here: each request builds its own headers, so that keys are not stored twice.
        endpoint::headers(&settings)?;
        let redactor = Redactor::new();
        redactor.add_all(&settings.api_key);
        redactor.add_all(settings.headers.iter().map(|(_, value)| value));
        let in_url = address.query_pairs().map(|(_, value)| value.into_owned());
        let in_url = in_url.chain(address.password().map(str::to_owned)).map(SecretString::from);
        redactor.add_all(&in_url.collect::<Vec<_>>());
        let (name, model) = (name.to_owned(), model.to_owned());
        let has_no_tools = AtomicBool::new(false);
        Ok(Self { name, model, settings, address, http, redactor, has_no_tools })
    }

    async fn begin(&self, request: ModelRequest) -> Result<IncomingAnswer, ModelError> {
        let kind = self.settings.kind;
        let explain = Explain {
            provider: self.settings.id.clone(),
            model: self.name.clone(),
            redactor: self.redactor.clone(),
            tools: request.tools.clone(),
            silence: self.settings.silence,
        };
        let messages = pairing::paired(&request.messages);
        let turns = turns(kind, &self.name, &messages);
        let outgoing = Outgoing { model: &self.model, request: &request, turns };
        let (body, read): (_, Read) = match kind {
            ApiKind::Anthropic => (anthropic::body(&outgoing), anthropic::read),
            ApiKind::OpenAi => (openai_chat::body(&outgoing), openai_chat::read),
            ApiKind::OpenAiResponses => (openai_responses::body(&outgoing), openai_responses::read),
            ApiKind::Gemini => (gemini::body(&outgoing), gemini::read),
            ApiKind::Ollama => (ollama::body(&outgoing), ollama::read),
        };
        let headers = endpoint::headers(&self.settings)?;
        let sent = self.http.post(self.address.clone()).headers(headers).json(&body).send();
        let response = tokio::time::timeout(explain.silence, sent).await;
        let response = response.map_err(|_| ModelError::Silent(explain.silence))?;
        let response = response.map_err(|error| explain.transport(&error))?;
        if !response.status().is_success() {
            return Err(explain.status(response).await);
        }
        let framing = if kind == ApiKind::Ollama { Framing::Lines } else { Framing::Events };
        let reader = Reader::new(response, framing, explain.silence);
        let id = if kind == ApiKind::Gemini { gemini::call_id } else { call_id };
        let draft = Draft::new(ReceivedCalls::new(&request.messages, id));
        Ok(IncomingAnswer::new(reader, read, draft, explain))
    }
}

/// A request, prepared for a wire format.
struct Outgoing<'r> {
    /// The provider's name of the model.
    model: &'r str,
    request: &'r ModelRequest,
    turns: Vec<ProviderTurn<'r>>,
}

impl Outgoing<'_> {
    fn must_use_tool(&self) -> bool {
        self.request.must_use_tool && !self.request.tools.is_empty()
    }
}

/// Returns the id of a call for which the provider sent none.
fn call_id(_name: &str, number: usize) -> String {
    format!("call_{number}")
}

/// Returns the string at this JSON pointer, or an empty one.
fn text<'v>(value: &'v Value, place: &str) -> &'v str {
    value.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a member of a request, if there is a value.
fn set(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}

/// Returns the number at this JSON pointer, or zero.
fn number(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or_default()
}

impl Model for ProviderModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> SchemaDialect {
        self.settings.kind.dialect()
    }

    fn takes_tools(&self) -> bool {
        !self.has_no_tools.load(Ordering::Relaxed)
    }

    fn context_tokens(&self) -> u64 {
        let known = || window::context_tokens(self.settings.kind, &self.model);
        self.settings.context_tokens.unwrap_or_else(known)
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        let begun = async move {
            match self.begin(request).await {
                Ok(incoming) => incoming.chunks().left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            }
        };
        let chunks = stream::once(begun).flatten();
        let remembered = chunks.inspect(|chunk| {
            if matches!(chunk, Err(ModelError::NoTools { .. })) {
                self.has_no_tools.store(true, Ordering::Relaxed);
            }
        });
        remembered.boxed()
    }
}
