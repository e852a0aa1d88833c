//! A gateway in another process: found through the state folder, reached over its socket.

use std::path::Path;
use std::time::Duration;

use openclaw_config::Paths;
use openclaw_gateway::state::{self, GatewayRecord};
use openclaw_protocol::client::{Client, ConnectError, ConnectOptions};
use openclaw_protocol::connect::ClientInfo;
use openclaw_secrets::SecretString;

use super::Need;
use crate::edge::Edge;
use crate::output::Output;

/// The timeout for connecting to a gateway on this machine, whose process is known to run.
const CONNECT: Duration = Duration::from_secs(5);

/// Connects to the gateway that runs on the same state folder with the same configuration file. If
/// one is running but not used, prints a note with the reason.
pub(super) async fn find(
    paths: &Paths,
    need: &Need,
    edge: &Edge,
    output: &mut Output,
) -> Option<Client> {
    let running = running(&paths.state, edge)?;
    match usable(&running, paths, need).await {
        Ok(client) => Some(client),
        Err(why) => {
            output.note(&format!("not using the gateway (PID {}): {why}", running.pid));
            None
        }
    }
}

/// Connects to the gateway, or returns the reason why it is not used.
pub(super) async fn usable(
    running: &GatewayRecord,
    paths: &Paths,
    need: &Need,
) -> Result<Client, String> {
    if need.is_alone() {
        return Err(match need {
            Need::AgentsIn(..) => {
                "`--workspace` without a terminal runs in this process".to_owned()
            }
            _ => "`--no-gateway` is set".to_owned(),
        });
    }
    let client = call(running, need).await;
    let client = client.map_err(|error| error.to_string())?;
    match &client.hello().snapshot.config_path {
        None => Err("it does not report which configuration it uses".to_owned()),
        Some(theirs) if is_same(Path::new(theirs), &paths.config) => Ok(client),
        Some(theirs) => {
            let ours = paths.config.display();
            Err(format!("it uses the configuration {theirs}, this command uses {ours}"))
        }
    }
}

/// Connects to a gateway.
async fn call(running: &GatewayRecord, need: &Need) -> Result<Client, ConnectError> {
    Client::connect(&options(running.url.clone(), running.token.clone(), need)).await
}

/// Returns the options of a connection for this need.
pub(crate) fn options(url: String, token: Option<SecretString>, need: &Need) -> ConnectOptions {
    let (role, version) = (need.role(), env!("CARGO_PKG_VERSION"));
    let options = ConnectOptions::new(url, token, version);
    ConnectOptions {
        client: ClientInfo { display_name: need.name(), ..options.client },
        scopes: role.scopes(options.scopes),
        caps: role.caps(options.caps),
        // On this machine, wherever the gateway is bound.
        allow_plaintext: true,
        connect_timeout: CONNECT,
        request_timeout: need.answer_within(),
        ..options
    }
}

/// Like [`find`], for a command that opens several connections.
pub(crate) async fn usable_options(
    paths: &Paths,
    need: &Need,
    edge: &Edge,
    output: &mut Output,
) -> Option<ConnectOptions> {
    drop(find(paths, need, edge, output).await?);
    let running = running(&paths.state, edge)?;
    Some(options(running.url, running.token, need))
}

/// Finds the gateway of a state folder. Its token is registered with the redactor.
pub(crate) fn running(state: &Path, edge: &Edge) -> Option<GatewayRecord> {
    let running = state::find(state)?;
    edge.redactor.add_all(&running.token);
    Some(running)
}

/// Finds the gateway of a state folder, and tries to connect to it.
pub(crate) async fn find_running(
    state: &Path,
    edge: &Edge,
) -> Option<(GatewayRecord, Result<Client, ConnectError>)> {
    let running = running(state, edge)?;
    let called = call(&running, &Need::Records).await;
    Some((running, called))
}

fn is_same(theirs: &Path, ours: &Path) -> bool {
    let whole = |path: &Path| openclaw_files::canonical(path).unwrap_or_else(|_| path.to_owned());
    theirs == ours || whole(theirs) == whole(ours)
}
