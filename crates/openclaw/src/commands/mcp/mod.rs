//! `openclaw mcp …`: one module for each subcommand.

mod add;
mod answer;
mod arguments;
mod call;
mod check;
mod client_metadata;
mod connect;
mod doctor;
mod enable;
mod entry;
mod get;
mod import;
mod install;
mod library;
mod list;
mod live;
mod login;
mod logout;
mod logs;
mod parameters;
mod refresh;
mod reload;
mod remove;
mod save;
mod screen;
mod servers;
mod shell;
mod status;
mod terminal;
mod tools;
pub(crate) mod write;

use std::path::Path;

use openclaw_config::{Config, ServerConfig, ServerName, Setting, SettingOrigin};

use crate::cli::McpCommand;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

pub(super) use doctor::findings;
pub(super) use servers::show as show_servers;

/// Runs the subcommand.
pub(crate) fn run(
    command: &McpCommand,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    match command {
        McpCommand::Add(args) => add::add(args, flag, edge, output),
        McpCommand::AddJson(args) => add::add_json(args, flag, edge, output),
        McpCommand::Get(args) => get::get(args, flag, edge, output),
        McpCommand::Remove(args) => remove::remove(args, flag, edge, output),
        McpCommand::Enable(args) => enable::set(args, true, flag, edge, output),
        McpCommand::Disable(args) => enable::set(args, false, flag, edge, output),
        McpCommand::Connect { url, name, no_check } => {
            connect::connect(url, name.as_deref(), !no_check, flag, edge, output)
        }
        McpCommand::Import(args) => import::import(args, flag, edge, output),
        McpCommand::Install(args) => install::install(args, flag, edge, output),
        McpCommand::Uninstall(target) => install::uninstall(target, flag, edge, output),
        McpCommand::Serve(args) => super::mcp_server::serve(args, flag, edge, output),
        McpCommand::List(args) => list::list(args, flag, edge, output),
        McpCommand::Servers(args) => servers::servers(args, flag, edge, output),
        McpCommand::Tools(args) => tools::tools(args, flag, edge, output),
        McpCommand::Call(args) => call::call(args, flag, edge, output),
        McpCommand::Resources(args) => library::resources(args, flag, edge, output),
        McpCommand::Read(args) => library::read(args, flag, edge, output),
        McpCommand::Prompts(args) => library::prompts(args, flag, edge, output),
        McpCommand::Prompt(args) => library::prompt(args, flag, edge, output),
        McpCommand::Complete(args) => library::complete(args, flag, edge, output),
        McpCommand::Doctor(args) => doctor::doctor(args, flag, edge, output),
        McpCommand::Status(args) => status::status(args, flag, edge, output),
        McpCommand::Login(args) => login::login(args, flag, edge, output),
        McpCommand::Logout(args) => logout::logout(args, flag, edge, output),
        McpCommand::ClientMetadata(args) => {
            client_metadata::client_metadata(args, flag, edge, output)
        }
        McpCommand::Logs(args) => logs::logs(args, flag, edge, output),
        McpCommand::Refresh(args) => refresh::refresh(args, flag, edge, output),
        McpCommand::Reload(args) => reload::reload(args, flag, edge, output),
    }
}

/// Parses the name of a new server.
fn server_name(name: &str) -> Result<ServerName, CommandError> {
    ServerName::new(name).map_err(|error| {
        let invalid =
            CommandError::usage(format!("invalid server name `{name}`")).cause(error.to_string());
        match error.suggestion() {
            Some(better) => invalid.hint(format!("use `{better}`")),
            None => invalid,
        }
    })
}

/// Returns the server with this name, of the first agent that has it.
fn find<'c>(config: &'c Config, name: &str) -> Option<&'c ServerConfig> {
    config.agents.iter().find_map(|agent| agent.mcp.servers.get(name))
}

/// Returns the file and line of a server's settings.
fn standing(settings: &[Setting]) -> Option<String> {
    settings.iter().find_map(|setting| match &setting.origin {
        SettingOrigin::File { location, .. } => {
            Some(format!("{}:{}", location.file, location.line))
        }
        _ => None,
    })
}
