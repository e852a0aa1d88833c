//! A gateway that others can reach: the state folder is claimed, the token is there, the socket listens.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::gateway::Gateway;
use crate::setup::{Setup, StartError};
use crate::socket::{self, Limits, ListenError, Listening, Options};
use crate::state::{Claim, ClaimError};

/// So much time there is for answers that are on their way, however long turns took.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A gateway that others can reach.
#[derive(Debug)]
pub struct Served {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    listening: Listening,
    claim: Claim,
}

/// Why it cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another gateway uses the state folder.
    #[error(transparent)]
    Claimed(#[from] ClaimError),
    /// The port cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The gateway cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The token cannot be had, or the address not be told.
    #[error("cannot use the state folder")]
    State(#[from] std::io::Error),
    /// The token of the configuration cannot be had.
    #[error("cannot resolve `gateway.auth.token`: {0}")]
    Token(String),
}

/// Starts a gateway that others can reach. It listens before its servers are started.
///
/// # Errors
/// If the folder, the port or the token cannot be had.
pub async fn serve(
    setup: Setup,
    bind: Option<std::net::IpAddr>,
    port: Option<u16>,
) -> Result<Served, ServeError> {
    let claim = Claim::take(&setup.state)?;
    let settings = setup.config.gateway.clone();
    let token = match &settings.token {
        Some(template) => {
            let resolver = &setup.fleet.surroundings.resolver;
            let token = resolver.resolve_credential(template).await;
            token.map_err(|error| ServeError::Token(error.to_string()))?
        }
        None => claim.token()?,
    };
    let options = Options {
        bind: bind.unwrap_or_else(|| settings.bind.ip()),
        port: port.unwrap_or(settings.port),
        token: Some(token.clone()),
        limits: Limits::default(),
    };
    // All that can be refused comes before the first server is started. Who calls meanwhile waits.
    let bound = socket::bind(options).await?;
    claim.publish(bound.address, Some(&token), &setup.version)?;
    let gateway = Gateway::start(setup).await?;
    let listening = bound.serve(Arc::new(Arc::clone(&gateway)));
    gateway.fleet.learn();
    gateway.watch_config();
    Ok(Served { gateway, listening, claim })
}

impl Served {
    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.listening.address
    }

    /// Stops: nobody new comes in, turns get `grace`, servers are ended. Callers hear the end of their
    /// turns: connections are closed after that.
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
