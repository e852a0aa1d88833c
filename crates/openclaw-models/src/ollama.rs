//! Detects a local Ollama, and which of its models can chat.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::json;

/// The timeout for listing the models: Ollama may not be running.
const PATIENCE: Duration = Duration::from_millis(300);
/// The timeout for the details of a model. They are requested in parallel.
const PATIENCE_FOR_DETAILS: Duration = Duration::from_millis(500);
/// The maximum number of models; further ones are ignored.
const MAX_MODELS: usize = 1_000;
/// The maximum number of models whose details are requested.
const MAX_ASKED: usize = 8;

/// What a local Ollama offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalOllama {
    /// There is none, or it did not respond in time.
    Absent,
    /// It has no model that can chat.
    CannotChat,
    /// The name of a model that can chat.
    Has(String),
}

#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
struct Details {
    #[serde(default)]
    family: Option<String>,
    #[serde(default)]
    families: Option<Vec<String>>,
}

/// Versions before 0.6.4 report no capabilities.
#[derive(Deserialize)]
struct ModelDetails {
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

/// What a model can do, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ability {
    Tools,
    Words,
    /// Not reported; it may be able to chat.
    Unknown,
    Nothing,
}

/// Returns the model that an agent should use of the Ollama at this address
/// (`http://localhost:11434`): the first that supports tools, or else the first that can chat.
/// Embedding models do neither.
pub async fn find_ollama(base: &str, http: &reqwest::Client) -> LocalOllama {
    let base = base.trim_end_matches('/');
    let Some(listed) = list(base, http).await else { return LocalOllama::Absent };
    let may_chat: Vec<&Tag> = listed.iter().filter(|tag| !tag.is_of_embeddings()).collect();
    let asked = may_chat.iter().take(MAX_ASKED);
    let mut told: FuturesOrdered<BoxFuture<'_, Option<Ability>>> =
        asked.map(|tag| ability(base, http, &tag.name).boxed()).collect();
    let mut best = None;
    for tag in &may_chat {
        // Models without requested details come after all others.
        let ability = told.next().await.flatten().unwrap_or_else(|| tag.guess());
        if ability != Ability::Nothing && best.is_none_or(|(known, _)| ability < known) {
            best = Some((ability, tag));
        }
        if ability == Ability::Tools {
            break;
        }
    }
    best.map_or(LocalOllama::CannotChat, |(_, tag)| LocalOllama::Has(tag.name.clone()))
}

async fn list(base: &str, http: &reqwest::Client) -> Option<Vec<Tag>> {
    let asked = async {
        let answer = http.get(format!("{base}/api/tags")).send().await.ok()?;
        let mut tags: Tags = answer.error_for_status().ok()?.json().await.ok()?;
        tags.models.truncate(MAX_MODELS);
        Some(tags.models)
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

async fn ability(base: &str, http: &reqwest::Client, name: &str) -> Option<Ability> {
    let asked = async {
        let question = http.post(format!("{base}/api/show")).json(&json!({ "model": name }));
        let answer = question.send().await.ok()?.error_for_status().ok()?;
        let capabilities = answer.json::<ModelDetails>().await.ok()?.capabilities?;
        let has = |name: &str| capabilities.iter().any(|it| it == name);
        Some(match (has("completion"), has("tools")) {
            (true, true) => Ability::Tools,
            (true, false) => Ability::Words,
            (false, _) => Ability::Nothing,
        })
    };
    tokio::time::timeout(PATIENCE_FOR_DETAILS, asked).await.ok().flatten()
}

impl Tag {
    /// Models of the BERT family (`bert`, `nomic-bert`, `xlm-roberta`) only make embeddings.
    fn is_of_embeddings(&self) -> bool {
        let Some(Details { family, families }) = &self.details else { return false };
        family.iter().chain(families.iter().flatten()).any(|family| family.contains("bert"))
    }

    /// Guesses the ability from the name where it is not reported: most embedding models have `embed`
    /// in it.
    fn guess(&self) -> Ability {
        if self.name.contains("embed") { Ability::Nothing } else { Ability::Unknown }
    }
}
