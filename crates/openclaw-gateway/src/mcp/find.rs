//! Finds the tool that a user or a program names, and says what is wrong with a name.

use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::inventory::LeftOut;

use super::gather::{WaitFor, gather, ready};
use super::problem::{Problem, ProblemKind};

/// Maximum characters of a name from outside.
const NAME_CHARS: usize = 100;
/// How long to wait for connecting servers if the server of a tool is unknown.
const SEARCH: Duration = Duration::from_secs(30);

/// Finds a tool in the current catalogue: of a given server by either of its names, or of any
/// server by the name that models use.
pub(super) fn known(
    agent: &AgentTools,
    server: Option<&str>,
    name: &str,
) -> Option<Arc<CatalogueTool>> {
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

/// Like [`known`], but waits until the tool's server is ready.
///
/// # Errors
/// Fails if the tool is unknown, or its server is not available.
pub(super) async fn find(
    agent: &AgentTools,
    server: Option<&str>,
    name: &str,
) -> Result<Arc<CatalogueTool>, Problem> {
    let of_server = server.map(|server| (server, name)).or_else(|| dotted(agent, name));
    if let Some((server, name)) = of_server {
        ready(agent, server).await?;
        let found = known(agent, Some(server), name);
        return found.ok_or_else(|| unknown_tool(agent, server, name));
    }
    // If the tool is known, only its server is waited for.
    match known(agent, None, name) {
        Some(tool) => drop(ready(agent, tool.server().name().as_str()).await?),
        None if agent.server(name).is_some() => {
            let hint =
                format!("`{name}` is a server; run `openclaw mcp tools {name}` to list its tools");
            return Err(Problem::new(ProblemKind::UnknownTool, "missing tool name").hint(hint));
        }
        None => {
            let patience = WaitFor::AtMost(SEARCH);
            drop(gather(agent, None, patience, |server| server.is_lazy()).await);
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
        None => "run `openclaw mcp tools` to list the tools".to_owned(),
    };
    let message = format!("unknown server or tool `{}`", outside(name));
    Err(Problem::new(ProblemKind::UnknownTool, message).hint(hint))
}

/// Splits `SERVER.TOOL`, unless it is the name of a tool or server itself. Names of servers may
/// contain dots, too: the longest that exists is meant.
fn dotted<'n>(agent: &AgentTools, name: &'n str) -> Option<(&'n str, &'n str)> {
    if !name.contains('.') || agent.catalogue().get(name).is_some() {
        return None;
    }
    let statuses = agent.statuses();
    let is_server = |name: &str| statuses.iter().any(|status| status.name == name);
    if is_server(name) {
        return None;
    }
    let mut places: Vec<usize> = name.match_indices('.').map(|(at, _)| at).collect();
    places.reverse();
    let mut parts = places.into_iter().map(|at| (&name[..at], &name[at + 1..]));
    parts.find(|(server, tool)| !tool.is_empty() && is_server(server))
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
        None => format!("run `openclaw mcp tools {server}` to list its tools"),
    };
    let message = format!("`{server}` has no tool `{}`", outside(name));
    Problem::new(ProblemKind::UnknownTool, message).hint(hint)
}

/// The problem for a tool that its server lists but that cannot be used.
fn left_out(server: &str, LeftOut { name, reason, .. }: &LeftOut) -> Problem {
    let name = outside(name);
    let message = format!("`{name}` of `{server}` is unusable: {reason}");
    let hint = format!("report this to the authors of `{server}`");
    Problem::new(ProblemKind::Unusable, message).hint(hint)
}

/// The problem for a tool that has changed since it was first seen or approved and must be reviewed (B13).
pub(super) fn changed(tool: &CatalogueTool) -> Problem {
    let (server, name) = (tool.server().name(), outside(&tool.listed().name));
    let message = format!(
        "the description or schema of `{name}` of `{server}` has changed since it was first seen or approved"
    );
    let hint = format!("review it with `openclaw mcp tools {server} {name}`, then use `--approve`");
    Problem::new(ProblemKind::Changed, message).hint(hint)
}

/// Returns a name that a server or a caller has sent, fit for a message.
pub(super) fn outside(name: &str) -> String {
    clean_line(Untrusted::new(name), NAME_CHARS)
}
