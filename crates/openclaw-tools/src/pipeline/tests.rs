//! Every step of a call, and its audit log line.

mod begun;

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use openclaw_content::Text;
use serde_json::{Value, json};

use super::*;
use crate::approval::{
    ApprovalAnswer, ApprovalContext, ApprovalExtent, ApprovalRequest, ApprovalRule, Approver,
    Fallback, Pin, ToolFingerprint,
};
use crate::arguments::Given;
use crate::audit::AuditOptions;
use crate::context::{CallOptions, Consent};
use crate::name::ToolName;
use crate::outcome::{Content, OutcomeDetails, RefusedBy, ToolFailure};
use crate::policy::Decision;
use crate::schema::LazyValidator;
use crate::source::{AuditName, CallLane, OnExecuted, Ready, StartedCall, ToolSource};
use crate::spec::{ToolEffect, ToolSpec};

/// A call that was started and never ends.
#[derive(Default)]
struct HangingCall(Mutex<Option<OnExecuted>>);

impl fmt::Debug for HangingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HangingCall")
    }
}

impl CallLane for HangingCall {
    fn flush(&self) {}

    fn cancel(&self, _: u64) -> bool {
        self.0.lock().unwrap().take().is_some()
    }
}

/// A tool with scripted behaviour that counts its calls.
#[derive(Debug)]
struct ScriptedTool {
    spec: ToolSpec,
    validator: LazyValidator,
    decision: Decision,
    flaw: Option<String>,
    pin: Pin,
    rule: ApprovalRule,
    is_current: bool,
    limit: Result<(), String>,
    failure: Option<ToolFailure>,
    /// How often it reports that it is stale.
    stale: AtomicUsize,
    hangs: bool,
    hanging: Arc<HangingCall>,
    pinned: AtomicUsize,
    executed: AtomicUsize,
    kept: AtomicUsize,
}

impl ScriptedTool {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"to": {"type": "string"}},
                            "additionalProperties": false});
        let spec = ToolSpec {
            name: ToolName::new("push").unwrap(),
            label: "Push".to_owned(),
            description: "Pushes.".to_owned(),
            input_schema: ToolSpec::schema(schema),
            effect: ToolEffect::ReadOnly,
        };
        Self {
            validator: LazyValidator::new(Arc::clone(&spec.input_schema)),
            spec,
            decision: Decision::Allowed,
            flaw: None,
            pin: Pin::New,
            rule: ApprovalRule::Auto,
            is_current: true,
            limit: Ok(()),
            failure: None,
            stale: AtomicUsize::new(0),
            hangs: false,
            hanging: Arc::default(),
            pinned: AtomicUsize::new(0),
            executed: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
        }
    }
}

impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: "push", source: "mcp", server: "shop", raw_tool: "push it" }
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn flaw(&self) -> Option<String> {
        self.flaw.clone()
    }

    fn pin(&self, _: ApprovalContext<'_>) -> Pin {
        self.pinned.fetch_add(1, Ordering::Relaxed);
        self.pin
    }

    fn rule(&self, _: &Arguments<'_>) -> ApprovalRule {
        self.rule
    }

    fn keep(&self, _: &ApprovalExtent, _: Pin, _: ApprovalContext<'_>) {
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    fn fingerprint(&self) -> Option<ToolFingerprint> {
        Some(ToolFingerprint::new([7; 32]))
    }

    fn is_current(&self) -> bool {
        self.is_current
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn limit(&self, _: tokio::time::Instant, _: CallOptions<'_>) -> Result<(), String> {
        self.limit.clone()
    }

    fn execute<'a>(&'a self, _: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            self.result()
        })
    }

    fn ready(self: Arc<Self>, _: CallOptions<'_>) -> Option<Box<dyn Ready>> {
        Some(Box::new(ReadyTool(self)))
    }
}

impl ScriptedTool {
    fn result(&self) -> Executed {
        let left = self.stale.load(Ordering::Relaxed);
        let details =
            Box::new(OutcomeDetails { failure: self.failure, ..OutcomeDetails::default() });
        let content = vec![Content::Text(Text::ours("pushed"))];
        let outcome = ToolOutcome { content, is_error: self.failure.is_some(), details };
        if left > 0 {
            self.stale.store(left - 1, Ordering::Relaxed);
            return Executed::Stale(outcome);
        }
        Executed::Done(outcome)
    }
}

struct ReadyTool(Arc<ScriptedTool>);

impl Ready for ReadyTool {
    fn start(self: Box<Self>, _: ToolCall<'_>, done: OnExecuted) -> StartedCall {
        let tool = &self.0;
        tool.executed.fetch_add(1, Ordering::Relaxed);
        match tool.hangs {
            true => drop(tool.hanging.0.lock().unwrap().replace(done)),
            false => done(tool.result()),
        }
        StartedCall::new(Arc::clone(&tool.hanging) as Arc<dyn CallLane>, 1)
    }
}

/// A source with one tool, and the number of lookups.
#[derive(Debug)]
struct Shop(Arc<ScriptedTool>, AtomicUsize);

impl Shop {
    fn with(change: impl FnOnce(&mut ScriptedTool)) -> Self {
        let mut tool = ScriptedTool::new();
        change(&mut tool);
        Self(Arc::new(tool), AtomicUsize::new(0))
    }
}

impl ToolSource for Shop {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::clone(&self.0) as Arc<dyn Tool>]
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        (name == "push").then(|| Arc::clone(&self.0) as Arc<dyn Tool>)
    }
}

#[derive(Debug)]
struct Answers(ApprovalAnswer);

impl Approver for Answers {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

const YES: ApprovalAnswer = ApprovalAnswer::Yes(ApprovalExtent::Once);

/// A pipeline with an audit log.
struct Logged {
    pipeline: Pipeline,
    folder: tempfile::TempDir,
}

impl Logged {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::to_file(&file, AuditOptions::default()).unwrap();
        Self { pipeline: Pipeline::new(audit), folder }
    }

    /// Returns the lines of the audit log.
    async fn lines(&self) -> Vec<Value> {
        assert!(self.pipeline.audit().flush().await);
        let text = std::fs::read_to_string(self.folder.path().join("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Returns the outcome of a call, and its audit log lines.
async fn lines_of(
    shop: &Shop,
    name: &str,
    arguments: &str,
    answer: ApprovalAnswer,
) -> (ToolOutcome, Vec<Value>) {
    let logged = Logged::new();
    let approver = Answers(answer);
    let consent = Consent::Ask { approver: &approver, fallback: Fallback::Deny };
    let context = CallContext {
        agent: Some("main"),
        session: Some("s"),
        consent,
        ..CallContext::by_hand("test")
    };
    let call = Call { name, arguments: Given::Text(arguments) };
    (logged.pipeline.call(shop, call, &context).await, logged.lines().await)
}

#[tokio::test]
async fn every_outcome_leaves_one_line_that_says_which_step_it_was() {
    type Change = fn(&mut ScriptedTool);
    /// The tool, its name, the arguments, the user's answer, the outcome, and the check that
    /// refused.
    type Row =
        (Change, &'static str, &'static str, ApprovalAnswer, &'static str, Option<RefusedBy>);
    let denied: Change = |tool| tool.decision = Decision::Denied { by: "tools.deny".to_owned() };
    let each_time: Change = |tool| tool.rule = ApprovalRule::Always;
    let nothing: Change = |_| {};
    let fails: [(Change, &'static str); 4] = [
        (|tool| tool.failure = Some(ToolFailure::TimedOut), "timed-out"),
        (|tool| tool.failure = Some(ToolFailure::Unavailable), "unavailable"),
        (|tool| tool.failure = Some(ToolFailure::Protocol), "protocol-error"),
        (|tool| tool.failure = Some(ToolFailure::InvalidResponse), "invalid-response"),
    ];
    let mut table: Vec<Row> = vec![
        (nothing, "push", "{}", YES, "ok", None),
        (nothing, "pull", "{}", YES, "denied", Some(RefusedBy::UnknownTool)),
        (denied, "push", "{}", YES, "denied", Some(RefusedBy::Policy)),
        (
            |tool| tool.flaw = Some("x".to_owned()),
            "push",
            "{}",
            YES,
            "protocol-error",
            Some(RefusedBy::Unusable),
        ),
        (each_time, "push", "{}", YES, "ok", None),
        (each_time, "push", "{}", ApprovalAnswer::No, "denied", Some(RefusedBy::Declined)),
        (
            each_time,
            "push",
            "{}",
            ApprovalAnswer::Unanswered,
            "denied",
            Some(RefusedBy::NobodyToAsk),
        ),
        (each_time, "push", "{}", ApprovalAnswer::NotAsked, "denied", Some(RefusedBy::NobodyToAsk)),
        (
            |tool| tool.pin = Pin::Changed,
            "push",
            "{}",
            ApprovalAnswer::Unanswered,
            "denied",
            Some(RefusedBy::Changed),
        ),
        (
            |tool| tool.pin = Pin::Changed,
            "push",
            "{}",
            ApprovalAnswer::NotEntitled("someone else".to_owned()),
            "denied",
            Some(RefusedBy::Changed),
        ),
        (
            each_time,
            "push",
            "{}",
            ApprovalAnswer::NotEntitled("someone else".to_owned()),
            "denied",
            Some(RefusedBy::NobodyToAsk),
        ),
        (|tool| tool.pin = Pin::Changed, "push", "{}", YES, "ok", None),
        (nothing, "push", r#"{"to":5}"#, YES, "invalid-arguments", Some(RefusedBy::Schema)),
        (
            each_time,
            "push",
            r#"{"to":5}"#,
            ApprovalAnswer::No,
            "invalid-arguments",
            Some(RefusedBy::Schema),
        ),
        (nothing, "push", "{no", YES, "invalid-arguments", Some(RefusedBy::Schema)),
        (nothing, "push", "[]", YES, "invalid-arguments", Some(RefusedBy::Schema)),
        (nothing, "push", r#"{"to":null}"#, YES, "ok", None),
        (
            |tool| tool.limit = Err("later".to_owned()),
            "push",
            "{}",
            YES,
            "rate-limited",
            Some(RefusedBy::Limit),
        ),
    ];
    table.extend(fails.map(|(change, outcome)| (change, "push", "{}", YES, outcome, None)));
    for (change, name, arguments, answer, expected, refused) in table {
        let shop = Shop::with(change);
        let (outcome, lines) = lines_of(&shop, name, arguments, answer).await;
        assert_eq!(lines.len(), 1, "{expected}: {lines:?}");
        let line = &lines[0];
        assert_eq!(line["outcome"], expected, "{line}");
        assert_eq!(outcome.details.refused, refused, "{line}");
        assert_eq!(line["refusedBy"].as_str(), refused.map(RefusedBy::name), "{line}");
        assert_eq!((&line["tool"], &line["agent"]), (&json!(name), &json!("main")));
        if name == "push" {
            assert_eq!((&line["server"], &line["rawTool"]), (&json!("shop"), &json!("push it")));
            assert_eq!(outcome.details.server.as_deref(), Some("shop"));
        }
        let executed = shop.0.executed.load(Ordering::Relaxed);
        assert_eq!(executed, usize::from(refused.is_none()), "{line}");
        assert_eq!(shop.1.load(Ordering::Relaxed), 1, "it is looked up once");
        assert!(shop.0.pinned.load(Ordering::Relaxed) <= 1, "its pin is checked once");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_a_line_too() {
    let logged = Logged::new();
    let shop = Shop::with(|tool| tool.hangs = true);
    let call = Call { name: "push", arguments: Given::Text("") };
    let context = CallContext::by_hand("test");
    let calling = logged.pipeline.call(&shop, call, &context);
    assert!(futures_util::FutureExt::now_or_never(calling).is_none());
    let lines = logged.lines().await;
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&line["outcome"], &line["server"]), (&json!("cancelled"), &json!("shop")));
}

#[tokio::test]
async fn a_stale_tool_is_looked_up_once_more_and_logged_once() {
    for (stale, executed) in [(1, 2), (5, 2)] {
        let shop = Shop::with(|tool| tool.stale = AtomicUsize::new(stale));
        let (_, lines) = lines_of(&shop, "push", "", YES).await;
        assert_eq!(lines.len(), 1);
        assert_eq!(shop.0.executed.load(Ordering::Relaxed), executed);
    }
}

#[tokio::test]
async fn a_tool_that_changes_while_the_user_decides_is_not_called() {
    let shop = Shop::with(|tool| {
        tool.rule = ApprovalRule::Always;
        tool.is_current = false;
    });
    let (outcome, _) = lines_of(&shop, "push", "", YES).await;
    assert_eq!(outcome.details.refused, Some(RefusedBy::Changed));
    assert_eq!(shop.0.executed.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_caller_who_decides_approves_by_calling_but_not_what_has_changed() {
    let pipeline = Pipeline::new(Audit::none());
    let (same, other) = (ToolFingerprint::new([7; 32]), ToolFingerprint::new([8; 32]));
    for (pin, seen, approves_change, expected) in [
        (Pin::New, None, false, None),
        (Pin::New, Some(same), false, None),
        (Pin::New, Some(other), true, Some(RefusedBy::Changed)),
        (Pin::Changed, None, false, Some(RefusedBy::Changed)),
        (Pin::Changed, None, true, Some(RefusedBy::Changed)),
        (Pin::Changed, Some(same), false, Some(RefusedBy::Changed)),
        (Pin::Changed, Some(same), true, None),
    ] {
        let shop = Shop::with(|tool| {
            tool.pin = pin;
            tool.rule = ApprovalRule::Always;
        });
        let consent = Consent::Caller { seen, approves_change };
        let context = CallContext { consent, ..CallContext::by_hand("test") };
        let call = Call { name: "push", arguments: Given::Text("{}") };
        let outcome = pipeline.call(&shop, call, &context).await;
        assert_eq!(outcome.details.refused, expected, "{pin:?} {seen:?} {approves_change}");
        let kept = shop.0.kept.load(Ordering::Relaxed);
        assert_eq!(kept, usize::from(expected.is_none()), "an approval is kept");
    }
}
