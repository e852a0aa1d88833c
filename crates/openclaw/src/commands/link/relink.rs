//! A link that outlives its gateway: when the connection is lost, it is made again, to the gateway
//! that was started meanwhile, or to one in this process.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_backoff::{Exponential, Jitter};
use openclaw_config::Paths;
use openclaw_protocol::{EventReceiver, Request, RequestError, Response, Surface};
use openclaw_trace::SpanContext;
use tokio::time::{Instant, sleep_until};

use super::local::Local;
use super::{GatewayTarget, Need, load_config_at, remote};
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::Output;

/// The delays between attempts.
const FIRST_DELAY: Duration = Duration::from_millis(250);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// A surface whose connection can be replaced. Requests and subscriptions use the current one.
#[derive(Debug)]
pub(super) struct Replaceable(RwLock<Arc<dyn Surface>>);

impl Replaceable {
    pub(super) fn new(surface: Arc<dyn Surface>) -> Self {
        Self(RwLock::new(surface))
    }

    fn current(&self) -> Arc<dyn Surface> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, surface: Arc<dyn Surface>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = surface;
    }
}

impl Surface for Replaceable {
    fn call_in(
        &self,
        request: Request,
        trace: Option<SpanContext>,
    ) -> BoxFuture<'_, Result<Response, RequestError>> {
        let current = self.current();
        Box::pin(async move { current.call_in(request, trace).await })
    }

    fn events(&self) -> EventReceiver {
        self.current().events()
    }
}

/// Replaces the connection of a link.
pub(crate) struct Relink<'a> {
    pub(super) need: &'a Need,
    pub(super) target: &'a GatewayTarget,
    pub(super) paths: &'a Paths,
    pub(super) edge: &'a Edge,
    pub(super) surface: Arc<Replaceable>,
    /// The gateway in this process, if it was started.
    pub(super) local: Option<Local>,
    pub(super) lost: Option<Lost>,
}

/// The state of a lost connection.
pub(super) struct Lost {
    backoff: Exponential,
    due: Instant,
}

impl Relink<'_> {
    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Notes that the connection is lost.
    pub(crate) fn lose(&mut self) {
        let backoff = Exponential::new(FIRST_DELAY, LONGEST_DELAY, Jitter::random());
        self.lost.get_or_insert_with(|| Lost { backoff, due: Instant::now() });
    }

    /// Waits until there is a connection again, however long that takes. Cancel-safe: the delays
    /// between the attempts continue.
    pub(crate) async fn reconnect(&mut self) {
        while let Some(lost) = &mut self.lost {
            sleep_until(lost.due).await;
            lost.due = Instant::now() + lost.backoff.next_delay();
            let connected = match self.target {
                GatewayTarget::Named(gateway) => {
                    let connected = gateway.connect(self.need, self.edge).await;
                    connected.map_err(|error| error.to_string())
                }
                GatewayTarget::Own => match remote::running(&self.paths.state, self.edge) {
                    Some(running) => remote::usable(&running, self.paths, self.need).await,
                    None => continue,
                },
            };
            match connected {
                Ok(client) => {
                    self.surface.replace(Arc::new(client));
                    self.lost = None;
                }
                Err(error) => tracing::debug!(%error, "cannot connect to the gateway"),
            }
        }
    }

    /// Whether the work can continue in this process. The conversations of a named gateway are there.
    pub(crate) fn can_stay(&self) -> bool {
        self.target.named().is_none()
    }

    /// Continues with a gateway in this process.
    ///
    /// # Errors
    /// If it cannot be started, for example because the configuration is invalid.
    pub(crate) async fn stay_here(&mut self, output: &mut Output) -> Result<(), CommandError> {
        let config = load_config_at(self.paths, self.edge, output)?;
        let local = Local::start(config, self.need, self.paths, self.edge, output).await?;
        self.surface.replace(local.link().surface);
        self.local = Some(local);
        self.lost = None;
        Ok(())
    }
}
