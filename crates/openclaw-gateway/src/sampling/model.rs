//! Asking the agent's model for a server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_models::{Answer, Model, ModelError, Request};
use serde_json::Value;
use tokio::time::timeout;

use super::applicant::Applicant;
use super::params::Params;
use super::refusal::Refusal;
use super::{prompt, reply};

/// How long an answer may take.
const TIME: Duration = Duration::from_secs(120);
/// A longer answer is not read to its end, in bytes: the limit in tokens is the provider's to keep.
const MAX_ANSWER: usize = 1024 * 1024;

/// Asks the agent's models: first the one that the server hints at, then the others in their order.
pub(super) async fn complete(applicant: &Applicant, params: &Params) -> Result<Value, Refusal> {
    let asking = async {
        let models = applicant.agent.models.open().await.map_err(|error| {
            tracing::warn!(server = %applicant.server, %error, "no model for sampling");
            Refusal::NoAnswer
        })?;
        for model in preferred(&models, &params.hints) {
            match ask(&*model, applicant, params).await {
                Ok(answer) => {
                    let (stops, has_tools) = (&params.stop_sequences, !params.tools.is_empty());
                    return reply::result(answer, model.name(), stops, has_tools)
                        .map_err(Refusal::Declined);
                }
                Err(error) => {
                    let (server, model) = (&applicant.server, model.name());
                    tracing::warn!(%server, model, %error, "the model did not answer a server");
                }
            }
        }
        Err(Refusal::NoAnswer)
    };
    timeout(TIME, asking).await.unwrap_or(Err(Refusal::TimedOut(TIME)))
}

/// Models in the order of the hints: a hint is a name or a part of one (2025-06-18, "model preferences").
fn preferred(models: &[Arc<dyn Model>], hints: &[String]) -> Vec<Arc<dyn Model>> {
    let rank = |model: &Arc<dyn Model>| {
        let name = model.name().to_lowercase();
        hints.iter().position(|hint| name.contains(&hint.to_lowercase())).unwrap_or(hints.len())
    };
    let mut models = models.to_vec();
    // Stable: those that no hint means stay in their order.
    models.sort_by_key(rank);
    models
}

/// The name of the model that would be asked first.
pub(super) async fn first(applicant: &Applicant, params: &Params) -> Option<String> {
    let models = applicant.agent.models.open().await.ok()?;
    preferred(&models, &params.hints).first().map(|model| model.name().to_owned())
}

async fn ask(
    model: &dyn Model,
    applicant: &Applicant,
    params: &Params,
) -> Result<Answer, ModelError> {
    let max_tokens = params.max_tokens.min(applicant.sampling.max_tokens);
    let request = prompt::request(&applicant.server, params, model, max_tokens)
        .map_err(|error| ModelError::Invalid { message: error.to_string() })?;
    let has_temperature = request.temperature.is_some();
    match listen(model, request.clone()).await {
        // Some models take no temperature.
        Err(ModelError::Rejected { .. }) if has_temperature => {
            listen(model, Request { temperature: None, ..request }).await
        }
        other => other,
    }
}

async fn listen(model: &dyn Model, request: Request) -> Result<Answer, ModelError> {
    let mut stream = model.stream(request);
    let mut answer = Answer::default();
    while let Some(chunk) = stream.next().await {
        answer.push(chunk?);
        if answer.text.len() > MAX_ANSWER {
            answer.stop_reason = Some(openclaw_models::StopReason::Length);
            break;
        }
    }
    if answer.stop_reason.is_none() {
        return Err(ModelError::Interrupted);
    }
    Ok(answer)
}
