//! `openclaw mcp connect`: adds the server at a URL, with a name derived from it.

use openclaw_config::{Config, ServerName, Transport};
use openclaw_gateway::mcp::free_name;
use serde_json::json;

use super::add::{Added, add_one};
use super::server_name;
use super::write::{NewServer, already_exists, current, exists};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

pub(super) fn connect(
    url: &str,
    name: Option<&str>,
    is_tried: bool,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let suggested = ServerName::from_address(url).ok_or_else(|| {
        // The URL is not shown: it may contain a password.
        CommandError::usage("invalid URL").hint("write it in full: `https://example.com/mcp`")
    })?;
    let given = name.map(server_name).transpose()?;
    let paths = edge.paths()?;
    let config = current(&paths, edge);
    if let Some(twin) = config.as_ref().and_then(|config| server_at(config, url)) {
        return Err(CommandError::failed(format!("this URL is already configured, as `{twin}`"))
            .hint("run `openclaw mcp add NAME --url URL` to add it under another name as well"));
    }
    let is_taken = |name: &ServerName| exists(name.as_str(), &paths, edge);
    if let Some(taken) = given.as_ref().filter(|name| is_taken(name)) {
        return Err(already_exists(taken, "choose another name", &paths, edge));
    }
    let name = given.or_else(|| free_name(&suggested, is_taken)).ok_or_else(|| {
        CommandError::failed("no free name for this server").hint("choose one with `--name NAME`")
    })?;
    let server = NewServer { name, entry: json!({ "url": url }) };
    let server = Added { server: &server, replaced: false, is_tried };
    add_one(&server, &paths, edge, output)
}

/// Returns the server with this URL.
fn server_at<'c>(config: &'c Config, url: &str) -> Option<&'c ServerName> {
    let mut servers = config.agents.iter().flat_map(|agent| &agent.mcp.servers);
    let has = |transport: &Transport| match transport {
        Transport::Http(http) => http.url.is(url),
        Transport::Stdio(_) => false,
    };
    servers.find(|(_, server)| has(&server.connection.transport)).map(|(name, _)| name)
}
