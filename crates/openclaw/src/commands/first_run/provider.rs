//! The provider that the user chooses, and the test request to it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_config::Config;
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::{KEYED_PROVIDERS, KeyedProvider};
use openclaw_models::{ApiKind, Chunk, Message, ModelError, ModelRequest, ProviderSettings, open};
use openclaw_secrets::SecretString;
use tokio::time::timeout;

use crate::error::{CommandError, Context as _};
use crate::output::Output;
use crate::{hidden, prompt};
use openclaw_terminal::style::STRONG;

/// The timeout of the test request.
const TEST: Duration = Duration::from_secs(60);
/// The maximum length of an error, in characters.
const ERROR_CHARS: usize = 400;
/// How often a wrong answer is asked for again.
const MAX_TRIES: usize = 5;
/// The id of a provider that is not built in.
const CUSTOM: &str = "custom";

/// A provider, a model of it, and the key.
pub(super) struct ChosenProvider {
    settings: ProviderSettings,
    /// The model, with the provider's id.
    model: String,
    /// The provider, if it is built in.
    keyed: Option<KeyedProvider>,
}

/// Asks for a provider, a model and a key; `None` if the user wants none.
pub(super) fn choose(
    config: &Config,
    output: &mut Output,
) -> Result<Option<ChosenProvider>, CommandError> {
    let other = KEYED_PROVIDERS.len() + 1;
    for (at, keyed) in KEYED_PROVIDERS.iter().enumerate() {
        let (number, name) = (at + 1, keyed.name);
        output.aside(&format!("  {STRONG}{number}{STRONG:#}  {name}"));
    }
    let words = "another with the OpenAI API: OpenRouter, LM Studio, vLLM, …";
    output.aside(&format!("  {STRONG}{other}{STRONG:#}  {words}"));
    output.aside(&format!("  {STRONG}Enter{STRONG:#}  none, use the built-in offline model"));
    for _ in 0..MAX_TRIES {
        let answer = prompt::line(&format!("Provider [1-{other}, Enter to skip]: "))?;
        match answer.parse::<usize>() {
            _ if answer.is_empty() => return Ok(None),
            Ok(number) if number == other => return custom(config, output),
            Ok(number) if (1..other).contains(&number) => {
                return built_in(KEYED_PROVIDERS[number - 1]);
            }
            _ => output.aside(&format!("Type a number from 1 to {other}, or press Enter.")),
        }
    }
    Ok(None)
}

fn built_in(keyed: KeyedProvider) -> Result<Option<ChosenProvider>, CommandError> {
    let (id, usual) = keyed.model.split_once('/').unwrap_or((keyed.model, ""));
    let Some(settings) = ProviderSettings::known(id) else { return Ok(None) };
    let model = match prompt::line(&format!("Model [{usual}]: "))? {
        empty if empty.is_empty() => keyed.model.to_owned(),
        model => named(id, &model),
    };
    let Some(key) = ask_key(&format!("API key of {} (not shown): ", keyed.name))? else {
        return Ok(None);
    };
    let settings = ProviderSettings { api_key: Some(key), ..settings };
    Ok(Some(ChosenProvider { settings, model, keyed: Some(keyed) }))
}

fn custom(config: &Config, output: &mut Output) -> Result<Option<ChosenProvider>, CommandError> {
    let is_free = |id: &String| !config.models.keys().any(|known| known.as_str() == id);
    let mut ids = std::iter::once(CUSTOM.to_owned()).chain((2..).map(|n| format!("{CUSTOM}-{n}")));
    let Some(id) = ids.find(is_free) else { return Ok(None) };
    let url = prompt::line("Base URL (for example http://127.0.0.1:1234/v1): ")?;
    let model = prompt::line("Model, as the provider names it: ")?;
    if url.is_empty() || model.is_empty() {
        output.aside(
            "Both are required: no model was set up. `/model` in a chat shows how to do it later.",
        );
        return Ok(None);
    }
    let api_key = ask_key("API key (not shown; Enter if it needs none): ")?;
    let settings = ProviderSettings {
        base_url: Some(url),
        api_key,
        ..ProviderSettings::new(id, ApiKind::OpenAi)
    };
    let model = named(&settings.id, &model);
    Ok(Some(ChosenProvider { settings, model, keyed: None }))
}

/// The full name of a model, which may have been typed with the provider.
fn named(id: &str, model: &str) -> String {
    let prefix = format!("{id}/");
    if model.starts_with(&prefix) { model.to_owned() } else { prefix + model }
}

/// Asks for a key; `None` for an empty one.
fn ask_key(question: &str) -> Result<Option<SecretString>, CommandError> {
    let key = hidden::ask(question).context("cannot read from the terminal")?;
    let key = key.ok_or(CommandError::Interrupted)?;
    // Copied keys often have a space or a line break around them.
    let key = key.expose().trim();
    Ok((!key.is_empty()).then(|| SecretString::from(key)))
}

impl ChosenProvider {
    /// The full name of the model.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn id(&self) -> &str {
        &self.settings.id
    }

    /// The URL to configure; `None` for the provider's own.
    pub(super) fn base_url(&self) -> Option<&str> {
        self.settings.base_url.as_deref()
    }

    pub(super) fn key(&self) -> &Option<SecretString> {
        &self.settings.api_key
    }

    /// The variable that the key is read from if none is configured.
    pub(super) fn variable(&self) -> Option<&'static str> {
        self.keyed.map(|keyed| keyed.variable)
    }

    /// Sends a short request to the model, and returns why it failed.
    pub(super) async fn test(&self) -> Result<(), String> {
        let text = Message::user("Reply with the word: ready");
        let request = ModelRequest { messages: vec![Arc::new(text)], ..ModelRequest::default() };
        let asked = async {
            let http = openclaw_models::http_client()?;
            let model = open(&self.model, std::slice::from_ref(&self.settings), http)?;
            let mut answer = model.stream(request);
            while let Some(chunk) = answer.next().await {
                match chunk? {
                    // The user decides whether to try again.
                    Chunk::Again { error, .. } => return Err(error),
                    Chunk::Text(_) | Chunk::End(_) => break,
                    _ => {}
                }
            }
            Ok(())
        };
        let failed =
            |error: ModelError| clean_line(Untrusted::new(&error.to_string()), ERROR_CHARS);
        match timeout(TEST, asked).await {
            Ok(answered) => answered.map_err(failed),
            Err(_) => Err(format!("timed out after {} s", TEST.as_secs())),
        }
    }
}
