//! A gateway that listens on a socket: claims the state folder, provides the token, binds the
//! port.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_metrics::Metrics;

use crate::gateway::Gateway;
use crate::metrics::ServedMetrics;
use crate::setup::{GatewaySetup, ServeError, unresolved};
use crate::socket::{self, ListenOptions, Listening, SocketLimits};
use crate::state::Claim;
use crate::tokens::TokenStore;

/// Minimum time for pending responses when stopping, however long turns took.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A gateway that listens on a socket.
#[derive(Debug)]
pub struct Served {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    listening: Listening,
    claim: Claim,
}

/// Starts a gateway and listens. The socket is bound before any server is started.
///
/// # Errors
/// Fails if the directory, the port or the token is not available.
pub async fn serve(
    mut setup: GatewaySetup,
    bind: Option<std::net::IpAddr>,
    port: Option<u16>,
) -> Result<Served, ServeError> {
    let claim = Claim::take(&setup.state)?;
    let settings = setup.config.gateway.clone();
    let resolver = &setup.fleet.context.resolver;
    let (token, token_is_shared) = match &settings.token {
        Some(template) => {
            let token = resolver.resolve_credential(template).await;
            (token.map_err(unresolved("gateway.auth.token"))?, true)
        }
        None => (claim.token(resolver.redactor())?, false),
    };
    let bind = bind.unwrap_or_else(|| settings.bind.ip());
    let metrics = &setup.config.metrics;
    let served_metrics = ServedMetrics::new(bind, metrics, resolver).await?;
    setup.fleet.services.metrics = Metrics::on(resolver.redactor().clone());
    setup.fleet.services.metrics.switch(metrics.counts());
    let options = ListenOptions {
        bind,
        port: port.unwrap_or(settings.port),
        token: Some(token.clone()),
        token_is_shared,
        tokens: Some(TokenStore::new(&setup.state)),
        limits: SocketLimits::default(),
    };
    // Everything that can fail comes before the first server is started. Clients that connect
    // meanwhile wait.
    let bound = socket::bind(options).await?;
    claim.publish(bound.address, Some(&token), &setup.version)?;
    let gateway = Gateway::start_served(setup, Some(served_metrics)).await?;
    let listening = bound.serve(Arc::new(Arc::clone(&gateway)));
    gateway.fleet().learn();
    gateway.watch_config();
    Ok(Served { gateway, listening, claim })
}

impl Served {
    /// The address it listens on.
    pub fn address(&self) -> std::net::SocketAddr {
        self.listening.address
    }

    /// Stops accepting connections, gives running turns `grace`, and stops the servers. Connections
    /// are closed last, so that callers receive the end of their turns.
    pub async fn stop(self, grace: Duration) {
        let Self { gateway, listening, claim } = self;
        let begun = Instant::now();
        gateway.wind_down(grace).await;
        let left = grace.saturating_sub(begun.elapsed()).max(LAST_WORDS);
        tokio::join!(listening.stop(left), gateway.end());
        drop(claim);
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        self.gateway.state()
    }
}
