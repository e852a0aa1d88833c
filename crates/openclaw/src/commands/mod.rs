//! One module for each command.

mod acp;
mod agent;
mod approvals;
mod chat;
mod check;
mod config;
mod config_edit;
mod demo_server;
mod elicitation;
mod first_run;
mod gateway;
mod hub;
pub(crate) mod link;
mod mcp;
mod mcp_server;
mod secrets;
mod sessions;
mod show;
mod status;
mod talk;
mod top;
mod workspace;

use openclaw_config::{AgentConfig, ChosenBy, Config, Paths, Report, Severity};

use crate::cli::{Cli, Command, ConfigCommand, SecretsCommand};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;

/// Runs the command.
pub(crate) fn run(cli: &Cli, edge: &Edge, output: &mut Output) -> CommandResult {
    match &cli.command {
        Command::Completions { shell } => {
            let script = crate::completion::registration(*shell);
            output.raw(&script.context("cannot write the script")?);
            Ok(Exit::Ok)
        }
        Command::Config(ConfigCommand::Schema) => {
            output.value(&openclaw_config::json_schema());
            Ok(Exit::Ok)
        }
        Command::Config(ConfigCommand::Get { key }) => config_edit::get(key, edge, output),
        Command::Config(ConfigCommand::Set { key, value }) => {
            config_edit::set(key, value, edge, output)
        }
        Command::Config(ConfigCommand::Unset { key }) => config_edit::unset(key, edge, output),
        Command::Config(ConfigCommand::Edit) => config_edit::edit(edge, output),
        Command::Config(ConfigCommand::Path) => config::path(edge, output),
        Command::Config(ConfigCommand::Validate { file, strict }) => {
            config::validate(file.as_deref(), *strict, edge, output)
        }
        Command::Config(ConfigCommand::Show { agent }) => {
            show::show(agent.as_deref(), edge, output)
        }
        Command::Chat(args) => chat::chat(args, edge, output),
        Command::Acp(args) => acp::acp(args, edge, output),
        Command::McpServer(args) => mcp_server::serve(args, edge, output),
        Command::Agent(args) => agent::agent(args, edge, output),
        Command::Sessions(args) => sessions::sessions(args, edge, output),
        Command::Approvals(command) => approvals::approvals(command.clone(), edge, output),
        Command::Gateway(args) => gateway::gateway(args, edge, output),
        Command::Status(choice) => status::status(choice, edge, output),
        Command::Top(args) => top::top(args, edge, output),
        Command::Doctor => status::doctor(edge, output),
        Command::Mcp(command) => mcp::run(command, edge, output),
        Command::DemoServer => demo_server::run(),
        Command::Secrets(SecretsCommand::Check { references }) => {
            secrets::check(references, edge, output)
        }
        Command::Secrets(SecretsCommand::Set { name }) => secrets::set(name, edge, output),
    }
}

/// A configuration without errors, and the paths it was read from.
struct LoadedConfig {
    config: Config,
    /// Warnings and notes.
    report: Report,
    paths: Paths,
}

/// Loads the configuration for a command that needs one.
fn load_config(edge: &Edge, output: &mut Output) -> Result<LoadedConfig, CommandError> {
    let paths = edge.paths()?;
    let (config, report) = read_config(&paths, edge, output)?;
    Ok(LoadedConfig { config, report, paths })
}

/// Loads the configuration, and logs its warnings.
fn load_config_at(paths: &Paths, edge: &Edge, output: &mut Output) -> Result<Config, CommandError> {
    let (config, report) = read_config(paths, edge, output)?;
    log_warnings(&report);
    Ok(config)
}

fn read_config(
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<(Config, Report), CommandError> {
    let loaded = edge.load(&paths.config);
    let Some(config) = loaded.config else { return Err(CommandError::config(loaded.report)) };
    warn_if_missing(paths, &config, output);
    Ok((config, loaded.report))
}

/// Returns the agent with this id, or the default agent.
fn find_agent<'c>(config: &'c Config, id: Option<&str>) -> Result<&'c AgentConfig, CommandError> {
    config.agent(id).ok_or_else(|| {
        let known = config.agents.iter().map(|agent| agent.id.as_str());
        unknown_agent(id.unwrap_or_default(), &known.collect::<Vec<_>>())
    })
}

/// The error for an unknown agent; the hint suggests a similar id.
fn unknown_agent(id: &str, known: &[&str]) -> CommandError {
    CommandError::usage(format!("unknown agent `{id}`")).hint(
        match openclaw_config::nearest(id, known) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("known agents: {}", known.join(", ")),
        },
    )
}

/// Runs a command's future to completion, on this thread.
fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start")?;
    let result = runtime.block_on(Box::pin(work));
    // A thread that is blocked on stdin must not prevent the exit.
    runtime.shutdown_background();
    result
}

/// Logs the warnings about the active configuration.
fn log_warnings(report: &Report) {
    let found = report.diagnostics().iter();
    for warning in found.filter(|found| found.severity() == Severity::Warning) {
        let key = warning.key_path().unwrap_or_default();
        tracing::warn!(key, "{}", warning.message());
    }
}

/// Warns if a file that the user named is missing. In the default place, none is needed.
fn warn_if_missing(paths: &Paths, config: &Config, output: &mut Output) {
    if config.file.is_none() && paths.chosen_by != ChosenBy::Default {
        let file = paths.config.display();
        output.warning(&format!("{file} does not exist; the built-in default is used"));
    }
}
