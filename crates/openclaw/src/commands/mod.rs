//! One module for each command.

mod config;
mod secrets;
mod show;

use clap::CommandFactory as _;
use openclaw_config::Config;

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
            with_config(cli, edge, output, |config, output| {
                show::show(config, agent.as_deref(), output)
            })
        }
        Command::Secrets(SecretsCommand::Check { references }) => {
            secrets::check(cli, references, edge, output)
        }
    }
}

/// Loads the configuration for a command that needs one; reports what is wrong with it.
fn with_config(
    cli: &Cli,
    edge: &Edge,
    output: &mut Output,
    run: impl FnOnce(&Config, &mut Output) -> Exit,
) -> Exit {
    let paths = match edge.paths(cli.global.config.as_deref()) {
        Ok(paths) => paths,
        Err(error) => {
            output.problem(&error, None);
            return Exit::Config;
        }
    };
    let loaded = edge.load(&paths.config);
    match &loaded.config {
        Some(config) => {
            config::tell_if_missing(&paths, config, output);
            run(config, output)
        }
        None => {
            output.report(&loaded.report);
            Exit::Config
        }
    }
}
