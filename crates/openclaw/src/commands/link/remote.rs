//! The gateway in another process: found by the state folder, called over its socket.

use std::path::Path;
use std::time::Duration;

use openclaw_config::Paths;
use openclaw_gateway::state::{self, Running};
use openclaw_protocol::client::{Client, ConnectError, Options};

use super::Role;
use crate::output::Output;

/// How long a gateway on this machine may take to let us in. It runs, or nobody would be called.
const CONNECT: Duration = Duration::from_secs(5);

/// Calls the gateway that runs on the state folder. One that does not answer is told, and done without.
pub(super) async fn find(paths: &Paths, role: Role, output: &mut Output) -> Option<Client> {
    let running = state::find(&paths.state)?;
    match call(&running, role).await {
        Ok(client) => {
            tell_if_other(&client, paths, output);
            Some(client)
        }
        Err(error) => {
            let pid = running.pid;
            output.note(&format!(
                "the gateway (process {pid}) cannot be used: {error}; this goes on without it"
            ));
            None
        }
    }
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

/// Who names a file and is served by a gateway that has read another one wants to know.
fn tell_if_other(client: &Client, paths: &Paths, output: &mut Output) {
    let Some(theirs) = &client.hello().snapshot.config_path else { return };
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if whole(Path::new(theirs)) != whole(&paths.config) {
        output.note(&format!(
            "the gateway uses {theirs}, and not {}; `openclaw gateway stop` ends it",
            paths.config.display()
        ));
    }
}
