//! Is there an Ollama on this machine, and what can it run?

use std::time::Duration;

use serde::Deserialize;

/// Nobody waits longer for a program that may not be there.
const PATIENCE: Duration = Duration::from_millis(300);
/// More models are not listed.
const MAX_MODELS: usize = 1_000;

#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

/// The models of the Ollama at this address (`http://localhost:11434`), or nothing if there is none, or
/// it does not answer at once.
pub async fn ollama_models(base: &str, http: &reqwest::Client) -> Option<Vec<String>> {
    let address = format!("{}/api/tags", base.trim_end_matches('/'));
    let asked = async {
        let answer = http.get(address).send().await.ok()?.error_for_status().ok()?;
        let tags: Tags = answer.json().await.ok()?;
        Some(tags.models.into_iter().take(MAX_MODELS).map(|tag| tag.name).collect())
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}
