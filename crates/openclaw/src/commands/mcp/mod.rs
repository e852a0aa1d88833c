//! `openclaw mcp …`: one module for each verb.

mod add;
mod connect;
mod import;
mod remove;
mod write;

use std::path::Path;

use openclaw_config::{Config, ServerConfig, ServerName, Transport};

use crate::cli::McpCommand;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;

/// Runs the verb that was asked for.
pub(crate) fn run(
    command: &McpCommand,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    match command {
        McpCommand::Add(args) => add::add(args, flag, edge, output),
        McpCommand::Remove { name } => remove::remove(name, flag, edge, output),
        McpCommand::Connect { url, name } => {
            connect::connect(url, name.as_deref(), flag, edge, output)
        }
        McpCommand::Import(args) => import::import(args, flag, edge, output),
    }
}

/// A name for a new server; a bad one is explained.
fn server_name(name: &str, output: &mut Output) -> Result<ServerName, Exit> {
    ServerName::new(name).map_err(|error| {
        let hint = error.suggestion().map(|better| format!("call it `{better}`"));
        let message = format!("`{name}` is no name for a server: {error}");
        output.problem(&message, hint.as_deref());
        Exit::Usage
    })
}

/// What a server is, in a few words: its command line or its address, without credentials.
fn gist(server: &ServerConfig) -> String {
    match &server.transport {
        Transport::Stdio(stdio) => {
            let mut words = vec![stdio.command.written().to_owned()];
            words.extend(stdio.args.shown());
            words.join(" ")
        }
        Transport::Http(http) => http.url.to_string(),
    }
}

/// A server of that name, in whichever agent has it.
fn find<'c>(config: &'c Config, name: &str) -> Option<&'c ServerConfig> {
    config.agents.iter().find_map(|agent| agent.mcp.servers.get(name))
}
