//! Sends a server's sampling request to the agent's model.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_models::{Completion, Model, ModelError, ModelRequest};
use serde_json::Value;
use tokio::time::timeout;

use super::context::SamplingContext;
use super::params::Params;
use super::refusal::SamplingRefusal;
use super::{prompt, reply};

/// Timeout for a completion.
const TIME: Duration = Duration::from_secs(120);
/// Maximum size of an answer in bytes; the provider enforces the token limit.
const MAX_ANSWER: usize = 1024 * 1024;

/// Tries the agent's models: those matching the server's hints first, then the others in order.
pub(super) async fn complete(
    context: &SamplingContext,
    params: &Params,
) -> Result<Value, SamplingRefusal> {
    let asking = async {
        let models = context.agent.models.open(None).await.map_err(|error| {
            tracing::warn!(server = %context.server, %error, "no model for sampling");
            SamplingRefusal::NoAnswer
        })?;
        for model in preferred(&models, &params.hints) {
            match ask(&*model, context, params).await {
                Ok(answer) => {
                    let (stops, has_tools) = (&params.stop_sequences, !params.tools.is_empty());
                    return reply::result(answer, model.name(), stops, has_tools)
                        .map_err(SamplingRefusal::Declined);
                }
                Err(error) => {
                    let (server, model) = (&context.server, model.name());
                    tracing::warn!(%server, model, %error, "model failed to answer a server");
                }
            }
        }
        Err(SamplingRefusal::NoAnswer)
    };
    timeout(TIME, asking).await.unwrap_or(Err(SamplingRefusal::TimedOut(TIME)))
}

/// Orders models by the hints: a hint is a name or a part of one (2025-06-18, "model preferences").
fn preferred(models: &[Arc<dyn Model>], hints: &[String]) -> Vec<Arc<dyn Model>> {
    let rank = |model: &Arc<dyn Model>| {
        let name = model.name().to_lowercase();
        hints.iter().position(|hint| name.contains(&hint.to_lowercase())).unwrap_or(hints.len())
    };
    let mut models = models.to_vec();
    // The sort is stable: models without a matching hint keep their order.
    models.sort_by_key(rank);
    models
}

/// Name of the model that would be tried first.
pub(super) async fn first(context: &SamplingContext, params: &Params) -> Option<String> {
    let models = context.agent.models.open(None).await.ok()?;
    preferred(&models, &params.hints).first().map(|model| model.name().to_owned())
}

async fn ask(
    model: &dyn Model,
    context: &SamplingContext,
    params: &Params,
) -> Result<Completion, ModelError> {
    let max_tokens = params.max_tokens.min(context.sampling.max_tokens);
    let request = prompt::request(&context.server, params, model, max_tokens)
        .map_err(|error| ModelError::Invalid { message: error.to_string() })?;
    let has_temperature = request.temperature.is_some();
    match listen(model, request.clone()).await {
        // Some models do not accept a temperature.
        Err(ModelError::Rejected { .. }) if has_temperature => {
            listen(model, ModelRequest { temperature: None, ..request }).await
        }
        other => other,
    }
}

async fn listen(model: &dyn Model, request: ModelRequest) -> Result<Completion, ModelError> {
    let mut stream = model.stream(request);
    let mut answer = Completion::default();
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
