//! The one place of the program that makes a fleet from the configuration and its surroundings, and
//! sees to it that nothing of it is left when a command ends, however it ends (L5).

pub(in crate::commands) mod keep;
mod progress;
mod session;
mod terminal;

pub(super) use keep::logs;
pub(super) use session::{Session, tell, unknown_server};
pub(super) use terminal::Terminal;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{AgentConfig, Config, Paths};
use openclaw_gateway::mcp::Gathered;
use openclaw_mcp::client::Host;
use openclaw_mcp::dial::Surroundings;
use openclaw_mcp::fleet::{Fleet, Setup};
use openclaw_mcp::guard::Guard;
use openclaw_secrets::Resolver;

use crate::cli::AgentArgs;
use crate::commands::{find_agent, log_warnings, shown, with_report};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;
use progress::Screen;

/// What a command needs of servers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Need<'a> {
    /// Whose servers; the default agent's if nobody is named.
    pub(super) agent: Option<&'a str>,
    /// Whether servers start at once, as they would for an agent. Otherwise each starts when the
    /// command uses it, so that no other does.
    pub(super) all: bool,
    /// Whether answers come in, which are written down.
    pub(super) answers: bool,
    /// How long a call may take, if not as configured.
    pub(super) timeout: Option<Duration>,
}

impl<'a> Need<'a> {
    /// What most commands need: some servers of an agent.
    pub(super) fn of(whose: &'a AgentArgs) -> Self {
        Self { agent: whose.agent.as_deref(), ..Self::default() }
    }
}

/// Runs a command that shows what servers have: one, or all of them.
pub(super) fn with_servers(
    whose: &AgentArgs,
    name: Option<&str>,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    show: impl FnOnce(&Gathered, &Session, &mut Output) -> Exit,
) -> Exit {
    with_session(Need::of(whose), flag, edge, output, async |session, output| {
        match session.gather(name, output).await {
            Ok(gathered) => show(&gathered, session, output),
            Err(exit) => exit,
        }
    })
}

/// Somebody at a terminal, where there is somebody.
pub(super) fn somebody(edge: &Edge, output: &Output) -> Option<Terminal> {
    edge.has_person().then(|| Terminal::new(Screen::new(edge.can_draw() && !output.json)))
}

/// Runs what a command has to do with servers, and ends them.
pub(super) fn with_session(
    need: Need<'_>,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Session, &mut Output) -> Exit,
) -> Exit {
    with_report(flag, edge, output, |config, report, paths, output| {
        log_warnings(report);
        run(config, paths, need, edge, output, work)
    })
}

/// The same with a configuration that is there already.
pub(super) fn run(
    config: &Config,
    paths: &Paths,
    need: Need<'_>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Session, &mut Output) -> Exit,
) -> Exit {
    let agent = match agent(config, need.agent, output) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    // One thread: it starts at once, and a command waits most of the time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            output.problem(&format!("cannot start: {error}"), None);
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(Box::pin(attend(config, agent, paths, need, edge, output, work)));
    // A thread that waits for a key must not keep the program from ending.
    runtime.shutdown_background();
    exit
}

async fn attend(
    config: &Config,
    agent: &AgentConfig,
    paths: &Paths,
    need: Need<'_>,
    edge: &Edge,
    output: &mut Output,
    work: impl AsyncFnOnce(&Session, &mut Output) -> Exit,
) -> Exit {
    // Before any server starts: none may be left behind from here on.
    let mut interrupts = match Signals::listen() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            output.problem(&format!("cannot start: {error}"), None);
            return Exit::Failed;
        }
    };
    let office = match keep::office(&paths.state, need.answers, &edge.redactor, output) {
        Ok(office) => office,
        Err(error) => return shown(&error, output),
    };
    let screen = Screen::new(edge.can_draw() && !output.json);
    let terminal = edge.has_person().then(|| Terminal::new(screen.clone()));
    let environment = edge.environment();
    let resolver =
        Resolver::new(config.secrets.clone(), environment.clone(), edge.redactor.clone());
    let host = Host {
        person: terminal.clone().map(|terminal| Arc::new(terminal) as _),
        sampler: None,
        // Where the shell stands is no permission: some servers would let go of their own folders for it.
        roots: Vec::new(),
    };
    let guard = edge.guard_command().map_or_else(Guard::none, Guard::new);
    let surroundings = Surroundings { resolver: resolver.clone(), environment, guard, host };
    let folders = keep::folders(&paths.state);
    let setup = Setup { surroundings, folders, office, tries_again: false };
    let fleet = Fleet::start(&reduced(config, agent, need), setup);
    let Some(tools) = fleet.agent(agent.id.as_str()) else {
        output.problem("the agent is not there", None);
        return Exit::Failed;
    };
    let lazy = agent.mcp.servers.iter().filter(|(_, server)| server.treatment.lazy);
    let session = Session {
        tools,
        resolver,
        terminal,
        screen,
        config: agent.clone(),
        lazy: lazy.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(),
        catalogue: keep::catalogue(&paths.state),
    };
    let exit = tokio::select! {
        exit = work(&session, output) => exit,
        _ = interrupts.next() => Exit::Interrupted,
    };
    session.screen.clear();
    // Whoever is in a hurry asks twice: then nothing is waited for, and the servers are killed.
    tokio::select! {
        () = fleet.stop() => {}
        _ = interrupts.next() => {}
    }
    exit
}

/// The configuration as the command needs it.
fn reduced(config: &Config, agent: &AgentConfig, need: Need<'_>) -> Config {
    let mut agent = agent.clone();
    for server in agent.mcp.servers.values_mut() {
        server.treatment.lazy |= !need.all;
        if let Some(timeout) = need.timeout {
            server.treatment.tool_timeout = timeout;
        }
    }
    if let Some(timeout) = need.timeout {
        agent.mcp.settings.call_timeout_cap = timeout;
    }
    Config { agents: vec![agent], ..config.clone() }
}

/// The agent of an id; a wrong one is told.
pub(super) fn agent<'c>(
    config: &'c Config,
    id: Option<&str>,
    output: &mut Output,
) -> Result<&'c AgentConfig, Exit> {
    find_agent(config, id).map_err(|error| shown(&error, output))
}
