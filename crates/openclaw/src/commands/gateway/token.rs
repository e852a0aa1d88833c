//! `openclaw gateway token create | list | revoke`: access tokens for clients on other machines.

use std::io::ErrorKind;

use comfy_table::{Attribute, Cell};
use openclaw_gateway::tokens::{TokenError, TokenStore};
use openclaw_protocol::Scope;
use serde_json::{Value, json};

use crate::cli::{TokenCommand, TokenScope};
use crate::commands::sessions::ago;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;
use openclaw_terminal::style::GOOD;

pub(super) fn token(command: &TokenCommand, edge: &Edge, output: &mut Output) -> CommandResult {
    let store = TokenStore::new(&edge.paths()?.state);
    match command {
        TokenCommand::Create { name, scope } => create(&store, name, scope, output)?,
        TokenCommand::List => list(&store, output)?,
        TokenCommand::Revoke { name } => revoke(&store, name, output)?,
    }
    Ok(Exit::Ok)
}

fn create(
    store: &TokenStore,
    name: &str,
    wanted: &[TokenScope],
    output: &mut Output,
) -> Result<(), CommandError> {
    let scopes: Vec<Scope> = wanted.iter().map(|scope| (*scope).into()).collect();
    let token = store.create(name, &scopes)?;
    if output.json {
        let names: Vec<_> = scopes.iter().filter_map(|scope| scope.name()).collect();
        let token = token.expose();
        output.value(&json!({ "ok": true, "name": name, "scopes": names, "token": token }));
    } else {
        output.line(token.expose());
        output
            .note("the token is shown only once; `openclaw gateway token revoke NAME` revokes it");
    }
    Ok(())
}

fn list(store: &TokenStore, output: &mut Output) -> Result<(), CommandError> {
    let tokens = store.list()?;
    if output.json {
        let tokens = tokens.iter().map(|token| {
            let (name, scopes, created) = (&token.name, &token.scopes, token.created_at_ms);
            json!({ "name": name, "scopes": scopes, "createdAtMs": created })
        });
        output.value(&json!({ "tokens": tokens.collect::<Vec<Value>>() }));
    } else if tokens.is_empty() {
        output.line("No access tokens. Run `openclaw gateway token create` to create one.");
    } else {
        output.table(tokens.iter().map(|token| {
            vec![
                Cell::new(&token.name).add_attribute(Attribute::Bold),
                Cell::new(token.scopes.join(", ")),
                Cell::new(ago(token.created_at_ms)),
            ]
        }));
    }
    Ok(())
}

fn revoke(store: &TokenStore, name: &str, output: &mut Output) -> Result<(), CommandError> {
    store.revoke(name)?;
    match output.json {
        true => output.value(&json!({ "ok": true, "name": name })),
        false => output.line(format_args!("{GOOD}✓{GOOD:#} token `{name}` revoked")),
    }
    Ok(())
}

impl From<TokenScope> for Scope {
    fn from(scope: TokenScope) -> Self {
        match scope {
            TokenScope::Read => Self::Read,
            TokenScope::Metrics => Self::Metrics,
            TokenScope::Write => Self::Write,
            TokenScope::Approvals => Self::Approvals,
            TokenScope::Questions => Self::Questions,
            TokenScope::Admin => Self::Admin,
        }
    }
}

impl From<TokenError> for CommandError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::InvalidName(_) => Self::usage(error.to_string()),
            TokenError::NameTaken(_) => Self::usage(error.to_string())
                .hint("use another name, or run `openclaw gateway token revoke NAME` first"),
            TokenError::Unknown(_) => Self::usage(error.to_string())
                .hint("run `openclaw gateway token list` to list the tokens"),
            TokenError::TooMany => Self::failed(error.to_string())
                .hint("run `openclaw gateway token revoke NAME` to revoke one"),
            TokenError::File { error: ref cause, .. }
                if matches!(cause.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
            {
                Self::failed(error.to_string())
                    .hint("the file is damaged: delete it, and create the tokens again")
            }
            TokenError::File { .. } => Self::failed(error.to_string()),
        }
    }
}
