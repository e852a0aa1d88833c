//! The gateway in another process: found by the state folder, called over its socket.

use std::path::Path;
use std::time::Duration;

use openclaw_config::{ChosenBy, Paths};
use openclaw_gateway::state::{self, Running};
use openclaw_protocol::client::{Client, ConnectError, Options};

use super::Role;
use crate::output::Output;

/// How long a gateway on this machine may take to let us in. It runs, or nobody would be called.
const CONNECT: Duration = Duration::from_secs(5);

/// Calls the gateway that runs on the state folder. One that does not answer is told, and done without; so is one
/// that works with another file than the one that was asked for.
pub(super) async fn find(paths: &Paths, role: Role, output: &mut Output) -> Option<Client> {
    let running = state::find(&paths.state)?;
    let client = match call(&running, role).await {
        Ok(client) => client,
        Err(error) => {
            let pid = running.pid;
            output.note(&format!(
                "the gateway (process {pid}) cannot be used: {error}; this goes on without it"
            ));
            return None;
        }
    };
    let Some(theirs) = other_file(&client, paths) else { return Some(client) };
    let ours = paths.config.display();
    if paths.chosen_by == ChosenBy::Default {
        output.note(&format!(
            "the gateway uses {theirs}, and not {ours}; `openclaw gateway stop` ends it"
        ));
        return Some(client);
    }
    output.note(&format!("the gateway uses {theirs}, and not {ours}; this goes on without it"));
    None
}

/// Calls a gateway.
async fn call(running: &Running, role: Role) -> Result<Client, ConnectError> {
    let version = env!("CARGO_PKG_VERSION");
    let options = Options::new(running.url.clone(), running.token.clone(), version);
    let (scopes, caps) = (role.scopes(options.scopes), role.caps(options.caps));
    Client::connect(&Options { connect_timeout: CONNECT, scopes, caps, ..options }).await
}

/// The gateway of a state folder, and whether it answers.
pub(crate) async fn knock(state: &Path) -> Option<(Running, Result<Client, ConnectError>)> {
    let running = state::find(state)?;
    let called = call(&running, Role::Person).await;
    Some((running, called))
}

/// The gateway's configuration file, if it is another than ours.
fn other_file<'c>(client: &'c Client, paths: &Paths) -> Option<&'c str> {
    let theirs = client.hello().snapshot.config_path.as_deref()?;
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    (whole(Path::new(theirs)) != whole(&paths.config)).then_some(theirs)
}
