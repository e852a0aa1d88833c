//! A gateway in this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_gateway::socket::Caller;
use openclaw_gateway::{Gateway, GatewaySetup, Prepare};
use openclaw_mcp::fleet;
use openclaw_mcp::server::StartMode;
use openclaw_mcp::server::dial::DialContext;
use openclaw_mcp_client::connection::remote::AuthContext;
use openclaw_mcp_client::host::Host;
use openclaw_process::Guard;
use openclaw_protocol::Surface;
use openclaw_protocol::client::ConnectOptions;
use openclaw_protocol::connect::ClientInfo;
use openclaw_secrets::Resolver;

use super::{GatewayLink, Need};
use crate::edge::Edge;
use crate::error::{CommandError, chain};
use crate::output::Output;
use crate::state_files;

/// A gateway in this process, and a client surface to it.
pub(super) struct Local {
    gateway: Arc<Gateway>,
    surface: Arc<dyn Surface>,
}

impl Local {
    pub(super) async fn start(
        config: Config,
        need: &Need,
        paths: &Paths,
        edge: &Edge,
        output: &mut Output,
    ) -> Result<Self, CommandError> {
        let gateway = Gateway::start(setup(config, need, paths, edge, output)?).await;
        let gateway = gateway.map_err(|error| cannot_start(&error))?;
        gateway.notes().iter().for_each(|note| output.warning(note));
        if let Need::Agents(_) | Need::AgentsIn(..) = need {
            let missing = gateway.fleet().missing().await;
            if !missing.is_empty() {
                gateway.stop(Duration::ZERO).await;
                return Err(missing_servers(&missing));
            }
        }
        let surface = gateway.caller(caller(need));
        Ok(Self { gateway, surface })
    }

    pub(super) fn link(&self) -> GatewayLink {
        GatewayLink { surface: Arc::clone(&self.surface), local: Some(Arc::clone(&self.gateway)) }
    }

    /// Stops the gateway and its servers.
    pub(super) async fn stop(self, grace: Duration) {
        drop(self.surface);
        self.gateway.stop(grace).await;
    }
}

/// Returns the setup of a gateway for this need.
pub(crate) fn setup(
    config: Config,
    need: &Need,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<GatewaySetup, CommandError> {
    let (start, agent, calls) = match need {
        Need::Records => (StartMode::OnUse, None, true),
        Need::Agents(_) | Need::AgentsIn(..) => (StartMode::Eager, None, true),
        Need::Servers(it) => (it.start.clone(), it.agent.clone(), it.calls),
    };
    let is_one_command = matches!(need, Need::Servers(_));
    let agent = agent.or_else(|| {
        let default = config.agents.first().filter(|_| is_one_command);
        default.map(|agent| agent.id.to_string())
    });
    let mut services = state_files::services(&paths.state, calls, &edge.redactor, output)?;
    services.tracer = edge.tracer.clone();
    if !is_one_command {
        // A single `mcp` command shows the whole result instead.
        services.spill = state_files::spill(&paths.state, output);
    }
    let environment = edge.environment();
    let context = dial_context(&config, paths, edge);
    let folders = state_files::folders(&paths.state);
    let tries_again = !is_one_command;
    Ok(GatewaySetup {
        config,
        config_file: paths.config.clone(),
        load: edge.loader(&paths.config),
        state: paths.state.clone(),
        fleet: fleet::FleetSetup { context, folders, services, tries_again, start, agent },
        environment,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        prepare: if is_one_command { Prepare::OnUse } else { Prepare::AtStart },
        workspace: match need {
            Need::AgentsIn(_, folder) => Some(folder.clone()),
            _ => None,
        },
    })
}

/// Returns the context for connecting to servers.
pub(crate) fn dial_context(config: &Config, paths: &Paths, edge: &Edge) -> DialContext {
    let environment = edge.environment_of(paths);
    let resolver =
        Resolver::new(config.secrets.clone(), environment.clone(), edge.redactor.clone());
    DialContext {
        resolver,
        environment,
        guard: edge.guard_command().map_or_else(Guard::none, Guard::new),
        // The gateway forwards elicitations to connected clients.
        host: Host::default(),
        auth: Some(AuthContext {
            store: Arc::new(state_files::logins(&paths.state, edge.key_options())),
            // A login is a request of its own, `mcp.auth`: a call that needs one fails at once.
            prompt: None,
            logs_in: false,
            client_metadata_url: None,
            renewals: openclaw_oauth::refresh::Renewals::default(),
        }),
    }
}

/// The error for required servers that are not ready.
pub(crate) fn missing_servers(missing: &[String]) -> CommandError {
    CommandError::unavailable(format!("required servers are not ready: {}", missing.join(", ")))
        .hint("run `openclaw mcp doctor`")
}

/// The error for a gateway that cannot start.
pub(crate) fn cannot_start(error: &dyn std::error::Error) -> CommandError {
    CommandError::failed(chain(error)).hint("run `openclaw doctor`")
}

/// The program itself, as a client of its own gateway.
pub(crate) fn ourselves() -> Caller {
    caller(&Need::Records)
}

/// A client in this process.
pub(crate) fn caller(need: &Need) -> Caller {
    let options = ConnectOptions::new("", None, env!("CARGO_PKG_VERSION"));
    let role = need.role();
    Caller {
        client: ClientInfo { display_name: need.name(), ..options.client },
        role: options.role,
        scopes: role.scopes(options.scopes),
        caps: role.caps(options.caps),
        commands: Vec::new(),
        remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        connection: "this process".to_owned(),
    }
}
