//! Models of providers, by way of the `genai` crate.
//!
//! What is known of that crate, and done about it here (0.7.2, read and run):
//! - It takes `-high`, `-max` and the like at the end of a model's name for a wish, and cuts it off
//!   (`qwen-max`): it is given a name without, and the request the right one (`request`).
//! - It turns tools with certain names into services of the provider (`web_search`), asks `OpenAI`'s
//!   Responses for strict schemas, and names Gemini's schemas what they are not: tools are written by us
//!   (`offers`).
//! - Its pieces of a call hold the arguments so far, the end holds them parsed; ids of Gemini's calls
//!   begin anew with every piece (`calls`). Of Chat Completions it trusts each number (`deltas`).
//! - Gemini, Ollama and Responses end like a success when the connection breaks: without a reason to stop
//!   an answer is no answer. Errors in Ollama's stream and Gemini's pictures and refusals are dropped:
//!   `frames` watches for them.
//! - Tool results are text: `outgoing` sends pictures by other ways.
//! - Text is decoded across the borders of packets, and time-outs are per read, as we want it.

mod calls;
mod classify;
mod deltas;
mod endpoint;
mod failure;
mod frames;
mod incoming;
mod offers;
mod outgoing;
mod pairing;
mod refusal;
mod request;
mod senses;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use openclaw_secrets::Redactor;

use crate::error::ModelError;
use crate::model::{Chunk, Dialect, Model, Request};
use crate::settings::{ApiKind, ProviderSettings};
use crate::window;
use endpoint::Endpoint;
use failure::Explain;
use frames::Frames;
use incoming::Incoming;

/// A model of a provider.
pub(crate) struct Provider {
    /// Its whole name.
    name: String,
    /// What its provider calls it.
    model: String,
    settings: ProviderSettings,
    endpoint: Endpoint,
    client: genai::Client,
    redactor: Redactor,
    /// Its provider has said that it cannot use tools.
    has_no_tools: AtomicBool,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Provider {
    /// # Errors
    /// If a key is missing, or a setting makes no sense.
    pub(crate) fn new(
        name: &str,
        model: &str,
        settings: ProviderSettings,
        http: reqwest::Client,
    ) -> Result<Self, ModelError> {
        let has_key = settings.api_key.as_ref().is_some_and(|key| !key.is_empty());
        // Whoever gives an address may need no key there.
        let needs_key = settings.base_url.is_none() && settings.kind != ApiKind::Ollama;
        if needs_key && !has_key && settings.headers.is_empty() {
            let variable = ProviderSettings::usual_variable(&settings.id);
            return Err(ModelError::NeedsKey { provider: settings.id, variable });
        }
        let endpoint = Endpoint::new(&settings, model)?;
        let redactor = Redactor::new();
        redactor.add_all(&settings.api_key);
        redactor.add_all(settings.headers.iter().map(|(_, value)| value));
        let client = genai::Client::builder().with_reqwest(http).build().map_err(|_| {
            ModelError::invalid("the library for models cannot be set up with these settings")
        })?;
        let (name, model) = (name.to_owned(), model.to_owned());
        let has_no_tools = AtomicBool::new(false);
        Ok(Self { name, model, settings, endpoint, client, redactor, has_no_tools })
    }

    async fn begin(&self, request: Request) -> Result<Incoming, ModelError> {
        let kind = self.settings.kind;
        let frames = Frames::new(kind);
        let explain = Explain {
            provider: self.settings.id.clone(),
            model: self.name.clone(),
            redactor: self.redactor.clone(),
            tools: request.tools.clone(),
            silence: self.settings.silence,
        };
        let options = request::options(kind, &self.model, &request, self.settings.silence)
            .with_raw_frame_sink_arc(frames.sink());
        let chat = request::chat(kind, &self.name, &request);
        let target = self.endpoint.target(&self.settings, &self.model);
        let started = self.client.exec_chat_stream(target, chat, Some(&options)).await;
        let started = started.map_err(|error| explain.error(&error))?;
        let calls = calls::Calls::new(kind, &request.messages);
        Ok(Incoming::new(kind, started.stream, frames, calls, explain))
    }
}

impl Model for Provider {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.settings.kind.dialect()
    }

    fn takes_tools(&self) -> bool {
        !self.has_no_tools.load(Ordering::Relaxed)
    }

    fn context_tokens(&self) -> u64 {
        let known = || window::context_tokens(self.settings.kind, &self.model);
        self.settings.context_tokens.unwrap_or_else(known)
    }

    fn stream<'a>(&'a self, request: Request) -> BoxStream<'a, Result<Chunk, ModelError>> {
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
