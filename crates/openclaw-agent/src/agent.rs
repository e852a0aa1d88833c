//! The agent loop: sends a message to a model and calls the requested tools until there is an
//! answer (G1).

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_models::{Message, Model, ModelError, ModelRequest, StopReason, Usage};
use openclaw_sessions::{SessionStore, StoreError};
use openclaw_tools::Pipeline;

use crate::calls::{self, CallSettings};
use crate::compaction::{self, Compaction, ContextBudget};
use crate::error::TurnError;
use crate::event::LoopEvent;
use crate::history::{History, MessageRecord, may_mean_media};
use crate::lease;
use crate::limits::AgentLimits;
use crate::offer::OfferedTools;
use crate::prompt;
use crate::repetition::Repetition;
use crate::stream::{self, ModelOutput};
use crate::tokens;
use crate::traced;
use crate::turn::{EndReason, Turn, TurnResult};

/// Maximum number of rejected tools that a turn continues without.
const MAX_REFUSED: usize = 16;

/// An agent. It has no state between turns: turns of different sessions run concurrently, turns of
/// one session run one at a time.
#[derive(Debug)]
pub struct Agent {
    /// The agent's id.
    pub id: String,
    /// The primary model, then its fallbacks in order. Never empty.
    pub models: Vec<Arc<dyn Model>>,
    /// Where sessions are stored.
    pub store: Arc<dyn SessionStore>,
    /// System prompt text in addition to the built-in rules.
    pub instructions: String,
    /// Limits on rounds, calls and context.
    pub limits: AgentLimits,
    /// The pipeline that every tool call goes through.
    pub pipeline: Pipeline,
}

/// The state of a running turn.
struct RunningTurn<'a> {
    agent: &'a Agent,
    turn: &'a Turn,
    history: History,
    /// Index of the model in use.
    model: usize,
    /// Tools found by the search tool, or called earlier in the session.
    found: BTreeSet<String>,
    /// Tools that a provider has rejected.
    refused: BTreeSet<String>,
    /// Indices of models that do not support tools.
    without_tools: BTreeSet<usize>,
    usage: Usage,
    rounds: u32,
    calls: u32,
}

impl Agent {
    /// Answers a message. Every message is stored as soon as it is complete.
    ///
    /// # Errors
    /// Fails if no model returns an answer or the session cannot be used.
    pub async fn answer(&self, turn: &Turn) -> Result<TurnResult, TurnError> {
        self.alone(turn, self.answer_alone(turn)).await
    }

    /// Replaces all messages of the session with a summary. The text of the result is for the user.
    ///
    /// # Errors
    /// Fails if the session cannot be used.
    pub async fn compact(&self, turn: &Turn) -> Result<TurnResult, TurnError> {
        self.alone(turn, self.compact_alone(turn)).await
    }

    /// Does work with the exclusive right to the session.
    async fn alone(
        &self,
        turn: &Turn,
        work: impl Future<Output = Result<TurnResult, TurnError>>,
    ) -> Result<TurnResult, TurnError> {
        if self.models.is_empty() {
            return Err(TurnError::NoModel);
        }
        self.store.open(&turn.session, &self.id).await?;
        let Some(lease) = lease::take(&*self.store, turn).await? else {
            return Ok(self.without_answer(EndReason::Cancelled));
        };
        let answer = tokio::select! {
            biased;
            answer = Box::pin(work) => answer,
            () = lease.lost() => Err(TurnError::TakenOver),
        };
        lease.release().await;
        answer
    }

    /// The result of a turn without a request to the model, such as one that was cancelled while it
    /// waited for its session.
    fn without_answer(&self, ended: EndReason) -> TurnResult {
        TurnResult {
            text: String::new(),
            parts: Vec::new(),
            ended,
            rounds: 0,
            calls: 0,
            usage: Usage::default(),
            model: self.models.first().map_or_else(String::new, |model| model.name().to_owned()),
        }
    }

    async fn compact_alone(&self, turn: &Turn) -> Result<TurnResult, TurnError> {
        let store = Arc::clone(&self.store);
        let mut history = History::load(store, turn.session.clone(), turn.run.clone()).await?;
        let model = &*self.models[0];
        let window = self.limits.context_tokens.unwrap_or_else(|| model.context_tokens());
        let done = compaction::compact(&mut history, model, window, &turn.cancel).await?;
        let ended =
            if done == Compaction::Cancelled { EndReason::Cancelled } else { EndReason::Done };
        let text = match done {
            Compaction::Cancelled => String::new(),
            Compaction::Nothing => "There is nothing to summarize yet.".to_owned(),
            Compaction::Done { has_summary: false, .. } => {
                "The model did not write a summary: of the conversation so far, it now only sees \
                 your own messages. All messages stay in the history."
                    .to_owned()
            }
            Compaction::Done { before, after, .. } => {
                let more = if after > before { " (the conversation was short)" } else { "" };
                format!(
                    "The conversation was summarized: about {before} tokens became {after}{more}. \
                     All messages stay in the history."
                )
            }
        };
        Ok(TurnResult { text, ..self.without_answer(ended) })
    }

    async fn answer_alone(&self, turn: &Turn) -> Result<TurnResult, TurnError> {
        let store = Arc::clone(&self.store);
        let mut history = History::load(store, turn.session.clone(), turn.run.clone()).await?;
        let message = Message::User { parts: turn.message.clone() };
        let found = called_before(&history);
        history.add(MessageRecord { message, calls: Vec::new(), model: None, usage: None }).await?;
        let course = RunningTurn {
            agent: self,
            turn,
            history,
            model: 0,
            found,
            refused: BTreeSet::new(),
            without_tools: BTreeSet::new(),
            usage: Usage::default(),
            rounds: 0,
            calls: 0,
        };
        course.run().await
    }
}

impl RunningTurn<'_> {
    async fn run(mut self) -> Result<TurnResult, TurnError> {
        let limits = self.agent.limits;
        let Agent { id, pipeline, .. } = self.agent;
        let (parallel, fallback) = (limits.parallel_calls, limits.fallback);
        let manner = CallSettings { agent: id, pipeline, parallel, fallback };
        let mut repetition = Repetition::default();
        while self.rounds < limits.max_rounds {
            self.rounds += 1;
            let (spoken, offers) = self.ask().await?;
            // Providers reject a message without content.
            if !spoken.is_empty() {
                self.keep(&spoken).await?;
            }
            if spoken.is_cancelled {
                self.close(&spoken).await?;
                return Ok(self.end(spoken, EndReason::Cancelled));
            }
            if spoken.tool_uses.is_empty() {
                let (ended, reason) = match &spoken.stop {
                    Some(StopReason::Length) => (EndReason::CutOff, ""),
                    Some(StopReason::Refused(reason)) => (EndReason::Refused, reason.as_str()),
                    Some(StopReason::Other(reason)) => (EndReason::Done, reason.as_str()),
                    Some(StopReason::Done | StopReason::ToolUse | StopReason::StopSequence)
                    | None => (EndReason::Done, ""),
                };
                if !reason.is_empty() {
                    let words = format!("the model provider ended the answer: `{reason}`");
                    self.turn.observer.see(LoopEvent::Notice(words));
                }
                return Ok(self.end(spoken, ended));
            }
            let uses = &spoken.tool_uses;
            let done = calls::carry_out(self.turn, &offers, uses, &mut repetition, manner).await;
            self.calls += u32::try_from(uses.len()).unwrap_or(u32::MAX);
            self.found.extend(offers.search.iter().flat_map(|search| search.take_found()));
            let message = Message::Tool { results: done.results };
            self.history
                .add(MessageRecord { message, calls: done.notes, model: None, usage: None })
                .await?;
            if done.is_cancelled {
                return Ok(self.end(spoken, EndReason::Cancelled));
            }
            if done.is_stuck {
                return Ok(self.end(spoken, EndReason::GoingInCircles));
            }
        }
        Ok(self.end(ModelOutput::default(), EndReason::TooManyRounds))
    }

    /// Runs one round. Returns the model's output and the tools it was offered.
    async fn ask(&mut self) -> Result<(ModelOutput, OfferedTools), TurnError> {
        let mut is_urgent = false;
        loop {
            let model = Arc::clone(&self.agent.models[self.model]);
            let takes_tools = model.takes_tools() && !self.without_tools.contains(&self.model);
            let offers = match takes_tools {
                true => OfferedTools::of(
                    &*self.turn.tools,
                    model.dialect(),
                    self.agent.limits.search_threshold,
                    &self.found,
                    &self.refused,
                ),
                false => OfferedTools::none(),
            };
            let request = self.request(&*model, &offers, is_urgent).await?;
            let mut spoken = ModelOutput::default();
            let (observer, cancel) = (&*self.turn.observer, &self.turn.cancel);
            let window = self.window(&*model);
            let tracer = self.agent.pipeline.tracer();
            let span = traced::start(tracer, model.name(), self.turn);
            let heard =
                stream::listen(&*model, request, window, observer, cancel, &mut spoken).await;
            traced::end(&span, &spoken, heard.as_ref().err());
            drop(span);
            self.usage += spoken.usage;
            if !spoken.is_empty() || (heard.is_ok() && !spoken.is_cancelled) {
                self.history.keep_hidden().await?;
            }
            let Err(error) = heard else { return Ok((spoken, offers)) };
            // What the user has already seen is stored and not retried. No call was made yet.
            spoken.tool_uses.clear();
            if !spoken.is_empty() {
                self.keep(&spoken).await?;
                return Err(error.into());
            }
            match error {
                ModelError::ToolRejected { tool, message }
                    if self.refused.len() < MAX_REFUSED && !self.refused.contains(&tool) =>
                {
                    tracing::warn!(%tool, reason = %message, "provider rejected a tool");
                    let words = format!(
                        "the model provider rejected the tool `{tool}`; continuing without it"
                    );
                    observer.see(LoopEvent::Notice(words));
                    self.refused.insert(tool);
                }
                ModelError::NoTools { message, .. } if !offers.tools.is_empty() => {
                    let name = model.name();
                    tracing::warn!(model = name, reason = %message, "model does not support tools");
                    let words = format!("`{name}` does not support tools; continuing without them");
                    observer.see(LoopEvent::Notice(words));
                    self.without_tools.insert(self.model);
                }
                ModelError::ContextTooLong if !is_urgent => is_urgent = true,
                error if may_mean_media(&error) && self.history.hide_media() => {
                    tracing::warn!(%error, "retrying without images and files");
                    let words = format!("{error}; retrying without images and files");
                    observer.see(LoopEvent::Notice(words));
                }
                error if self.model + 1 < self.agent.models.len() => {
                    // The images were not the cause, and the next model may accept them.
                    self.history.show_media();
                    self.model += 1;
                    let next = self.agent.models[self.model].name();
                    tracing::warn!(%error, model = model.name(), next, "falling back");
                    observer.see(LoopEvent::Notice(format!("{error}; falling back to `{next}`")));
                }
                error => return Err(error.into()),
            }
        }
    }

    /// The context window of a model, in tokens.
    fn window(&self, model: &dyn Model) -> u64 {
        self.agent.limits.context_tokens.unwrap_or_else(|| model.context_tokens())
    }

    async fn request(
        &mut self,
        model: &dyn Model,
        offers: &OfferedTools,
        is_urgent: bool,
    ) -> Result<ModelRequest, StoreError> {
        let briefing = &self.turn.briefing;
        let system = prompt::system(&self.agent.instructions, briefing, offers.index.as_deref());
        let of_tool = |schema: &serde_json::Value| tokens::of_text(&schema.to_string());
        let of_tools: u64 = offers
            .tools
            .iter()
            .map(|tool| tokens::of_text(&tool.description) + of_tool(&tool.schema))
            .sum();
        let of_system: u64 = system.iter().map(|it| tokens::of_bytes(it.rendered_len())).sum();
        let fixed = of_system + of_tools;
        let window = self.window(model);
        let need = ContextBudget { window, fixed, is_urgent, cancel: &self.turn.cancel };
        let (history, observer) = (&mut self.history, &*self.turn.observer);
        compaction::make_fit(history, model, need, observer).await?;
        let (messages, tools) = (self.history.messages(), offers.tools.clone());
        Ok(ModelRequest { system, messages, tools, ..ModelRequest::default() })
    }

    async fn keep(&mut self, spoken: &ModelOutput) -> Result<(), StoreError> {
        let record = MessageRecord {
            message: spoken.message(),
            calls: Vec::new(),
            model: Some(self.agent.models[self.model].name().to_owned()),
            usage: Some(spoken.usage),
        };
        self.history.add(record).await
    }

    /// Adds an error result for each call that was requested but never made.
    async fn close(&mut self, spoken: &ModelOutput) -> Result<(), StoreError> {
        if spoken.tool_uses.is_empty() {
            return Ok(());
        }
        let results = spoken.tool_uses.iter().map(|call| openclaw_models::ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![openclaw_models::Part::ours("The call was cancelled by the user.")],
            is_error: true,
        });
        let message = Message::Tool { results: results.collect() };
        self.history
            .add(MessageRecord { message, calls: Vec::new(), model: None, usage: None })
            .await
    }

    fn end(&self, spoken: ModelOutput, ended: EndReason) -> TurnResult {
        TurnResult {
            text: spoken.text,
            parts: spoken.parts,
            ended,
            rounds: self.rounds,
            calls: self.calls,
            usage: self.usage,
            model: self.agent.models[self.model].name().to_owned(),
        }
    }
}

/// Tools called earlier in this session, which need not be searched for again.
fn called_before(history: &History) -> BTreeSet<String> {
    let uses = history.said().iter().flat_map(|said| match &*said.message {
        Message::Assistant { tool_uses, .. } => tool_uses.as_slice(),
        _ => &[],
    });
    uses.map(|call| call.name.clone()).collect()
}
