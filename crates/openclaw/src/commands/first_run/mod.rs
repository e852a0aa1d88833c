//! The first chat without a model: a short dialogue sets one up. It is offered once.

mod key_storage;
mod provider;

use std::path::PathBuf;

use openclaw_config::{Config, Document, EditError, Paths};
use openclaw_gateway::unconfigured_model;
use openclaw_models::Offline;
use serde_json::json;

use self::key_storage::{KeyStorage, store_key};
use self::provider::ChosenProvider;
use super::block_on;
use super::link::running;
use super::mcp::write;
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::{BAD, FAINT, GOOD, STRONG};

/// How often the dialogue starts again after a failed test request.
const MAX_TRIES: usize = 5;

/// How the dialogue ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetupOutcome {
    Skipped,
    /// The model is in the configuration.
    SetUp,
    /// The user sets the variable with the key.
    Variable,
}

/// Offers to set up a model if the agent has none. Must only be called with a user at the terminal.
///
/// # Errors
/// If the user interrupts it, or the configuration cannot be written.
pub(crate) fn offer(
    agent: Option<&str>,
    edge: &Edge,
    output: &mut Output,
) -> Result<(), CommandError> {
    let paths = edge.paths()?;
    let answered = AnswerFile(paths.state.join("model-setup.json"));
    // The gateway has a model of its own, or its operator has decided against one.
    if edge.is_ci() || answered.exists() || running(&paths.state, edge).is_some() {
        return Ok(());
    }
    // Problems of the configuration are reported later, with more context.
    let Some(config) = edge.load(&paths.config).config else { return Ok(()) };
    if config.agent(agent).is_none_or(|agent| agent.model.is_some()) {
        return Ok(());
    }
    let environment = edge.environment();
    let found = block_on(async { Ok(unconfigured_model(&environment).await) })?;
    if found.name != Offline::NAME {
        return Ok(());
    }
    let answer = SetUp { config: &config, paths: &paths, edge, output }.run()?;
    if let Err(error) = answered.write(answer) {
        output.warning(&format!("cannot save the answer: {error}"));
    }
    Ok(())
}

/// The file that remembers that the dialogue was shown.
struct AnswerFile(PathBuf);

impl AnswerFile {
    fn exists(&self) -> bool {
        self.0.symlink_metadata().is_ok()
    }

    fn write(&self, answer: SetupOutcome) -> std::io::Result<()> {
        if let Some(folder) = self.0.parent() {
            openclaw_files::make_folder(folder)?;
        }
        let answer = match answer {
            SetupOutcome::Skipped => "skipped",
            SetupOutcome::SetUp => "set-up",
            SetupOutcome::Variable => "variable",
        };
        openclaw_files::replace(&self.0, json!({ "answer": answer }).to_string().as_bytes())
    }
}

/// The dialogue.
struct SetUp<'a> {
    config: &'a Config,
    paths: &'a Paths,
    edge: &'a Edge,
    output: &'a mut Output,
}

impl SetUp<'_> {
    fn run(&mut self) -> Result<SetupOutcome, CommandError> {
        let words = "No language model is set up. Which provider do you use?";
        self.output.aside(&format!("{STRONG}{words}{STRONG:#}"));
        let words = "This is asked once. `/model` in a chat shows how to set one up later.";
        self.output.aside(&format!("{FAINT}{words}{FAINT:#}"));
        for _ in 0..MAX_TRIES {
            let Some(provider) = provider::choose(self.config, self.output)? else {
                return Ok(SetupOutcome::Skipped);
            };
            self.edge.redactor.add_all(provider.key());
            self.output.aside(&format!("{FAINT}sending a test request …{FAINT:#}"));
            if let Err(error) = block_on(async { Ok(provider.test().await) })? {
                let error = self.edge.redactor.redact(&error).into_owned();
                self.output.aside(&format!("{BAD}✗{BAD:#} {error}"));
                continue;
            }
            self.output.aside(&format!("{GOOD}✓{GOOD:#} {} responds", provider.model()));
            match store_key(&provider, self.paths, self.edge, self.output)? {
                Some(KeyStorage::Variable(variable)) => {
                    self.print_variable(variable);
                    return Ok(SetupOutcome::Variable);
                }
                Some(place) => return self.write(&provider, &place),
                None => {}
            }
        }
        Ok(SetupOutcome::Skipped)
    }

    fn print_variable(&mut self, variable: &str) {
        let words = format!(
            "Set ${variable} in the profile of your shell, then run `openclaw chat` again. This \
             chat uses the offline model."
        );
        self.output.aside(&words);
    }

    /// Writes the model and its provider to the configuration.
    fn write(
        &mut self,
        provider: &ChosenProvider,
        place: &KeyStorage,
    ) -> Result<SetupOutcome, CommandError> {
        let Self { config, paths, edge, output } = self;
        let _turn = write::take_turn(paths);
        let failed = |error: EditError| write::failed(&error, paths);
        let document = match config.file {
            Some(_) => write::open(paths, edge)?,
            // With an empty file, the demo server would be gone.
            None => Document::built_in().map_err(failed)?,
        };
        let set = |path: &[&str], value: &str| document.set(path, &value.into()).map_err(failed);
        let id = provider.id();
        if let Some(url) = provider.base_url() {
            set(&["models", "providers", id, "baseUrl"], url)?;
            set(&["models", "providers", id, "api"], "openai")?;
        }
        if let Some(reference) = place.reference() {
            set(&["models", "providers", id, "apiKey"], reference)?;
        }
        set(&["agents", "defaults", "model"], provider.model())?;
        write::save(&document, paths, edge)?;
        let file = paths.config.display();
        output.aside(&format!("{GOOD}✓{GOOD:#} {}; the model is set in {file}", place.words()));
        Ok(SetupOutcome::SetUp)
    }
}
