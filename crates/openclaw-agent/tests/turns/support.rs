//! An agent with a scripted model, and tools that are closures.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_agent::{Agent, AgentLimits, LoopEvent, MessageRecord, Turn, TurnResult};
use openclaw_content::{Source, Text, Untrusted, render};
use openclaw_models::scripted::{Scripted, ScriptedTurn as Says};
use openclaw_models::{Message, Model, ModelRequest, Part, ToolResult};
use openclaw_sessions::{EntryKind, ReadFilter, SessionKey, SqliteStore};
use openclaw_tools::audit::Audit;
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    AlwaysOption, ApprovalContext, ApprovalExtent, ApprovalNeed, ApprovalReason, ApprovalRule,
    Approver, Arguments, AuditName, Content, Executed, GrantRule, NoApprover, OutcomeDetails, Pin,
    Pipeline, Tool, ToolCall, ToolEffect, ToolName, ToolOutcome, ToolSource, ToolSpec,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Generous: the machine may be busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

type Act = dyn Fn(Value, Option<ApprovalExtent>) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

/// A tool implemented by a closure.
pub(crate) struct TestTool {
    spec: ToolSpec,
    validator: OnceLock<LazyValidator>,
    standing: ApprovalNeed,
    act: Box<Act>,
}

impl TestTool {
    pub(crate) fn new(
        name: &str,
        act: impl Fn(Value, Option<ApprovalExtent>) -> BoxFuture<'static, ToolOutcome>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let spec = ToolSpec {
            name: ToolName::new(name).unwrap(),
            label: name.to_owned(),
            description: format!("Does {name}"),
            input_schema: ToolSpec::schema(
                json!({ "type": "object", "title": format!("schema of {name}") }),
            ),
            effect: ToolEffect::ReadOnly,
        };
        let validator = OnceLock::new();
        Self { spec, validator, standing: ApprovalNeed::Free, act: Box::new(act) }
    }

    /// Returns a tool whose result is this text, from outside.
    pub(crate) fn saying(name: &str, text: &str) -> Self {
        let text = text.to_owned();
        Self::new(name, move |_, _| Box::pin(std::future::ready(from_outside(&text))))
    }

    /// Sets the input schema.
    pub(crate) fn taking(mut self, schema: Value) -> Self {
        self.spec.input_schema = ToolSpec::schema(schema);
        self
    }

    /// Sets the description.
    pub(crate) fn described(mut self, description: &str) -> Self {
        description.clone_into(&mut self.spec.description);
        self
    }

    pub(crate) fn standing(mut self, standing: ApprovalNeed) -> Self {
        self.standing = standing;
        self.spec.effect = ToolEffect::Unknown;
        self
    }
}

impl std::fmt::Debug for TestTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.spec.name.as_str())
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: self.spec.name.as_str(), source: "test", ..AuditName::default() }
    }

    fn pin(&self, _: ApprovalContext<'_>) -> Pin {
        let is_changed = self.standing == ApprovalNeed::Ask(ApprovalReason::Changed);
        if is_changed { Pin::Changed } else { Pin::New }
    }

    fn rule(&self, _: &Arguments<'_>) -> ApprovalRule {
        match self.standing {
            ApprovalNeed::Free => ApprovalRule::Never,
            ApprovalNeed::Ask(ApprovalReason::EachTime) => ApprovalRule::Always,
            ApprovalNeed::Ask(ApprovalReason::Unlisted) => ApprovalRule::Unlisted,
            ApprovalNeed::Ask(ApprovalReason::MayChange | ApprovalReason::Changed) => {
                ApprovalRule::Auto
            }
        }
    }

    fn is_withheld(&self) -> bool {
        self.standing == ApprovalNeed::Ask(ApprovalReason::Changed)
    }

    fn always(&self, _: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        vec![AlwaysOption { grant: GrantRule::Tool, words: "always".to_owned() }]
    }

    fn validator(&self) -> &LazyValidator {
        self.validator.get_or_init(|| LazyValidator::new(Arc::clone(&self.spec.input_schema)))
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        let arguments = serde_json::from_str(call.arguments.raw().get()).unwrap();
        let acting = (self.act)(arguments, call.approval.cloned());
        Box::pin(async move { Executed::Done(acting.await) })
    }
}

/// An outcome with text from outside.
pub(crate) fn from_outside(text: &str) -> ToolOutcome {
    let text = outside(text, "test");
    let details = Box::new(OutcomeDetails { untrusted: true, ..OutcomeDetails::default() });
    ToolOutcome { content: vec![Content::Text(text)], is_error: false, details }
}

pub(crate) fn outside(text: &str, name: &str) -> Text {
    Text::outside(Untrusted::new(text.to_owned()), Source::other(name)).unwrap()
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tools(pub(crate) Vec<Arc<TestTool>>);

impl ToolSource for Tools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools().into_iter().find(|tool| tool.spec().name.as_str() == name)
    }
}

/// An agent with everything it needs.
pub(crate) struct Bench {
    pub(crate) agent: Agent,
    pub(crate) model: Arc<Scripted>,
    pub(crate) tools: Tools,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) seen: Arc<Mutex<Vec<LoopEvent>>>,
    _folder: TempDir,
}

impl Bench {
    pub(crate) async fn new(says: impl IntoIterator<Item = Says>) -> Self {
        Self::with(Scripted::new(says)).await
    }

    pub(crate) async fn with(model: Scripted) -> Self {
        Self::in_folder(model, tempfile::tempdir().unwrap()).await
    }

    /// Opens a bench with this database.
    pub(crate) async fn of_database(says: impl IntoIterator<Item = Says>, database: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sessions.db"), database).unwrap();
        Self::in_folder(Scripted::new(says), folder).await
    }

    async fn in_folder(model: Scripted, folder: TempDir) -> Self {
        let store = SqliteStore::open(folder.path().join("sessions.db")).await.unwrap().store;
        let model = Arc::new(model);
        let agent = Agent {
            id: "main".to_owned(),
            models: vec![Arc::clone(&model) as Arc<dyn Model>],
            store: Arc::new(store),
            instructions: "Be brief.".to_owned(),
            limits: AgentLimits::default(),
            pipeline: Pipeline::new(Audit::none()),
        };
        Self {
            agent,
            model,
            tools: Tools::default(),
            approver: Arc::new(NoApprover),
            seen: Arc::default(),
            _folder: folder,
        }
    }

    pub(crate) fn tool(mut self, tool: TestTool) -> Self {
        self.tools.0.push(Arc::new(tool));
        self
    }

    pub(crate) fn turn(&self, words: &str) -> Turn {
        let seen = Arc::clone(&self.seen);
        Turn {
            session: key(),
            run: format!("run of {words}").chars().take(40).collect(),
            message: vec![Part::Text(Text::user(words))],
            who: "test".to_owned(),
            briefing: Vec::new(),
            tools: Arc::new(self.tools.clone()),
            approver: Arc::clone(&self.approver),
            permission: openclaw_tools::PermissionMode::Configured,
            observer: Arc::new(move |event| seen.lock().unwrap().push(event)),
            cancel: CancellationToken::new(),
            trace: None,
        }
    }

    /// Sends a message and waits for the answer.
    pub(crate) async fn say(&self, words: &str) -> TurnResult {
        let turn = self.turn(words);
        tokio::time::timeout(LONG, self.agent.answer(&turn)).await.unwrap().unwrap()
    }

    /// All stored messages.
    pub(crate) async fn kept(&self) -> Vec<MessageRecord> {
        let entries = self.agent.store.read(&key(), ReadFilter::all()).await.unwrap();
        let messages = entries.into_iter().filter(|entry| entry.kind == EntryKind::Message);
        messages.map(|entry| serde_json::from_value(entry.body).unwrap()).collect()
    }

    /// The messages of the latest request to the model.
    pub(crate) fn asked_last(&self) -> Vec<Message> {
        let requests = self.model.requests();
        requests.last().unwrap().messages.iter().map(|message| (**message).clone()).collect()
    }

    /// The latest tool results sent to the model.
    pub(crate) fn results(&self) -> Vec<ToolResult> {
        let results = |message: Message| match message {
            Message::Tool { results } => Some(results),
            _ => None,
        };
        self.asked_last().into_iter().rev().find_map(results).unwrap()
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let notice = |event: &LoopEvent| match event {
            LoopEvent::Notice(words) => Some(words.clone()),
            _ => None,
        };
        seen.iter().filter_map(notice).collect()
    }
}

pub(crate) fn key() -> SessionKey {
    SessionKey::new("agent:main:test").unwrap()
}

/// The text of a result, as a model reads it.
pub(crate) fn text(result: &ToolResult) -> String {
    texts(&result.parts)
}

/// The text of parts, as a model reads it.
pub(crate) fn texts(parts: &[Part]) -> String {
    render(parts.iter().filter_map(Part::as_text)).join("\n")
}

/// The system prompt of a request.
pub(crate) fn system(request: &ModelRequest) -> String {
    render(&request.system).join("\n\n")
}

/// Asserts what providers require: every call is followed by its result, and every result has a
/// call.
#[track_caller]
pub(crate) fn assert_acceptable(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { results } => {
                let mut given: Vec<&str> = results.iter().map(|it| it.id.as_str()).collect();
                given.sort_unstable();
                open.sort_unstable();
                assert_eq!(open, given, "{messages:#?}");
                open.clear();
            }
            Message::Assistant { tool_uses, text, parts, .. } => {
                assert!(open.is_empty(), "{messages:#?}");
                assert!(!(text.is_empty() && tool_uses.is_empty() && parts.is_empty()));
                open = tool_uses.iter().map(|it| it.id.as_str()).collect();
            }
            Message::User { .. } => assert!(open.is_empty(), "{messages:#?}"),
        }
    }
}
