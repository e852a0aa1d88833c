//! Finds the servers for a request, and explains why one is not available.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::status::ServerStatus;
use openclaw_mcp::server::{Server, Unavailable};
use openclaw_protocol::mcp::Missing;
use tokio::time::timeout;

use super::problem::{Problem, ProblemKind};

/// Maximum number of names listed if none is similar.
const MOST_NAMES: usize = 10;
/// Maximum number of similar names suggested.
const MOST_NEAR: usize = 3;

/// How long to wait for connecting servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFor {
    /// As long as each server's own timeout.
    All,
    /// At most this long if all servers are requested: one that hangs must not delay the others.
    AtMost(Duration),
}

/// The servers to list from.
#[derive(Debug)]
pub(super) struct GatheredServers {
    /// Available servers, and lazy ones with a cached inventory.
    pub(super) servers: Vec<Arc<Server>>,
    /// Servers that are not available.
    pub(super) missing: Vec<Missing>,
}

/// Returns a running server by name.
///
/// # Errors
/// Fails if the server is unknown or not running.
pub(super) fn server<'a>(agent: &'a AgentTools, name: &str) -> Result<&'a Arc<Server>, Problem> {
    if let Some(server) = agent.server(name) {
        return Ok(server);
    }
    let statuses = agent.statuses();
    let Some(resting) = statuses.iter().find(|status| status.name == name) else {
        return Err(unknown(name, &statuses));
    };
    Err(match &resting.last_error {
        Some(trouble) => Problem {
            kind: ProblemKind::Unavailable,
            message: format!("cannot start `{name}`: {}", trouble.message),
            hint: trouble.hint.clone(),
            last_lines: trouble.last_lines.clone(),
        },
        None => Problem::new(ProblemKind::Unavailable, format!("`{name}` is disabled"))
            .hint(format!("run `openclaw mcp enable {name}`")),
    })
}

/// The problem for an unknown name among these servers.
pub(super) fn unknown(name: &str, statuses: &[ServerStatus]) -> Problem {
    let known: Vec<&str> = statuses.iter().map(|status| status.name.as_str()).collect();
    unknown_server(name, &known)
}

/// The problem for an unknown server, with similar names as a hint.
pub fn unknown_server(name: &str, known: &[&str]) -> Problem {
    let hint = match (&near(name, known)[..], known) {
        ([], []) => "run `openclaw mcp add` to add one".to_owned(),
        ([], known) if known.len() > MOST_NAMES => {
            let (named, more) = known.split_at(MOST_NAMES);
            format!(
                "known servers: {}, and {} more (run `openclaw mcp list`)",
                named.join(", "),
                more.len()
            )
        }
        ([], known) => format!("known servers: {}", known.join(", ")),
        (near, _) => format!("did you mean `{}`?", near.join("` or `")),
    };
    let name: String = name.chars().take(64).collect();
    Problem::new(ProblemKind::UnknownServer, format!("unknown server `{name}`")).hint(hint)
}

/// Returns the most similar names, best first.
fn near<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let mut others = known.to_vec();
    let mut near = Vec::new();
    while near.len() < MOST_NEAR
        && let Some(nearest) = openclaw_config::nearest(name, &others)
    {
        others.retain(|other| *other != nearest);
        near.push(nearest);
    }
    near
}

/// Returns a server by name, started and ready.
pub(super) async fn ready<'a>(
    agent: &'a AgentTools,
    name: &str,
) -> Result<&'a Arc<Server>, Problem> {
    let server = server(agent, name)?;
    match server.ready().await {
        Ok(_) => Ok(server),
        Err(unavailable) => Err(unavailable.into()),
    }
}

/// Returns one server, or all. Among all, a lazy server with a cached inventory is not started, and
/// one that is not available is reported as missing.
///
/// # Errors
/// Fails if the one server, or every server, is not available.
pub(super) async fn gather(
    agent: &AgentTools,
    name: Option<&str>,
    patience: WaitFor,
    is_lazy: impl Fn(&Server) -> bool,
) -> Result<GatheredServers, Problem> {
    if let Some(name) = name {
        let servers = vec![Arc::clone(ready(agent, name).await?)];
        return Ok(GatheredServers { servers, missing: Vec::new() });
    }
    let is_known =
        |server: &Server| is_lazy(server) && *server.cache().inventory() != Inventory::default();
    let all = agent.servers().iter().map(|server| async {
        if is_known(server) {
            return Ok(());
        }
        let ready = server.ready();
        match patience {
            WaitFor::All => ready.await.map(|_| ()),
            WaitFor::AtMost(limit) => match timeout(limit, ready).await {
                Ok(ready) => ready.map(|_| ()),
                Err(_) => Err(Unavailable {
                    server: server.name().to_string(),
                    state: ServerState::Connecting,
                    trouble: None,
                }),
            },
        }
    });
    let all = join_all(all.collect::<Vec<_>>()).await;
    let mut gathered = GatheredServers { servers: Vec::new(), missing: Vec::new() };
    let (mut only_logins, mut problems) = (true, Vec::new());
    for (server, ready) in agent.servers().iter().zip(all) {
        match ready {
            Ok(()) => gathered.servers.push(Arc::clone(server)),
            Err(unavailable) => {
                only_logins &= unavailable.state == ServerState::NeedsAuth;
                let (error, server) = (reason(&unavailable), unavailable.server.clone());
                gathered.missing.push(Missing { error, server });
                problems.push(Problem::from(unavailable));
            }
        }
    }
    if gathered.servers.is_empty() && !gathered.missing.is_empty() {
        if problems.len() == 1 {
            return Err(problems.remove(0));
        }
        let reasons: Vec<&str> = gathered.missing.iter().map(|it| it.error.as_str()).collect();
        let message = format!("no server is available:\n{}", reasons.join("\n"));
        let problem = match only_logins {
            true => Problem::new(ProblemKind::NeedsLogin, message)
                .hint("run `openclaw mcp login NAME` for each"),
            false => {
                Problem::new(ProblemKind::Unavailable, message).hint("run `openclaw mcp doctor`")
            }
        };
        return Err(problem);
    }
    Ok(gathered)
}

/// Why a server is not available, in one line.
fn reason(unavailable: &Unavailable) -> String {
    let cause = match &unavailable.trouble {
        Some(trouble) => trouble.message.clone(),
        None => unavailable.reason(),
    };
    format!("`{}` is not available: {cause}", unavailable.server)
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Self {
        let message = reason(&unavailable);
        let (kind, verb) = match unavailable.state {
            ServerState::NeedsAuth => (ProblemKind::NeedsLogin, "login"),
            _ => (ProblemKind::Unavailable, "doctor"),
        };
        let look = format!("run `openclaw mcp {verb} {}`", unavailable.server);
        let trouble = unavailable.trouble.unwrap_or_default();
        Self {
            kind,
            message,
            hint: Some(trouble.hint.unwrap_or(look)),
            last_lines: trouble.last_lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(name: &str, known: usize) -> String {
        let known: Vec<String> = (100..100 + known).map(|at| format!("server-{at}")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        unknown_server(name, &known).hint.unwrap_or_default()
    }

    #[test]
    fn among_many_servers_only_a_few_are_named() {
        assert_eq!(hint("other", 2), "known servers: server-100, server-101");
        assert!(hint("other", 10).ends_with("server-109"));
        let many = hint("other", 500);
        assert!(many.ends_with(", server-109, and 490 more (run `openclaw mcp list`)"), "{many}");
        let near = hint("sever-107", 500);
        assert!(near.starts_with("did you mean `server-107` or `server-1"), "{near}");
        assert_eq!(near.matches("server-").count(), 3, "{near}");
        assert_eq!(hint("other", 0), "run `openclaw mcp add` to add one");
    }
}
