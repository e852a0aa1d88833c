//! Calls tools, reads resources and gets prompts for users and programs, with the complete result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::{LibraryCall, ServerEntry};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp_client::listing::ListedPrompt;
use openclaw_protocol::Scope;
use openclaw_protocol::mcp::{CallParams, Outcome, PromptParams, ReadParams};
use openclaw_tools::pipeline::{AsyncLookup, Refusal};
use openclaw_tools::{
    Call, CallContext, CallOptions, Consent, Fallback, NoApprover, PermissionMode, ProgressWatcher,
    RefusedBy, Tool, ToolFailure, ToolFingerprint, ToolOutcome,
};
use openclaw_trace::SpanContext;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::arguments::fit_texts;
use super::find::{changed, find, known, outside};
use super::gather::ready;
use super::outcome::outcome;
use super::problem::{Problem, ProblemKind};

/// Maximum length of a tool's name in a hint.
const NAME_CHARS: usize = 80;
/// Maximum timeout of a call.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Users and programs may request content that models do not see.
const EVERYTHING: CallOptions<'_> = CallOptions {
    watcher: None,
    deadline: None,
    everything: true,
    unlimited: true,
    max_chars: None,
    permission: PermissionMode::Configured,
    client: None,
    memory: None,
    relay: None,
};

/// Who makes a call explicitly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectCaller<'a> {
    /// Name for the audit log.
    pub(crate) who: &'a str,
    /// Whether the caller may approve calls. Its own calls then count as approved.
    pub(crate) decides: bool,
    /// Receives the progress of a call.
    pub(crate) watcher: Option<&'a ProgressWatcher>,
    /// The caller's span.
    pub(crate) trace: Option<&'a SpanContext>,
}

impl<'a> DirectCaller<'a> {
    fn context(self, agent: &'a AgentTools, options: CallOptions<'a>) -> CallContext<'a> {
        let consent = match self.decides {
            true => Consent::Caller { seen: None, approves_change: false },
            false => Consent::Ask { approver: &NoApprover, fallback: Fallback::Deny },
        };
        let options = CallOptions { watcher: self.watcher, ..options };
        let agent = Some(agent.id().as_str());
        let (who, trace) = (self.who, self.trace);
        CallContext { agent, session: None, who, consent, options, begun: None, trace }
    }
}

/// Calls a tool once. A tool that requires approval is called if the caller may approve calls; a
/// changed tool, if the caller has seen its current version.
///
/// # Errors
/// Fails if the tool is unknown, its server is not available, it has changed, or the caller may not
/// approve it.
pub(super) async fn call(
    agent: &AgentTools,
    params: &CallParams,
    caller: DirectCaller<'_>,
) -> Result<Outcome, Problem> {
    let CallParams {
        agent_id: _,
        server,
        tool,
        args,
        texts,
        session_key,
        approve,
        fingerprint,
        timeout_ms,
        raw,
        progress_token: _,
    } = params;
    if *approve == Some(true) && !caller.decides {
        return Err(not_yours("`approve`"));
    }
    let time = Time::new(*timeout_ms);
    let nothing = RawValue::from_string("{}".to_owned()).unwrap_or_default();
    let given = args.as_deref().unwrap_or(&nothing);
    // The conversion depends on the tool. An unknown or denied tool is rejected below.
    let fitted = match texts {
        Some(texts) => match time.to_begin(find(agent, server.as_deref(), tool)).await {
            Ok(tool) if tool.is_allowed() => with_texts(given, texts, &tool).map(Some),
            _ => Ok(None),
        },
        None => Ok(None),
    };
    let found = Found::default();
    let finding = AsyncLookup(async || {
        let server = server.as_deref();
        if let Err(unfit) = &fitted {
            return Err(found.refuse(unfit.clone(), agent, server, tool));
        }
        match time.to_begin(find(agent, server, tool)).await {
            Ok(tool) => Ok(found.keep(tool) as Arc<dyn Tool>),
            Err(problem) => Err(found.refuse(problem, agent, server, tool)),
        }
    });
    let mut context =
        caller.context(agent, CallOptions { deadline: time.deadline(), ..EVERYTHING });
    context.session = session_key.as_deref();
    if caller.decides {
        // An invalid fingerprint matches no tool.
        let seen =
            fingerprint.as_deref().map(|it| it.parse().unwrap_or(ToolFingerprint::new([0; 32])));
        context.consent = Consent::Caller { seen, approves_change: *approve == Some(true) };
    }
    let arguments = fitted.as_ref().ok().and_then(|it| it.as_deref()).unwrap_or(given);
    let call = Call::new(tool, arguments);
    let answer = Box::pin(agent.pipeline().call(&finding, call, &context)).await;
    found.problem(&answer)?;
    let mut outcome = outcome(answer, raw.unwrap_or(false));
    // A new tool needs no approval from this caller, now or later; only `approve` has to be saved.
    if *approve == Some(true)
        && let Err(unsaved) = agent.approvals_saved().await
    {
        outcome.warnings.push(format!("approved for this call only: {unsaved}"));
    }
    Ok(outcome)
}

/// Merges the arguments with those given as text.
fn with_texts(
    arguments: &RawValue,
    texts: &BTreeMap<String, String>,
    tool: &CatalogueTool,
) -> Result<Box<RawValue>, Problem> {
    let schema: &Map<String, Value> = &tool.listed().input_schema;
    let given = serde_json::from_str(arguments.get()).map_err(|error| error.to_string());
    let fitted = given.and_then(|given| fit_texts(given, texts, schema));
    let fitted = fitted.and_then(|it| to_raw_value(&it).map_err(|error| error.to_string()));
    fitted.map_err(|problem| {
        let (server, name) = (tool.server().name(), &tool.listed().name);
        let name = clean_line(Untrusted::new(name), NAME_CHARS);
        Problem::new(ProblemKind::Invalid, problem)
            .hint(format!("run `openclaw mcp tools {server} {name}` to see the arguments"))
    })
}

/// The tool that was found, or why the call was rejected: a problem has a hint for users.
#[derive(Default)]
struct Found {
    tool: Mutex<Option<Arc<CatalogueTool>>>,
    problem: Mutex<Option<Problem>>,
}

impl Found {
    fn keep(&self, tool: Arc<CatalogueTool>) -> Arc<CatalogueTool> {
        *self.tool.lock() = Some(Arc::clone(&tool));
        tool
    }

    /// The audit log contains the requested name, unless the tool is known.
    fn refuse(
        &self,
        problem: Problem,
        agent: &AgentTools,
        server: Option<&str>,
        name: &str,
    ) -> Refusal {
        let refusal = refusal(&problem);
        *self.problem.lock() = Some(problem);
        match known(agent, server, name) {
            Some(tool) => refusal
                .at(tool.server().name().as_str(), &tool.listed().name)
                .called(tool.spec.name.as_str()),
            None => refusal.at(server.unwrap_or_default(), server.map_or("", |_| name)),
        }
    }

    /// Returns why the call was rejected, if the user can do something about it.
    fn problem(self, answer: &ToolOutcome) -> Result<(), Problem> {
        match (self.problem.into_inner(), answer.details.refused, self.tool.into_inner()) {
            (Some(problem), ..) => Err(problem),
            (None, Some(RefusedBy::Changed), Some(tool)) => Err(changed(&tool)),
            (None, Some(RefusedBy::NobodyToAsk), Some(tool)) => {
                Err(not_yours(&format!("`{}`", tool.spec.name)))
            }
            _ => Ok(()),
        }
    }
}

/// Converts a problem to a rejection for the audit log.
fn refusal(problem: &Problem) -> Refusal {
    let refuse = |failure| Refusal::new(failure, problem.message.clone());
    match problem.kind {
        ProblemKind::Unavailable => refuse(ToolFailure::Unavailable),
        ProblemKind::NeedsLogin => refuse(ToolFailure::NeedsLogin),
        ProblemKind::TimedOut => refuse(ToolFailure::TimedOut),
        ProblemKind::UnknownServer | ProblemKind::UnknownTool => {
            refuse(ToolFailure::Denied).by(RefusedBy::UnknownTool)
        }
        ProblemKind::Unusable => refuse(ToolFailure::Protocol).by(RefusedBy::Unusable),
        ProblemKind::Invalid => refuse(ToolFailure::InvalidArguments).by(RefusedBy::Schema),
        ProblemKind::Forbidden => refuse(ToolFailure::Denied).by(RefusedBy::NobodyToAsk),
        ProblemKind::Changed => refuse(ToolFailure::Denied).by(RefusedBy::Changed),
    }
}

/// The problem for a caller that may not approve calls.
fn not_yours(what: &str) -> Problem {
    let scope = Scope::Approvals.name().unwrap_or_default();
    Problem::new(ProblemKind::Forbidden, format!("{what} needs the scope `{scope}`"))
        .hint("read-only tools and tools that are always allowed need no approval")
}

/// The timeout of a call, from starting the server to the result.
struct Time {
    all: Option<Duration>,
    started: Instant,
}

impl Time {
    fn new(timeout_ms: Option<u64>) -> Self {
        let all = timeout_ms.map(|ms| Duration::from_millis(ms).min(LONGEST));
        Self { all, started: Instant::now() }
    }

    /// Runs the preparation of a call within the timeout.
    async fn to_begin<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let Some(all) = self.all else { return work.await };
        let left = all.saturating_sub(self.started.elapsed());
        timeout(left, work).await.unwrap_or_else(|_| {
            let after = all.as_millis();
            let message =
                format!("the server was not ready after {after} ms; the tool was not called");
            Err(Problem::new(ProblemKind::TimedOut, message).hint("allow more time"))
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.all.map(|all| self.started + all)
    }
}

/// Reads a resource.
///
/// # Errors
/// Fails if the server is not available.
pub(super) async fn read(
    agent: &AgentTools,
    params: &ReadParams,
    caller: DirectCaller<'_>,
) -> Result<Outcome, Problem> {
    let ReadParams { agent_id: _, server, uri, raw, timeout_ms } = params;
    let time = Time::new(*timeout_ms);
    let request = agent.reading(server, uri);
    let given = to_raw_value(&BTreeMap::from([("uri", uri)])).unwrap_or_default();
    let prepare = || async { time.to_begin(ready(agent, server)).await.map(drop) }.boxed();
    let answer = ask(agent, &request, &given, (&time, caller), prepare);
    Ok(outcome(answer.await?, raw.unwrap_or(false)))
}

/// Gets a prompt.
///
/// # Errors
/// Fails if the prompt is unknown, or its server is not available.
pub(super) async fn prompt(
    agent: &AgentTools,
    params: &PromptParams,
    caller: DirectCaller<'_>,
) -> Result<Outcome, Problem> {
    let PromptParams { agent_id: _, server, name, args, raw, timeout_ms } = params;
    let time = Time::new(*timeout_ms);
    let none = BTreeMap::new();
    let args = args.as_ref().unwrap_or(&none);
    let request = agent.prompting(server, name);
    let given = to_raw_value(args).unwrap_or_default();
    let find = async || {
        let inventory = time.to_begin(ready(agent, server)).await?.cache().inventory();
        let Some(prompt) = inventory.prompts.iter().find(|prompt| prompt.name == *name) else {
            let known: Vec<&str> = inventory.prompts.iter().map(|it| it.name.as_str()).collect();
            return Err(unknown_prompt(server, name, &known));
        };
        check_arguments(prompt, args)
    };
    let answer = ask(agent, &request, &given, (&time, caller), || find().boxed());
    let mut outcome = outcome(answer.await?, raw.unwrap_or(false));
    outcome.messages = outcome.structured_content.take();
    Ok(outcome)
}

/// Gets a prompt for a model: the caller approves it, but gets no more than a model may see.
///
/// # Errors
/// Fails if the caller may not approve it.
pub(crate) async fn prompt_for_model(
    agent: &AgentTools,
    prompt: &ServerEntry<ListedPrompt>,
    args: &BTreeMap<String, String>,
    caller: DirectCaller<'_>,
) -> Result<ToolOutcome, Problem> {
    let (server, name) = (prompt.server.as_str(), prompt.entry.name.as_str());
    let context = caller.context(agent, CallOptions::default());
    approved(agent.prompt(server, name, args, &context).await, server, name)
}

pub(super) fn unknown_prompt(server: &str, name: &str, known: &[&str]) -> Problem {
    let hint = match openclaw_config::nearest(name, known) {
        Some(similar) => format!("did you mean `{}`?", outside(similar)),
        None => format!("run `openclaw mcp prompts {server}` to list its prompts"),
    };
    let message = format!("`{server}` has no prompt `{}`", outside(name));
    Problem::new(ProblemKind::UnknownTool, message).hint(hint)
}

/// Sends a request that is not a tool call, after `prepare`.
async fn ask<'a>(
    agent: &AgentTools,
    request: &LibraryCall,
    given: &RawValue,
    (time, caller): (&Time, DirectCaller<'_>),
    prepare: impl Fn() -> BoxFuture<'a, Result<(), Problem>> + Send + Sync,
) -> Result<ToolOutcome, Problem> {
    let refused = Mutex::new(None);
    let prepare = &prepare;
    let finding = AsyncLookup(async || match prepare().await {
        Ok(()) => request.tool(),
        Err(problem) => {
            let refusal = refusal(&problem).at(request.server(), request.what());
            *refused.lock() = Some(problem);
            Err(refusal)
        }
    });
    let context = caller.context(agent, CallOptions { deadline: time.deadline(), ..EVERYTHING });
    let answer =
        agent.pipeline().call(&finding, Call::new(request.method(), given), &context).await;
    match refused.into_inner() {
        Some(problem) => Err(problem),
        None => approved(answer, request.server(), request.what()),
    }
}

/// Returns the outcome of a request that is not a tool call, unless the caller may not approve it.
fn approved(answer: ToolOutcome, server: &str, what: &str) -> Result<ToolOutcome, Problem> {
    match answer.details.refused {
        Some(RefusedBy::NobodyToAsk) => {
            Err(not_yours(&format!("`{}` of `{server}`", outside(what))))
        }
        _ => Ok(answer),
    }
}

/// Checks the arguments of a prompt. Servers do not report unknown arguments.
fn check_arguments(prompt: &ListedPrompt, args: &BTreeMap<String, String>) -> Result<(), Problem> {
    let name = outside(&prompt.name);
    let known = prompt.arguments.iter().map(|it| outside(&it.name)).collect::<Vec<_>>().join(", ");
    let hint = match known.as_str() {
        "" => "it takes no arguments".to_owned(),
        known => format!("it takes: {known}"),
    };
    let is_known = |key: &str| prompt.arguments.iter().any(|it| it.name == key);
    let message = if let Some(key) = args.keys().find(|key| !is_known(key)) {
        format!("the prompt `{name}` has no argument `{}`", outside(key))
    } else if let Some(missing) =
        prompt.arguments.iter().find(|it| it.required && !args.contains_key(&it.name))
    {
        format!("the prompt `{name}` requires the argument `{}`", outside(&missing.name))
    } else {
        return Ok(());
    };
    Err(Problem::new(ProblemKind::Invalid, message).hint(hint))
}
