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

use openclaw_config::{Config, ServerConfig, ServerName, Setting, SettingOrigin};

use crate::cli::McpCommand;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

pub(super) use doctor::findings;
pub(super) use servers::show as show_servers;

/// Runs the subcommand.
pub(crate) fn run(command: &McpCommand, edge: &Edge, output: &mut Output) -> CommandResult {
    match command {
        McpCommand::Add(args) => add::add(args, edge, output),
        McpCommand::AddJson(args) => add::add_json(args, edge, output),
        McpCommand::Get(args) => get::get(args, edge, output),
        McpCommand::Remove(args) => remove::remove(args, edge, output),
        McpCommand::Enable(args) => enable::set(args, true, edge, output),
        McpCommand::Disable(args) => enable::set(args, false, edge, output),
        McpCommand::Connect { url, name, no_check } => {
            connect::connect(url, name.as_deref(), !no_check, edge, output)
        }
        McpCommand::Import(args) => import::import(args, edge, output),
        McpCommand::Install(args) => install::install(args, edge, output),
        McpCommand::Uninstall(target) => install::uninstall(target, edge, output),
        McpCommand::Serve(args) => super::mcp_server::serve(args, edge, output),
        McpCommand::List(args) => list::list(args, edge, output),
        McpCommand::Servers(args) => servers::servers(args, edge, output),
        McpCommand::Tools(args) => tools::tools(args, edge, output),
        McpCommand::Call(args) => call::call(args, edge, output),
        McpCommand::Resources(args) => library::resources(args, edge, output),
        McpCommand::Read(args) => library::read(args, edge, output),
        McpCommand::Prompts(args) => library::prompts(args, edge, output),
        McpCommand::Prompt(args) => library::prompt(args, edge, output),
        McpCommand::Complete(args) => library::complete(args, edge, output),
        McpCommand::Doctor(args) => doctor::doctor(args, edge, output),
        McpCommand::Status(args) => status::status(args, edge, output),
        McpCommand::Login(args) => login::login(args, edge, output),
        McpCommand::Logout(args) => logout::logout(args, edge, output),
        McpCommand::ClientMetadata(args) => client_metadata::client_metadata(args, edge, output),
        McpCommand::Logs(args) => logs::logs(args, edge, output),
        McpCommand::Refresh(args) => refresh::refresh(args, edge, output),
        McpCommand::Reload(args) => reload::reload(args, edge, output),
    }
}

/// Returns what to say where there are no servers.
fn no_servers(edge: &Edge) -> &'static str {
    let config = edge.paths().ok().and_then(|paths| edge.load(&paths.config).config);
    match config.is_some_and(|config| config.agents.iter().all(|agent| !agent.mcp.enabled)) {
        true => "MCP is disabled: `plugins.entries.mcp-client.enabled` is false.",
        false => "No MCP servers. Run `openclaw mcp add` to add one.",
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
fn place_of(settings: &[Setting]) -> Option<String> {
    settings.iter().find_map(|setting| match &setting.origin {
        SettingOrigin::File { location, .. } => {
            Some(format!("{}:{}", location.file, location.line))
        }
        _ => None,
    })
}
