//! One module for each command.

mod agent;
mod chat;
mod check;
mod config;
mod demo_server;
mod gateway;
mod inquiry;
mod link;
mod mcp;
mod secrets;
mod sessions;
mod show;
mod status;
mod talk;

use std::path::Path;

use clap::CommandFactory as _;
use openclaw_config::{ChosenBy, Config, Paths, Report, Severity};

use crate::cli::{Cli, Command, ConfigCommand, SecretsCommand};
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;

/// Runs the command that was asked for.
pub(crate) fn run(cli: &Cli, edge: &Edge, output: &mut Output) -> Exit {
    let flag = cli.global.config.as_deref();
    match &cli.command {
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "openclaw", &mut text);
            output.raw(&text);
            Exit::Ok
        }
        Command::Config(ConfigCommand::Schema) => {
            output.value(&openclaw_config::json_schema());
            Exit::Ok
        }
        Command::Config(ConfigCommand::Path) => config::path(flag, edge, output),
        Command::Config(ConfigCommand::Validate { file, strict }) => {
            config::validate(file.as_deref(), flag, *strict, edge, output)
        }
        Command::Config(ConfigCommand::Show { agent }) => {
            with_config(flag, edge, output, |config, output| {
                show::show(config, agent.as_deref(), output)
            })
        }
        Command::Chat(args) => chat::chat(args, flag, edge, output),
        Command::Agent(args) => agent::agent(args, flag, edge, output),
        Command::Sessions(command) => sessions::sessions(command, flag, edge, output),
        Command::Gateway(args) => gateway::gateway(args, flag, edge, output),
        Command::Status => status::status(flag, edge, output),
        Command::Doctor => status::doctor(flag, edge, output),
        Command::Mcp(command) => mcp::run(command, flag, edge, output),
        Command::DemoServer => demo_server::run(output),
        Command::Secrets(SecretsCommand::Check { references }) => {
            secrets::check(flag, references, edge, output)
        }
    }
}

/// Finds the configuration file for a command.
fn with_paths(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    run: impl FnOnce(&Paths, &mut Output) -> Exit,
) -> Exit {
    match edge.paths(flag) {
        Ok(paths) => run(&paths, output),
        Err(error) => {
            output.problem(&error, None);
            Exit::Config
        }
    }
}

/// Loads the configuration for a command that needs one; reports what is wrong with it.
fn with_config(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    run: impl FnOnce(&Config, &mut Output) -> Exit,
) -> Exit {
    with_state(flag, edge, output, |config, _, output| run(config, output))
}

/// The same, for a command that also keeps or looks for something in the state folder.
fn with_state(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    run: impl FnOnce(&Config, &Paths, &mut Output) -> Exit,
) -> Exit {
    with_report(flag, edge, output, |config, _, paths, output| run(config, paths, output))
}

/// The same, for a command that logs what is doubtful.
fn with_report(
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
    run: impl FnOnce(&Config, &Report, &Paths, &mut Output) -> Exit,
) -> Exit {
    with_paths(flag, edge, output, |paths, output| {
        let loaded = edge.load(&paths.config);
        match &loaded.config {
            Some(config) => {
                tell_if_missing(paths, config, output);
                run(config, &loaded.report, paths, output)
            }
            None => {
                output.refuse(&loaded.report);
                Exit::Config
            }
        }
    })
}

/// Logs what is doubtful about a configuration that is used.
fn log_warnings(report: &Report) {
    let found = report.diagnostics().iter();
    for warning in found.filter(|found| found.severity() == Severity::Warning) {
        let key = warning.key_path().unwrap_or_default();
        tracing::warn!(key, "{}", warning.message());
    }
}

/// A missing file is no error, but whoever named one wants to know.
fn tell_if_missing(paths: &Paths, config: &Config, output: &mut Output) {
    if config.file.is_none() && paths.chosen_by != ChosenBy::Default {
        let file = paths.config.display();
        output.warning(&format!("{file} does not exist; the built-in default is used"));
    }
}
