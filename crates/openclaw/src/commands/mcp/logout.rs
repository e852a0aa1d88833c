//! `openclaw mcp logout`: revokes the login at a server, and deletes it.

use openclaw_protocol::mcp::{AuthAction, AuthParams, AuthResult};
use openclaw_protocol::rpc;

use super::shell::{servers_of, with_shell};
use crate::cli::LogoutArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::GOOD;

pub(super) fn logout(args: &LogoutArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let name = &args.name;
    let params = |action| AuthParams {
        agent_id: args.context.agent.clone(),
        server: name.clone(),
        action: Some(action),
        ..AuthParams::default()
    };
    with_shell(servers_of(&args.context, edge), edge, output, async |shell, output| {
        let server = Some(name.as_str());
        let before = shell.ask::<rpc::McpAuth>(params(AuthAction::Status), server).await?;
        // A message: there is a login that cannot be read. It can still be deleted.
        if before.grant.is_none() && before.message.is_none() && before.url.is_none() {
            return Err(CommandError::failed(format!("not logged in to `{name}`")));
        }
        let result = shell.ask::<rpc::McpAuth>(params(AuthAction::Logout), server).await?;
        if output.json {
            // The gateway says whether the server can be used; here, that the command has worked.
            output.data(&AuthResult { ok: true, ..result });
            return Ok(Exit::Ok);
        }
        output.line(format_args!("{GOOD}✓{GOOD:#} logged out of `{name}`"));
        if let Some(message) = &result.message {
            output.warning(&printable(message));
        }
        Ok(Exit::Ok)
    })
}
