//! `openclaw mcp client-metadata`: prints the document that describes this program to authorization
//! servers.

use openclaw_gateway::client_metadata;
use url::Url;

use crate::cli::ClientMetadataArgs;
use crate::commands::load_config;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn client_metadata(
    args: &ClientMetadataArgs,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let url = match &args.url {
        Some(text) => hosted_at(text)?,
        None => {
            let config = load_config(edge, output)?.config;
            let public = config.gateway.public_url.as_ref();
            public.and_then(|url| client_metadata::url(url.expose())).ok_or_else(|| {
                CommandError::usage("the URL of the document is unknown")
                    .hint("use `--url URL`, or set `gateway.publicUrl`")
            })?
        }
    };
    output.value(&client_metadata::document(&url));
    Ok(Exit::Ok)
}

/// Parses the URL, which is also the client id: https, with a path.
fn hosted_at(text: &str) -> Result<Url, CommandError> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        url.scheme() == "https" && url.path() != "/" && url.fragment().is_none() && is_plain
    });
    url.ok_or_else(|| {
        CommandError::usage("invalid URL")
            .hint("write an https URL with a path: `https://example.com/openclaw.json`")
    })
}
