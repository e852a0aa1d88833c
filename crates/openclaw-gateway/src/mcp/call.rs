//! Calling a tool, reading a resource, filling in a prompt: for people and programs, who get all of the
//! answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::agent::AgentTools;
use openclaw_mcp::bridge::{Approved, Call, Wishes};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::inventory::LeftOut;
use openclaw_mcp::listing::ListedPrompt;
use openclaw_protocol::Scope;
use openclaw_protocol::mcp::{CallParams, Outcome, PromptParams, ReadParams};
use openclaw_tools::{Approval, Failure, Standing};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::gather::{Patience, gather, ready};
use super::outcome::outcome;
use super::problem::{Problem, ProblemKind};

/// How much of a name from outside is shown.
const NAME_CHARS: usize = 100;
/// How long servers that are on their way are waited for, if it is not known whose tool is wanted.
const SEARCH: Duration = Duration::from_secs(30);
/// Nothing takes longer.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// A person, or a program, may want what no model sees.
const EVERYTHING: Wishes<'_> =
    Wishes { watcher: None, within: None, everything: true, max_chars: None };

/// Who calls a tool by hand.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    /// What to call it in the audit.
    pub who: &'a str,
    /// Whether it may decide about calls. Whoever may, means what it calls.
    pub decides: bool,
}

/// Calls a tool, once. One that somebody must agree to is called for those who may decide; one that has
/// changed since it was approved, if they have seen it as it is.
///
/// # Errors
/// If there is no such tool, its server cannot be used, it has changed, or somebody else must decide.
pub async fn call(
    agent: &AgentTools,
    params: &CallParams,
    hand: Hand<'_>,
) -> Result<Outcome, Problem> {
    let CallParams {
        agent_id: _,
        server,
        tool,
        args,
        session_key,
        approve,
        fingerprint,
        timeout_ms,
        raw,
    } = params;
    if *approve == Some(true) && !hand.decides {
        return Err(not_yours("`approve`"));
    }
    let time = Time::of(*timeout_ms);
    let nothing = RawValue::from_string("{}".to_owned()).unwrap_or_default();
    let call = Call {
        name: tool,
        arguments: args.as_deref().unwrap_or(&nothing),
        who: hand.who,
        session: session_key.as_deref(),
        approved: None,
    };
    let found = time.to_begin(find(agent, server.as_deref(), tool)).await;
    let tool =
        found.inspect_err(|problem| write_down(agent, server.as_deref(), call, problem.kind))?;
    let call = Call {
        name: tool.spec.name.as_str(),
        approved: hand
            .decides
            .then(|| Approved { fingerprint: *tool.fingerprint(), how: Approval::Once }),
        ..call
    };
    if tool.is_allowed() {
        let is_seen = fingerprint.as_ref().map(|seen| *seen == tool.fingerprint().to_string());
        let is_approved = *approve == Some(true) && is_seen == Some(true);
        let refuse = |problem: Problem| {
            let server = tool.server().name().as_str();
            agent.record_refusal(call, server, &tool.listed().name, Failure::Denied);
            Err(problem)
        };
        if is_seen == Some(false) || (!is_approved && agent.is_changed(&tool)) {
            return refuse(changed(&tool));
        }
        if !hand.decides && agent.standing(&tool) != Standing::Free {
            return refuse(not_yours(&format!("`{}`", tool.spec.name)));
        }
    }
    let wishes = Wishes { within: time.left(), ..EVERYTHING };
    let answer = Box::pin(agent.call_with(call, wishes)).await;
    Ok(outcome(answer, raw.unwrap_or(false)))
}

/// Writes down a call that comes to nothing because its server is not there, or not in time: every call
/// is in the audit log (N3). What makes no sense is no call. Its name is the one that it was asked for by.
pub fn write_down(agent: &AgentTools, server: Option<&str>, call: Call<'_>, kind: ProblemKind) {
    let why = match kind {
        ProblemKind::Unavailable => Failure::Unavailable,
        ProblemKind::TimedOut => Failure::TimedOut,
        _ => return,
    };
    let Some(tool) = known(agent, server, call.name) else {
        let raw = if server.is_some() { call.name } else { "" };
        return agent.record_refusal(call, server.unwrap_or_default(), raw, why);
    };
    let call = Call { name: tool.spec.name.as_str(), ..call };
    agent.record_refusal(call, tool.server().name().as_str(), &tool.listed().name, why);
}

/// Somebody else must decide.
fn not_yours(what: &str) -> Problem {
    let scope = Scope::Approvals.name().unwrap_or_default();
    Problem::new(ProblemKind::Forbidden, format!("{what} needs the scope `{scope}`"))
        .hint("tools that only look, and those that were approved for good, need nobody's word")
}

/// How long somebody waits, from the start of a server to its answer.
struct Time {
    all: Option<Duration>,
    started: Instant,
}

impl Time {
    fn of(timeout_ms: Option<u64>) -> Self {
        let all = timeout_ms.map(|ms| Duration::from_millis(ms).min(LONGEST));
        Self { all, started: Instant::now() }
    }

    /// What comes before anything is asked for.
    async fn to_begin<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let Some(all) = self.all else { return work.await };
        timeout(all, work).await.unwrap_or_else(|_| {
            let after = all.as_millis();
            let message = format!("nothing was called: the server was not ready after {after} ms");
            Err(Problem::new(ProblemKind::TimedOut, message).hint("give it longer"))
        })
    }

    fn left(&self) -> Option<Duration> {
        self.all.map(|all| all.saturating_sub(self.started.elapsed()))
    }
}

/// The tool that is meant, as far as is known by now: of a server, by either of its names; of any server,
/// by the name that models use.
pub fn known(agent: &AgentTools, server: Option<&str>, name: &str) -> Option<Arc<CatalogueTool>> {
    let catalogue = agent.catalogue();
    let by_name = catalogue.get(name);
    let found = match server {
        Some(server) => catalogue
            .find(server, name)
            .or_else(|| by_name.filter(|tool| tool.server().name().as_str() == server)),
        None => by_name,
    };
    found.map(Arc::clone)
}

/// The tool that is meant, its server ready: of a server, by either of its names; of any server, by the
/// name that models use.
///
/// # Errors
/// If there is no such tool, or its server cannot be used.
pub async fn find(
    agent: &AgentTools,
    server: Option<&str>,
    name: &str,
) -> Result<Arc<CatalogueTool>, Problem> {
    if let Some(server) = server {
        ready(agent, server).await?;
        let found = known(agent, Some(server), name);
        return found.ok_or_else(|| unknown_tool(agent, server, name));
    }
    // Where it is known whose it is, no other server is waited for.
    match known(agent, None, name) {
        Some(tool) => drop(ready(agent, tool.server().name().as_str()).await?),
        None if agent.server(name).is_some() => {
            let hint =
                format!("`{name}` is a server: `openclaw mcp tools {name}` shows what it has");
            return Err(Problem::new(ProblemKind::UnknownTool, "which tool?").hint(hint));
        }
        None => {
            let patience = Patience::AtMost(SEARCH);
            drop(gather(agent, None, patience, |server| server.config().treatment.lazy).await);
        }
    }
    let catalogue = agent.catalogue();
    if let Some(tool) = catalogue.get(name) {
        return Ok(Arc::clone(tool));
    }
    if let Some((server, dropped)) = agent.left_out(name) {
        return Err(left_out(&server, &dropped));
    }
    let statuses = agent.statuses();
    let mut known: Vec<&str> = catalogue.all().iter().map(|tool| tool.spec.name.as_str()).collect();
    known.extend(statuses.iter().map(|status| status.name.as_str()));
    let hint = match openclaw_config::nearest(name, &known) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "`openclaw mcp tools` shows what there is".to_owned(),
    };
    let message = format!("there is no server and no tool `{}`", outside(name));
    Err(Problem::new(ProblemKind::UnknownTool, message).hint(hint))
}

fn unknown_tool(agent: &AgentTools, server: &str, name: &str) -> Problem {
    if let Some((_, dropped)) = agent.left_out(name).filter(|(owner, _)| owner == server) {
        return left_out(server, &dropped);
    }
    let catalogue = agent.catalogue();
    let of_server = catalogue.all().iter().filter(|it| it.server().name().as_str() == server);
    let known: Vec<&str> = of_server.map(|tool| tool.listed().name.as_str()).collect();
    let hint = match openclaw_config::nearest(name, &known) {
        Some(similar) => format!("did you mean `{}`?", outside(similar)),
        None => format!("`openclaw mcp tools {server}` shows what it has"),
    };
    let message = format!("`{server}` has no tool `{}`", outside(name));
    Problem::new(ProblemKind::UnknownTool, message).hint(hint)
}

/// A tool that its server lists, and that cannot be used.
fn left_out(server: &str, LeftOut { name, reason, .. }: &LeftOut) -> Problem {
    let name = outside(name);
    let message = format!("`{name}` of `{server}` cannot be called, and is left out: {reason}");
    let hint = format!("whoever makes `{server}` must put that right");
    Problem::new(ProblemKind::Unusable, message).hint(hint)
}

/// A tool that has changed since it was approved needs another look (B13).
pub fn changed(tool: &CatalogueTool) -> Problem {
    let (server, name) = (tool.server().name(), outside(&tool.listed().name));
    let message = format!(
        "`{name}` of `{server}` says something else about itself than when it was approved: its \
         description or its schema has changed"
    );
    let hint =
        format!("look at it with `openclaw mcp tools {server} --schema`; `--approve` approves it");
    Problem::new(ProblemKind::Changed, message).hint(hint)
}

fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}

/// Reads a resource.
///
/// # Errors
/// If its server cannot be used.
pub async fn read(agent: &AgentTools, params: &ReadParams, who: &str) -> Result<Outcome, Problem> {
    let ReadParams { agent_id: _, server, uri, raw, timeout_ms } = params;
    let time = Time::of(*timeout_ms);
    time.to_begin(ready(agent, server)).await?;
    let wishes = Wishes { within: time.left(), ..EVERYTHING };
    let answer = agent.read_with(server, uri, who, wishes).await;
    Ok(outcome(answer, raw.unwrap_or(false)))
}

/// Fills in a prompt.
///
/// # Errors
/// If there is no such prompt, or its server cannot be used.
pub async fn prompt(
    agent: &AgentTools,
    params: &PromptParams,
    who: &str,
) -> Result<Outcome, Problem> {
    let PromptParams { agent_id: _, server, name, args, raw, timeout_ms } = params;
    let time = Time::of(*timeout_ms);
    let inventory = time.to_begin(ready(agent, server)).await?.shelf().inventory();
    let Some(prompt) = inventory.prompts.iter().find(|prompt| prompt.name == *name) else {
        let known: Vec<&str> = inventory.prompts.iter().map(|it| it.name.as_str()).collect();
        let hint = match openclaw_config::nearest(name, &known) {
            Some(similar) => format!("did you mean `{}`?", outside(similar)),
            None => format!("`openclaw mcp prompts {server}` shows what it has"),
        };
        let message = format!("`{server}` has no prompt `{}`", outside(name));
        return Err(Problem::new(ProblemKind::UnknownTool, message).hint(hint));
    };
    let none = BTreeMap::new();
    let args = args.as_ref().unwrap_or(&none);
    check_arguments(prompt, args)?;
    let wishes = Wishes { within: time.left(), ..EVERYTHING };
    let answer = agent.prompt_with(server, name, args, who, wishes).await;
    let mut outcome = outcome(answer, raw.unwrap_or(false));
    outcome.messages = outcome.structured_content.take();
    Ok(outcome)
}

/// Whether a prompt takes these arguments, and gets what it needs. Servers say nothing of what they do
/// not know.
fn check_arguments(prompt: &ListedPrompt, args: &BTreeMap<String, String>) -> Result<(), Problem> {
    let name = outside(&prompt.name);
    let known = prompt.arguments.iter().map(|it| outside(&it.name)).collect::<Vec<_>>().join(", ");
    let hint = match known.as_str() {
        "" => "it takes no arguments".to_owned(),
        known => format!("it takes: {known}"),
    };
    let is_known = |key: &str| prompt.arguments.iter().any(|it| it.name == key);
    let message = if let Some(key) = args.keys().find(|key| !is_known(key)) {
        format!("the prompt `{name}` takes no argument `{}`", outside(key))
    } else if let Some(missing) =
        prompt.arguments.iter().find(|it| it.required && !args.contains_key(&it.name))
    {
        format!("the prompt `{name}` needs the argument `{}`", outside(&missing.name))
    } else {
        return Ok(());
    };
    Err(Problem::new(ProblemKind::Invalid, message).hint(hint))
}
