//! Connects to a configured server: resolves secrets, starts the process or opens the URL,
//! negotiates the era, performs the handshake and lists.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_config::{HttpServer, ServerConnection, Transport};
use openclaw_metrics::ServerSeries;
use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::store::Version;
use openclaw_secrets::{Environment, Redactor, Resolver, SecretSettings};
use rmcp::model::ProtocolVersion;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::inventory::Inventory;
use crate::server::Ended;
use crate::server::cache::InventoryCache;
use crate::server::live::{ListChanges, LiveConnection};
use crate::server::shared_options::SharedOptions;
use crate::server::supervisor::{Dial, DialError, ServerError};
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::era::{Era, PinnedVersion};
use openclaw_mcp_client::connection::local::{self, LocalConnectError, LocalStep, ServerOutput};
use openclaw_mcp_client::connection::remote::{
    self, AuthContext, AuthorizerError, HttpTransport, NegotiatedProtocol, Network, RemoteError,
    RemotePlan,
};
use openclaw_mcp_client::host::{ClientSide, Host, Users};
use openclaw_mcp_client::log::ServerLog;
use openclaw_mcp_client::process::launch::launch;
use openclaw_mcp_client::process::{Launch, ShutdownTimeouts, SpawnError};
use openclaw_mcp_client::wire::{CallError, TimeLimits, Traffic};
use openclaw_process::Guard;

/// The timeout of all lists of a server together, unless its own timeout is longer.
const ALL_LISTS: Duration = Duration::from_secs(30);

/// How long to wait for a server that is being replaced: longer than stopping one may take.
const HANDOVER: Duration = Duration::from_secs(15);

/// How often to look whether another process has logged in.
const GRANT_POLL: Duration = Duration::from_secs(2);

/// The context for connecting to servers.
#[derive(Debug, Clone)]
pub struct DialContext {
    /// Resolves secrets.
    pub resolver: Resolver,
    /// The environment of this program.
    pub environment: Environment,
    /// Kills local servers if this program is killed.
    pub guard: Guard,
    /// The identity and callbacks presented to servers.
    pub host: Host,
    /// Obtains tokens for remote servers; `None` if only configured keys are used.
    pub auth: Option<AuthContext>,
}

impl DialContext {
    /// Returns a context with this environment, the default providers of secrets, no guard, no
    /// callbacks and no logins.
    pub fn new(environment: Environment) -> Self {
        let resolver =
            Resolver::new(SecretSettings::default(), environment.clone(), Redactor::new());
        Self { resolver, environment, guard: Guard::none(), host: Host::default(), auth: None }
    }
}

/// Everything needed to connect to one server.
#[derive(Debug)]
pub(crate) struct ServerDial {
    pub(crate) name: String,
    pub(crate) connection: ServerConnection,
    /// The current settings, such as the timeout.
    pub(crate) upkeep: watch::Receiver<SharedOptions>,
    /// The servers that must have stopped first: they may hold a port or a file that this one
    /// needs.
    pub(crate) after: Vec<Ended>,
    pub(crate) context: DialContext,
    /// The agents that use it.
    pub(crate) users: Users,
    /// Limits how many servers connect at the same time (L1).
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) cache: Arc<InventoryCache>,
    pub(crate) log: ServerLog,
    /// The era of the last connection.
    pub(crate) known_era: Option<Era>,
    /// The HTTP transport of the last connection.
    pub(crate) known_flavour: Option<HttpTransport>,
    /// The protocol version that worked, if not the default one.
    pub(crate) offer: Option<ProtocolVersion>,
    /// Whether the older handshakes were tried.
    pub(crate) tried_older: bool,
    /// Whether to subscribe to changes; false for a single command.
    pub(crate) stays: bool,
    /// What authorized the last attempt to connect, and the version of its grant then.
    pub(crate) grant: Option<(Authorizer, Option<Version>)>,
    /// Where the server is counted.
    pub(crate) series: Option<Arc<ServerSeries>>,
}

impl Dial for ServerDial {
    type Connection = LiveConnection;

    async fn dial(&mut self) -> Result<LiveConnection, DialError> {
        self.predecessors_ended().await;
        let turns = Arc::clone(&self.turns);
        // The semaphore is never closed.
        let turn = turns.acquire_owned().await;
        let connection = self.connect().await?;
        // Other servers may connect while this one lists.
        drop(turn);
        self.known_era = Some(connection.era());
        self.known_flavour = connection.flavour();
        let timeout = self.timeout();
        let limits = TimeLimits { timeout, cap: timeout.max(ALL_LISTS) };
        // Before listing, so that no change is missed.
        if self.stays {
            let resources = self.upkeep.borrow().resources.clone();
            connection.subscribe(resources).await;
        } else {
            connection.subscribe_to_nothing().await;
        }
        let heard = ListChanges::so_far(&connection);
        let (listed, ()) = tokio::join!(
            Inventory::list(&self.name, &connection, limits),
            connection.set_log_level(connection.client().log_level()),
        );
        match listed {
            Ok(inventory) => self.cache.put(inventory),
            Err(error) => {
                connection.close(ShutdownTimeouts::default()).await;
                let message = format!("listing tools failed: {error}");
                let gist = Some("listing tools failed");
                let hint = match error {
                    CallError::TimedOut(_) => "check the server, or set a longer `timeout`",
                    _ => "check the log of the server, and whether there is a newer version",
                };
                let hint = Some(hint.to_owned());
                let trouble = ServerError { message, hint, gist, ..ServerError::default() };
                return Err(DialError::Failed(trouble));
            }
        }
        Ok(LiveConnection::new(
            connection,
            Arc::clone(&self.cache),
            self.upkeep.clone(),
            limits,
            heard,
        ))
    }

    async fn authorized(&self) {
        let Some((auth, mut seen)) = self.grant.clone() else {
            return std::future::pending().await;
        };
        loop {
            sleep(GRANT_POLL).await;
            let now = auth.version().await;
            // Our own refreshes change the version, too; they leave the token that was rejected.
            if now != seen && auth.has_another_token().await {
                return;
            }
            seen = now;
        }
    }
}

impl ServerDial {
    fn timeout(&self) -> Duration {
        self.upkeep.borrow().timeout
    }

    /// Cancel-safe: a later call waits again.
    async fn predecessors_ended(&mut self) {
        if self.after.is_empty() {
            return;
        }
        let all = join_all(self.after.iter().cloned().map(Ended::wait));
        if timeout(HANDOVER, all).await.is_err() {
            let server = &self.name;
            tracing::warn!(%server, "starting although the process it replaces is still running");
        }
        self.after.clear();
    }

    async fn connect(&mut self) -> Result<Connection, DialError> {
        match self.connection.transport.clone() {
            Transport::Stdio(stdio) => {
                let DialContext { resolver, environment, .. } = &self.context;
                let launch = launch(&stdio, resolver, environment).await;
                let launch = launch.map_err(|error| DialError::Failed(secret_failed(&error)))?;
                self.start(launch).await.map_err(|error| {
                    let is_lasting = error.is_lasting();
                    let error = ServerError::from(error);
                    if is_lasting { DialError::Broken(error) } else { DialError::Failed(error) }
                })
            }
            Transport::Http(http) => Box::pin(self.reach(http)).await,
        }
    }

    /// The only protocol version to use, if one is configured.
    fn pinned(&self) -> Option<PinnedVersion> {
        self.connection.protocol_version.map(PinnedVersion::from)
    }

    /// Our side of a connection.
    fn client(&self, host: &Host) -> ClientSide {
        ClientSide::new(&self.name, host.clone())
            .with_sampling(self.connection.sampling)
            .with_roots(&self.connection.roots)
            .with_users(self.users.clone())
            .with_log_level(self.upkeep.borrow().log_level)
    }

    /// Connects to a remote server.
    async fn reach(&mut self, config: HttpServer) -> Result<Connection, DialError> {
        let DialContext { resolver, environment, host, .. } = &self.context;
        let headers = remote::headers(&config, resolver).await;
        let headers = headers.map_err(|error| DialError::Failed(secret_failed(&error)))?;
        let client = self.client(host);
        let network = Network::of(environment);
        let auth = match &self.context.auth {
            Some(context) => {
                let mut context = context.clone();
                if context.prompt.is_none() && host.elicitor.is_some() {
                    context.prompt = Some(Arc::new(client.clone()));
                }
                let context = &context;
                let series = self.series.as_ref();
                let made =
                    remote::authorizer(&self.name, &config, context, resolver, &network, series);
                made.await.map_err(|error| DialError::Failed(error.into()))?
            }
            None => None,
        };
        self.grant = match &auth {
            Some(auth) => Some((auth.clone(), auth.version().await)),
            None => None,
        };
        let known = self.known_era.zip(self.known_flavour);
        let plan = RemotePlan {
            server: self.name.clone(),
            config,
            headers,
            auth,
            network,
            client: client.config().clone(),
            known: known.map(|(era, flavour)| NegotiatedProtocol { era, flavour }),
            only: self.pinned(),
            timeout: self.timeout(),
            log: self.log.clone(),
            traffic: Traffic::new(self.series.clone()),
        };
        Ok(remote::connect(plan, client).await?)
    }

    /// Starts a local server. One that fails on the probe or on the newest handshake is started
    /// again with an older one (T1); what worked is used from then on.
    async fn start(&mut self, launch: Launch) -> Result<Connection, LocalConnectError> {
        let pinned = self.pinned();
        let newest = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let oldest = ProtocolVersion::V_2024_11_05;
        let pinned_offer = pinned.as_ref().filter(|it| it.era == Era::Legacy);
        let pinned_offer = pinned_offer.map(|it| it.version.clone());
        let offer = pinned_offer.or_else(|| self.offer.clone()).unwrap_or(newest.clone());
        // A server that fails with all of them has another problem: they are tried only once.
        let is_first = !std::mem::replace(&mut self.tried_older, true);
        let only_era = pinned.as_ref().map(|it| it.era);
        let mut ways = vec![(only_era.or(self.known_era), offer.clone())];
        if pinned.is_none() && self.known_era != Some(Era::Legacy) {
            ways.push((Some(Era::Legacy), offer.clone()));
        }
        if pinned.is_none() && offer != oldest {
            ways.push((Some(Era::Legacy), oldest));
        }
        let usual = offer.clone();
        let mut first_error = None;
        for (known_era, offer) in ways {
            let plan = local::LocalOptions {
                server: self.name.clone(),
                launch: launch.clone(),
                client: self.client(&self.context.host),
                known_era,
                offer: offer.clone(),
                only_era,
                timeout: self.timeout(),
                log: self.log.clone(),
                traffic: Traffic::new(self.series.clone()),
            };
            match local::open(plan, &self.context.guard).await {
                Ok(connection) => {
                    self.offer = Some(offer);
                    return Ok(connection);
                }
                Err(error) => {
                    let may_be_the_version = is_first && breaks_on_us(&error);
                    // A server that exits without a message on the new handshake and rejects the
                    // old one gives a reason only there. Report that one, and use the old handshake
                    // from now on.
                    let says_why =
                        matches!(error, LocalConnectError::Refused { .. }) && offer == usual;
                    if says_why && matches!(first_error, Some(LocalConnectError::Ended { .. })) {
                        self.known_era = known_era;
                        first_error = None;
                    }
                    let first = first_error.get_or_insert(error);
                    if !may_be_the_version {
                        break;
                    }
                    tracing::debug!(server = %self.name, error = %first, "trying older handshake");
                }
            }
        }
        Err(first_error.unwrap_or(LocalConnectError::TimedOut {
            step: LocalStep::Detecting,
            after: self.timeout(),
            words: ServerOutput::default(),
        }))
    }
}

/// Whether a server may have failed because of what it was sent, and not for a reason of its own.
fn breaks_on_us(error: &LocalConnectError) -> bool {
    match error {
        LocalConnectError::Refused { .. } | LocalConnectError::Ended { .. } => true,
        LocalConnectError::Spawn(_) | LocalConnectError::TimedOut { .. } => false,
    }
}

fn secret_failed(error: &openclaw_secrets::ResolveError) -> ServerError {
    let hint = "run `openclaw secrets check`".to_owned();
    let message = format!("resolving secrets failed: {error}");
    let gist = Some("a secret cannot be resolved");
    ServerError { message, hint: Some(hint), gist, ..ServerError::default() }
}

impl From<RemoteError> for DialError {
    fn from(error: RemoteError) -> Self {
        let needs_auth = match &error {
            RemoteError::NeedsAuth { .. } => true,
            RemoteError::Auth { source, .. } => !source.is_temporary(),
            _ => false,
        };
        let trouble = ServerError::from(error);
        if needs_auth { Self::NeedsAuth(trouble) } else { Self::Failed(trouble) }
    }
}

impl From<RemoteError> for ServerError {
    fn from(error: RemoteError) -> Self {
        let gist = match error {
            RemoteError::Unreachable(_) | RemoteError::Wordless(_) => "unreachable",
            RemoteError::TimedOut { .. } => "timed out",
            RemoteError::NeedsAuth { .. } => "login required",
            RemoteError::Auth { .. } => "authorization failed",
            RemoteError::Forbidden { .. } => "access denied",
            RemoteError::RateLimited(_) => "rate limited",
            RemoteError::OutOfService(_) => "temporarily out of service",
            RemoteError::Redirected { .. } => "redirected to another address",
            RemoteError::Setting { .. } => "invalid setting",
            RemoteError::OtherTransport => "wrong transport in its entry",
            RemoteError::WebPage { .. }
            | RemoteError::NoJson { .. }
            | RemoteError::UnusableResponse(_)
            | RemoteError::NotMcp { .. }
            | RemoteError::UnknownVersion { .. }
            | RemoteError::Refused { .. } => "invalid response",
        };
        let message = error.to_string();
        let hint = error.hint();
        Self { message, hint, gist: Some(gist), ..Self::default() }
    }
}

impl From<AuthorizerError> for ServerError {
    fn from(error: AuthorizerError) -> Self {
        match error {
            AuthorizerError::Secret(error) => secret_failed(&error),
            AuthorizerError::Setting(error) => error.into(),
        }
    }
}

impl From<LocalConnectError> for ServerError {
    fn from(error: LocalConnectError) -> Self {
        let message = error.to_string();
        let words = error.output().cloned().unwrap_or_default();
        let listening = words.printed.iter().chain(&words.last_lines).find_map(|it| listening(it));
        let hint = match &error {
            LocalConnectError::TimedOut { .. } if listening.is_some() => listening.as_deref(),
            _ if words.printed.is_some() => {
                Some("is this an MCP server? Its stdout must contain MCP messages only")
            }
            LocalConnectError::TimedOut { .. } => {
                Some("if it is slow to start, set a longer `timeout` in its entry")
            }
            LocalConnectError::Spawn(SpawnError::NoLoader(_)) => {
                Some("check `command` in its entry")
            }
            LocalConnectError::Refused { .. } => {
                Some("check its entry, and whether there is a newer version of the server")
            }
            _ => None,
        };
        let gist = match &error {
            LocalConnectError::Spawn(_) => "cannot start the program",
            LocalConnectError::Ended { .. } => "the program exited",
            LocalConnectError::TimedOut { .. } => "timed out",
            LocalConnectError::Refused { .. } => "invalid response",
        };
        let hint = hint.map(str::to_owned);
        let last_lines = words.last_lines;
        Self { message, hint, last_lines, gist: Some(gist) }
    }
}

/// Returns a hint if the output of a local server says that it listens for HTTP.
fn listening(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let here = ["://localhost", "://127.0.0.1", "://0.0.0.0", "://[::"];
    let listens = says(&["listening", "running on"]) && says(&["port", "http"]);
    if !listens && !says(&here) {
        return None;
    }
    let address = line.split(|c: char| c.is_whitespace() || "\"'<>()`,;".contains(c));
    let address = address.filter(|word| word.starts_with("http")).find_map(|word| {
        let url = url::Url::parse(word.trim_end_matches('.')).ok()?;
        url.has_host().then(|| url.to_string().replace("://0.0.0.0", "://127.0.0.1"))
    });
    let what = match address {
        Some(address) => format!("`url: \"{address}\"`"),
        None => "its address as `url`".to_owned(),
    };
    Some(format!(
        "this seems to be an HTTP server: start it separately and set {what} instead of `command`, \
         or use its option for stdio"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_listening_gives_a_hint_with_the_address() {
        for (line, expected) in [
            ("Listening on http://0.0.0.0:3000/mcp.", Some("`url: \"http://127.0.0.1:3000/mcp\"`")),
            (
                "INFO: Uvicorn running on http://127.0.0.1:8000 (Press",
                Some("http://127.0.0.1:8000"),
            ),
            ("MCP Streamable HTTP Server listening on port 3001", Some("its address as `url`")),
            ("Server running on stdio", None),
            ("see https://docs.example.com for help", None),
        ] {
            let hint = listening(line);
            assert_eq!(hint.is_some(), expected.is_some(), "{line}: {hint:?}");
            let hint = hint.unwrap_or_default();
            assert!(hint.contains(expected.unwrap_or_default()), "{line}: {hint}");
        }
    }
}
