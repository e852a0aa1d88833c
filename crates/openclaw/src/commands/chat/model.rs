//! The model of a conversation: `--model` and `/model`.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::models::{ListParams, ModelChoice};
use openclaw_protocol::sessions::{PatchParams, Row};
use openclaw_protocol::{RequestError, Surface, rpc};

use super::Chat;
use crate::commands::link::look;
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::{FAINT, STRONG};

/// The maximum length of a name.
const NAME_CHARS: usize = 120;

/// The model that the user has chosen for a conversation.
#[derive(Debug, Default)]
pub(super) struct SessionModel {
    name: Option<String>,
    /// Whether the gateway does not know it yet: a conversation is not created before its first
    /// message.
    is_new: bool,
}

impl SessionModel {
    /// Returns the model of a conversation; of a new one if `row` is `None`.
    pub(super) fn of(row: Option<&Row>) -> Self {
        Self { name: row.and_then(|row| row.chosen_model().map(ToOwned::to_owned)), is_new: false }
    }

    /// Returns the same model for a new conversation.
    pub(super) fn for_new(&self) -> Self {
        Self { name: self.name.clone(), is_new: self.name.is_some() }
    }

    /// Returns its name, if it is not the agent's default.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Chooses a model by its name, or by a part of it that no other model contains; or any model of
    /// a configured provider by its whole name.
    pub(super) async fn choose(
        &mut self,
        surface: &dyn Surface,
        agent: &str,
        name: &str,
    ) -> Result<(), CommandError> {
        let known = list(surface, agent, Some(name)).await?;
        let exact = known.iter().find(|model| model.id == name);
        let mut partial = known.iter().filter(|model| model.id.contains(name));
        let chosen = match (exact, partial.next(), partial.next()) {
            (Some(model), _, _) | (None, Some(model), None) => model,
            (None, Some(_), Some(_)) => {
                return Err(CommandError::usage(format!("`{name}` is a part of several models"))
                    .hint(configured(&known)));
            }
            (None, None, _) => {
                return Err(
                    CommandError::usage(format!("unknown model `{name}`")).hint(configured(&known))
                );
            }
        };
        *self = Self { name: Some(chosen.id.clone()), is_new: true };
        Ok(())
    }

    /// Tells the gateway about a new choice. Must be called before a message is sent.
    pub(super) async fn apply(
        &mut self,
        surface: &dyn Surface,
        session: &str,
        agent: Option<String>,
    ) -> Result<(), RequestError> {
        if std::mem::take(&mut self.is_new) {
            let params = PatchParams {
                key: session.to_owned(),
                agent_id: agent,
                model: Some(self.name.clone()),
                ..PatchParams::default()
            };
            let _ = look::<rpc::SessionsPatch>(surface, params).await?;
        }
        Ok(())
    }
}

fn configured(known: &[ModelChoice]) -> String {
    let names: Vec<&str> = known.iter().map(|model| model.id.as_str()).collect();
    format!(
        "configured: {}; any other as `PROVIDER/MODEL`, if the provider is configured",
        names.join(", ")
    )
}

/// Lists the models of the agent and, if its provider is configured, this one.
async fn list(
    surface: &dyn Surface,
    agent: &str,
    other: Option<&str>,
) -> Result<Vec<ModelChoice>, RequestError> {
    let params = ListParams {
        agent_id: Some(agent.to_owned()),
        model: other.map(ToOwned::to_owned),
        ..ListParams::default()
    };
    let listed = look::<rpc::ModelsList>(surface, params).await?;
    Ok(listed.models)
}

/// `/model NAME`: switches to another model.
pub(super) async fn switch(chat: &mut Chat<'_>, name: &str, output: &mut Output) -> bool {
    let agent = chat.whom.agent.clone();
    match chat.model.choose(chat.surface, &agent, name).await {
        Ok(()) => {
            let name = clean(chat.model.name().unwrap_or_default());
            output.folded(format_args!("Switched to `{name}`"));
            true
        }
        Err(error) => {
            output.error(&error);
            false
        }
    }
}

/// `/model`: shows the model and the others.
pub(super) async fn show(chat: &Chat<'_>, output: &mut Output) {
    let current = chat.model.name().unwrap_or(&chat.whom.model).to_owned();
    output.folded(format_args!("{STRONG}{}{STRONG:#}", clean(&current)));
    let others = list(chat.surface, &chat.whom.agent, None).await.unwrap_or_default();
    for other in others.iter().filter(|other| other.id != current) {
        let name = clean(&other.id);
        output.folded(format_args!("  {name} {FAINT}(/model {name} to switch){FAINT:#}"));
    }
    if chat.whom.is_offline() {
        output.folded(
            "This is not a language model: it understands simple requests such as `what time is it` \
             or `add 2 and 3`, and `/call TOOL {JSON}`, and calls real tools.",
        );
    }
    output.folded(
        "`/model PROVIDER/MODEL` switches to any other model of a configured provider. To configure \
         one, set `agents.defaults.model`, for example to `anthropic/claude-sonnet-4-5`; or set \
         $ANTHROPIC_API_KEY, $OPENAI_API_KEY or $GEMINI_API_KEY; or run Ollama locally.",
    );
}

fn clean(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}
