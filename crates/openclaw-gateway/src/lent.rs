//! Tools that a client lends to a session (`sessions.setExtraTools`): a call of one goes back over the
//! connection that lent it, and the tools go when that connection goes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_content::{Source, Untrusted, clean_line, wrap};
use openclaw_protocol::sessions::ExtraTool;
use openclaw_protocol::tools::{InvokeRequestEvent, InvokeResultParams};
use openclaw_protocol::{ErrorShape, names};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    Content, Details, Effect, Failure, Standing, Tool, ToolCall, ToolName, ToolOutcome, ToolSet,
    ToolSpec, Why,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::gateway::Gateway;

/// How long a call may take, unless its lender says otherwise; and at most.
const USUAL: Duration = Duration::from_secs(120);
const MOST: Duration = Duration::from_secs(3_600);
/// How many tools a client may lend to a session.
const MAX_TOOLS: usize = 200;
/// To how many sessions a client may lend.
const MAX_SESSIONS: usize = 64;
/// How long a description may be.
const MAX_DESCRIPTION: usize = 2_000;

/// What is lent, and the calls under way.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// By session, then by lender.
    sets: Mutex<BTreeMap<String, BTreeMap<u64, Arc<Vec<Loan>>>>>,
    calls: Mutex<BTreeMap<String, (u64, oneshot::Sender<InvokeResultParams>)>>,
    next: AtomicU64,
}

/// A tool that is lent.
#[derive(Debug)]
struct Loan {
    spec: ToolSpec,
    validator: LazyValidator,
    timeout: Duration,
}

impl Lent {
    /// Takes the tools of a client for a session, in place of those that it lent before.
    pub(crate) fn lend(
        &self,
        session: &str,
        lender: u64,
        tools: &[ExtraTool],
    ) -> Result<Vec<String>, ErrorShape> {
        if tools.len() > MAX_TOOLS {
            let words = format!("{} tools; at most {MAX_TOOLS} can be lent", tools.len());
            return Err(ErrorShape::invalid(words));
        }
        let loans = tools.iter().map(loan).collect::<Result<Vec<Loan>, ErrorShape>>()?;
        let names = loans.iter().map(|loan| loan.spec.name.to_string()).collect();
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let others = sets
            .iter()
            .filter(|(key, lenders)| key.as_str() != session && lenders.contains_key(&lender));
        if !loans.is_empty() && others.count() >= MAX_SESSIONS {
            let words = format!("tools can be lent to {MAX_SESSIONS} sessions at most");
            return Err(ErrorShape::invalid(words));
        }
        let of_session = sets.entry(session.to_owned()).or_default();
        if loans.is_empty() {
            of_session.remove(&lender);
        } else {
            of_session.insert(lender, Arc::new(loans));
        }
        sets.retain(|_, lenders| !lenders.is_empty());
        Ok(names)
    }

    /// A client is gone, and its tools with it; calls of them fail at once.
    pub(crate) fn take_back(&self, lender: u64) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.values_mut().for_each(|lenders| {
            lenders.remove(&lender);
        });
        sets.retain(|_, lenders| !lenders.is_empty());
        drop(sets);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|_, (of, _)| *of != lender);
    }

    /// What is lent to a session.
    pub(crate) fn of(&self, gateway: &Arc<Gateway>, session: &str) -> Arc<dyn ToolSet> {
        let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let lenders = sets.get(session).into_iter().flatten();
        let tools = lenders.flat_map(|(lender, loans)| {
            (0..loans.len()).map(|nth| LentTool {
                gateway: Arc::downgrade(gateway),
                lender: *lender,
                loans: Arc::clone(loans),
                nth,
            })
        });
        Arc::new(LentTools(tools.map(Arc::new).collect()))
    }

    /// A client says what a call gave.
    pub(crate) fn answered(
        &self,
        lender: u64,
        result: InvokeResultParams,
    ) -> Result<(), ErrorShape> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.get(&result.id) {
            Some((of, _)) if *of == lender => {}
            _ => return Err(ErrorShape::invalid("no call of that id waits")),
        }
        if let Some((_, answer)) = calls.remove(&result.id) {
            let _ = answer.send(result);
        }
        Ok(())
    }
}

fn loan(tool: &ExtraTool) -> Result<Loan, ErrorShape> {
    let name = ToolName::new(tool.name.as_str())
        .map_err(|error| ErrorShape::invalid(format!("`{}`: {error}", tool.name)))?;
    let empty = || json!({ "type": "object" });
    let schema = match &tool.parameters {
        None => empty(),
        Some(raw) => serde_json::from_str(raw.get()).unwrap_or_else(|_| empty()),
    };
    let Value::Object(members) = schema else {
        let words = format!("`{name}`: `parameters` must be a JSON Schema of an object");
        return Err(ErrorShape::invalid(words));
    };
    let members = Arc::new(members);
    let timeout = tool.timeout_ms.map_or(USUAL, Duration::from_millis).min(MOST);
    let spec = ToolSpec {
        label: name.to_string(),
        name,
        description: clean_line(Untrusted::new(&tool.description), MAX_DESCRIPTION),
        input_schema: Arc::new(Value::Object((*members).clone())),
        effect: if tool.read_only == Some(true) { Effect::ReadOnly } else { Effect::Unknown },
    };
    Ok(Loan { spec, validator: LazyValidator::new(members), timeout })
}

#[derive(Debug)]
struct LentTools(Vec<Arc<LentTool>>);

impl ToolSet for LentTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tool = self.0.iter().find(|tool| tool.spec().name.as_str() == name)?;
        Some(Arc::clone(tool) as Arc<dyn Tool>)
    }
}

/// A tool that a client lends.
#[derive(Debug)]
struct LentTool {
    gateway: Weak<Gateway>,
    lender: u64,
    loans: Arc<Vec<Loan>>,
    nth: usize,
}

impl LentTool {
    fn loan(&self) -> &Loan {
        &self.loans[self.nth]
    }

    async fn carry_out(&self, call: ToolCall<'_>) -> ToolOutcome {
        let loan = self.loan();
        let checked = match loan.validator.get() {
            Ok(validator) => validator.check_raw(call.arguments).map_err(|it| it.to_string()),
            Err(unusable) => Err(unusable.to_string()),
        };
        if let Err(words) = checked {
            let words = format!("The arguments do not fit this tool. Nothing was called.\n{words}");
            return fail(Failure::InvalidArguments, &words);
        }
        let Some(gateway) = self.gateway.upgrade() else {
            return fail(Failure::Unavailable, "The gateway is stopping.");
        };
        let lent = &gateway.lent;
        let id = format!("lent-{}", lent.next.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        lent.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone(), (self.lender, answer));
        let _under_way = UnderWay { lent, id: &id };
        let request = InvokeRequestEvent {
            id: id.clone(),
            node_id: self.lender.to_string(),
            command: loan.spec.name.to_string(),
            params_json: Some(call.arguments.get().to_owned()),
            timeout_ms: u64::try_from(loan.timeout.as_millis()).ok(),
            idempotency_key: Some(id.clone()),
        };
        const GONE: &str = "The client that lent this tool is gone.";
        if !gateway.callers.tell_one(self.lender, names::NODE_INVOKE_REQUEST, &request) {
            return fail(Failure::Unavailable, GONE);
        }
        match tokio::time::timeout(loan.timeout, answered).await {
            Ok(Ok(result)) => outcome(&loan.spec, &result),
            Ok(Err(_)) => fail(Failure::Unavailable, GONE),
            Err(_) => {
                let words = format!("timed out after {} ms", loan.timeout.as_millis());
                fail(Failure::TimedOut, &words)
            }
        }
    }
}

/// A call under way. When it is dropped, nobody waits for it any more.
struct UnderWay<'a> {
    lent: &'a Lent,
    id: &'a str,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lent.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(self.id);
    }
}

impl Tool for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.loan().spec
    }

    fn standing(&self) -> Standing {
        match self.loan().spec.effect {
            Effect::ReadOnly => Standing::Free,
            Effect::Unknown | Effect::Destructive => Standing::Ask(Why::EachTime),
        }
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            if self.standing() != Standing::Free && call.approval.is_none() {
                return fail(Failure::Denied, "This call needs an approval. Nothing was called.");
            }
            let started = std::time::Instant::now();
            let mut outcome = self.carry_out(call).await;
            outcome.details.duration = started.elapsed();
            outcome
        })
    }
}

/// What a client says comes from outside, like everything else.
fn outcome(spec: &ToolSpec, result: &InvokeResultParams) -> ToolOutcome {
    let error = result.error.as_ref().and_then(|error| error.message.as_deref());
    let payload = result.payload.as_ref().map(|payload| payload.get());
    let text = match (result.ok, result.payload_json.as_deref().or(payload), error) {
        (true, Some(payload), _) => readable(payload),
        (true, None, _) => String::new(),
        (false, _, error) => error.unwrap_or("The tool failed and does not say why.").to_owned(),
    };
    if text.is_empty() {
        let content = vec![Content::Text(openclaw_tools::ModelText::ours("The result is empty."))];
        return ToolOutcome { content, is_error: !result.ok, details: Details::default() };
    }
    let name = spec.name.as_str();
    match wrap(Untrusted::new(&text), &Source::Other { name }) {
        Ok(wrapped) => ToolOutcome {
            details: Details {
                untrusted: true,
                wrapped: true,
                source: Some("client"),
                tool: Some(name.to_owned()),
                findings: wrapped.findings().clone(),
                ..Details::default()
            },
            content: vec![Content::Text(wrapped.into())],
            is_error: !result.ok,
        },
        Err(_) => fail(Failure::InvalidResponse, "The result cannot be shown."),
    }
}

/// A text as it is, anything else as JSON.
fn readable(payload: &str) -> String {
    match serde_json::from_str::<Value>(payload) {
        Ok(Value::String(text)) => text,
        _ => payload.to_owned(),
    }
}

fn fail(failure: Failure, words: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(words);
    outcome.details.failure = Some(failure);
    outcome
}
