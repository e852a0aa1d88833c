//! Completes arguments of prompts and resource templates, for users.

use std::collections::BTreeMap;

use openclaw_mcp::call::completion::{CompletionError, CompletionOf, Completions};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::mcp::{CompleteParams, CompleteResult};

use super::call::unknown_prompt;
use super::find::outside;
use super::gather::ready;
use super::problem::{Problem, ProblemKind};

/// Completes an argument.
///
/// # Errors
/// Fails if the prompt or template or its argument is unknown, its server is not available, or the
/// server does not complete arguments.
pub(super) async fn complete(
    agent: &AgentTools,
    params: &CompleteParams,
) -> Result<CompleteResult, Problem> {
    let CompleteParams { agent_id: _, server, of, argument, value, args } = params;
    let (server, of) = match server {
        Some(server) => (server.clone(), of.clone()),
        None => {
            let known = agent.prompts();
            let Some(found) = known.into_iter().find(|it| it.command.as_str() == of) else {
                let message = format!("unknown prompt command `{}`", outside(of));
                return Err(Problem::new(ProblemKind::UnknownTool, message)
                    .hint("run `openclaw mcp prompts` to list the prompts"));
            };
            (found.prompt.server, found.prompt.entry.name)
        }
    };
    let inventory = ready(agent, &server).await?.cache().inventory();
    let prompt = inventory.prompts.iter().find(|it| it.name == of);
    let template = inventory.templates.iter().find(|it| it.uri_template == of);
    let reference = match (prompt, template) {
        (Some(prompt), _) => {
            if !prompt.arguments.iter().any(|it| it.name == *argument) {
                let (name, argument) = (outside(&of), outside(argument));
                let message = format!("the prompt `{name}` has no argument `{argument}`");
                let known: Vec<String> =
                    prompt.arguments.iter().map(|it| outside(&it.name)).collect();
                let hint = match known.is_empty() {
                    true => "it takes no arguments".to_owned(),
                    false => format!("it takes: {}", known.join(", ")),
                };
                return Err(Problem::new(ProblemKind::Invalid, message).hint(hint));
            }
            CompletionOf::Prompt(&of)
        }
        (None, Some(_)) => CompletionOf::Template(&of),
        (None, None) => {
            let prompts = inventory.prompts.iter().map(|it| it.name.as_str());
            let templates = inventory.templates.iter().map(|it| it.uri_template.as_str());
            return Err(unknown_prompt(
                &server,
                &of,
                &prompts.chain(templates).collect::<Vec<_>>(),
            ));
        }
    };
    let (typed, none) = (value.as_deref().unwrap_or_default(), BTreeMap::new());
    let given = args.as_ref().unwrap_or(&none);
    match agent.complete(&server, reference, (argument, typed), given, None).await {
        Ok(Completions { values, total, has_more }) => {
            Ok(CompleteResult { values, total, has_more })
        }
        Err(error) => {
            let kind = match &error {
                CompletionError::Unavailable(_) => ProblemKind::Unavailable,
                CompletionError::Unsupported(_) | CompletionError::Failed(_) => {
                    ProblemKind::Unusable
                }
            };
            Err(Problem::new(kind, error.to_string()))
        }
    }
}
